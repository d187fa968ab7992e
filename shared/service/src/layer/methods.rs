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
    labels: Arc<HashMap<Box<str>, Arc<str>>>,
    unknown: Arc<str>,
}

impl Methods {
    /// Every method of an encoded descriptor set.
    ///
    /// # Errors
    /// Bytes that are no descriptor set.
    pub fn from_descriptors(encoded: &[u8]) -> Result<Self, prost::DecodeError> {
        let mut labels = HashMap::new();
        for file in FileDescriptorSet::decode(encoded)?.file {
            for service in &file.service {
                for method in &service.method {
                    let (package, service) = (file.package(), service.name());
                    let label = format!("{package}.{service}/{}", method.name());
                    labels.insert(format!("/{label}").into(), label.into());
                }
            }
        }
        Ok(Self { labels: Arc::new(labels), unknown: UNKNOWN.into() })
    }

    /// The label of a path: `package.Service/Method`, or `_OTHER`.
    #[must_use]
    pub fn label(&self, path: &str) -> Arc<str> {
        Arc::clone(self.labels.get(path).unwrap_or(&self.unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_paths_have_their_own_label_and_others_share_one() {
        let methods = Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET)
            .expect("the build wrote the descriptors");

        let known = methods.label("/trestle.table.v1.TableService/GetEntity");
        let unknown = methods.label("/trestle.table.v1.TableService/Whatever");

        assert_eq!(&*known, "trestle.table.v1.TableService/GetEntity");
        assert_eq!(&*unknown, "_OTHER");
        assert!(Methods::from_descriptors(&[0xFF]).is_err());
    }
}
