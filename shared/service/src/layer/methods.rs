//! The methods that a process knows, as labels: what clients send beyond them never becomes a
//! label.

use std::{collections::HashMap, sync::Arc};

use prost::Message as _;
use prost_types::FileDescriptorSet;

/// The label of a method that is not known.
const UNKNOWN: &str = "_OTHER";

/// Labels of methods by path. Clones share them.
#[derive(Debug, Clone)]
pub struct Methods {
    by_path: Arc<HashMap<Box<str>, Method>>,
    unknown: Method,
}

/// A method as a label.
#[derive(Debug, Clone)]
pub struct Method {
    /// Its place among the methods that are known; those that are not share the last one.
    pub index: usize,
    /// `package.Service/Method`, or `_OTHER`.
    pub label: Arc<str>,
}

impl Methods {
    /// Every method of an encoded descriptor set.
    ///
    /// # Errors
    /// Bytes that are no descriptor set.
    pub fn from_descriptors(encoded: &[u8]) -> Result<Self, prost::DecodeError> {
        let mut by_path = HashMap::new();
        for file in FileDescriptorSet::decode(encoded)?.file {
            for service in &file.service {
                for method in &service.method {
                    let (package, service) = (file.package(), service.name());
                    let label = format!("{package}.{service}/{}", method.name());
                    let (path, index) = (format!("/{label}").into(), by_path.len());
                    by_path.entry(path).or_insert(Method { index, label: label.into() });
                }
            }
        }
        let unknown = Method { index: by_path.len(), label: UNKNOWN.into() };
        Ok(Self { by_path: Arc::new(by_path), unknown })
    }

    /// The method of a path.
    #[must_use]
    pub fn of(&self, path: &str) -> Method {
        self.by_path.get(path).unwrap_or(&self.unknown).clone()
    }

    /// Whether a method is among those that are known.
    #[must_use]
    pub fn knows(&self, method: &Method) -> bool {
        method.index != self.unknown.index
    }

    /// How many indices there are.
    pub(super) fn count(&self) -> usize {
        self.unknown.index + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_paths_have_their_own_label_and_others_share_one() {
        let methods = Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET)
            .expect("the build wrote the descriptors");

        let known = methods.of("/trestle.table.v1.TableService/GetEntity");
        let unknown = methods.of("/trestle.table.v1.TableService/Whatever");

        assert_eq!(&*known.label, "trestle.table.v1.TableService/GetEntity");
        assert_eq!(&*unknown.label, "_OTHER");
        assert!(methods.knows(&known) && !methods.knows(&unknown));
        assert!(known.index < unknown.index && methods.count() == unknown.index + 1);
        assert!(Methods::from_descriptors(&[0xFF]).is_err());
    }
}
