//! What the contract says of a method: may it be sent again, and does its answer end at once.

use std::{collections::HashMap, sync::LazyLock};

use prost::Message as _;
use prost_types::{FileDescriptorSet, method_options::IdempotencyLevel};

/// What is known of a method. Of an unknown one nothing is, which is the careful reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kind {
    /// It changes nothing: `NO_SIDE_EFFECTS` in the contract.
    pub is_read: bool,
    /// Its answer is one message.
    pub is_unary: bool,
}

static KINDS: LazyLock<HashMap<String, Kind>> = LazyLock::new(|| {
    let files = FileDescriptorSet::decode(trestle_proto::FILE_DESCRIPTOR_SET)
        .expect("the build wrote the descriptors");
    let mut kinds = HashMap::new();
    for file in &files.file {
        for service in &file.service {
            for method in &service.method {
                let level = method.options.as_ref().map(|options| options.idempotency_level());
                let kind = Kind {
                    is_read: level == Some(IdempotencyLevel::NoSideEffects),
                    is_unary: !method.server_streaming() && !method.client_streaming(),
                };
                let (package, service) = (file.package(), service.name());
                kinds.insert(format!("/{package}.{service}/{}", method.name()), kind);
            }
        }
    }
    kinds
});

/// The kind of the method at a path.
#[must_use]
pub fn kind_of(path: &str) -> Kind {
    KINDS.get(path).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every method, by the first word of its name: who adds one has to say what it is.
    #[test]
    fn the_contract_marks_exactly_the_methods_that_only_read() {
        let reads = ["Get", "List", "Query", "StreamEntities", "Explain", "Peek"];
        let writes = [
            "Create",
            "Delete",
            "Set",
            "Insert",
            "Update",
            "Upsert",
            "Execute",
            "Import",
            "Send",
            "Receive",
            "StreamMessages",
            "Clear",
            "Redrive",
        ];
        assert!(KINDS.len() > 15, "{}", KINDS.len());
        for (path, kind) in KINDS.iter() {
            let (_, name) = path.rsplit_once('/').expect("a path");
            let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
            assert!(begins(&reads) != begins(&writes), "{path}");
            assert_eq!(kind.is_read, begins(&reads), "{path}");
            assert_eq!(kind.is_unary, !begins(&["Stream", "Import"]), "{path}");
        }
        assert_eq!(kind_of("/trestle.table.v1.TableService/Whatever"), Kind::default());
    }
}
