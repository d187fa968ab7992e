//! Properties of methods by the contract: whether one only reads, whether it is unary, and whether it may wait.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use prost::Message as _;
use prost_types::{FileDescriptorSet, method_options::IdempotencyLevel};

/// The properties of a method. An unknown method has none, which is the safe assumption.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MethodKind {
    /// It changes nothing: `NO_SIDE_EFFECTS` in the contract.
    pub is_read: bool,
    /// Request and response are one message each.
    pub is_unary: bool,
    /// It waits for data if the request has a `wait`.
    pub may_wait: bool,
}

static KINDS: LazyLock<HashMap<String, MethodKind>> = LazyLock::new(|| {
    let files = FileDescriptorSet::decode(trestle_proto::FILE_DESCRIPTOR_SET)
        .expect("the build wrote the descriptors");
    let mut kinds = HashMap::new();
    let waiting = waiting_messages(&files);
    for file in &files.file {
        for service in &file.service {
            for method in &service.method {
                let level = method.options.as_ref().map(|options| options.idempotency_level());
                let kind = MethodKind {
                    is_read: level == Some(IdempotencyLevel::NoSideEffects),
                    is_unary: !method.server_streaming() && !method.client_streaming(),
                    may_wait: waiting.contains(method.input_type()),
                };
                let (package, service) = (file.package(), service.name());
                kinds.insert(format!("/{package}.{service}/{}", method.name()), kind);
            }
        }
    }
    kinds
});

/// The full names, with a leading dot, of the messages with a `wait`.
fn waiting_messages(files: &FileDescriptorSet) -> HashSet<String> {
    let messages = files.file.iter().flat_map(|file| {
        let waits = file
            .message_type
            .iter()
            .filter(|message| message.field.iter().any(|field| field.name() == "wait"));
        waits.map(move |message| format!(".{}.{}", file.package(), message.name()))
    });
    messages.collect()
}

/// The kind of the method of a path.
#[must_use]
pub fn kind_of(path: &str) -> MethodKind {
    KINDS.get(path).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every method, by the first word of its name. A new verb must be added.
    #[test]
    fn the_contract_declares_exactly_the_methods_that_only_read() {
        let reads = [
            "Get",
            "List",
            "Query",
            "StreamEntities",
            "Explain",
            "Peek",
            "Read",
            "Find",
            "Tail",
            "Summarize",
            "VerifyBlobs",
        ];
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
            "Write",
            "Lease",
            "Stage",
            "Commit",
            "Append",
            "Seal",
            "Copy",
            "Abort",
            "Undelete",
            "Snapshot",
            "Export",
            "Flush",
            // Records the damage that it finds.
            "VerifySegment",
            "Drop",
        ];
        assert!(KINDS.len() > 15, "{}", KINDS.len());
        for (path, kind) in KINDS.iter() {
            let (_, name) = path.rsplit_once('/').expect("a path");
            let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
            assert!(begins(&reads) != begins(&writes), "{path}");
            assert_eq!(kind.is_read, begins(&reads), "{path}");
        }
        let waiting = KINDS.iter().filter(|(_, kind)| kind.may_wait);
        let waiting: Vec<_> = waiting.map(|(path, _)| path.as_str()).collect();
        assert_eq!(waiting, ["/trestle.queue.v1.QueueService/ReceiveMessages"]);
        assert_eq!(kind_of("/trestle.table.v1.TableService/Absent"), MethodKind::default());
    }

    #[test]
    fn the_contract_declares_exactly_the_methods_that_stream() {
        let streams = [
            "Stream",
            "Import",
            "ReadBlob",
            "WriteBlob",
            "StageBlock",
            "AppendBlock",
            "WritePages",
            "CopyBlob",
            "AppendStream",
            "ReadRecords",
            "SummarizeRecords",
            "TailRecords",
            "VerifyBlobs",
        ];
        for (path, kind) in KINDS.iter() {
            let (_, name) = path.rsplit_once('/').expect("a path");
            let is_stream = streams.iter().any(|word| name.starts_with(word));
            assert_eq!(kind.is_unary, !is_stream, "{path}");
        }
    }
}
