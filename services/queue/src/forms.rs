//! The stored and public forms of the service, for tests from outside: the parsers of bytes that may be damaged, and of
//! text from any client.

use crate::{
    deduplication::DeduplicationRecord,
    deleted_range::DeletedRange,
    head::QueueHead,
    keys,
    receipt::Receipt,
    record::QueueRecord,
    slot::Cursor,
    stored::{Body, MessageState},
};

/// A stored form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredForm {
    /// The state of a message.
    State,
    /// The body of a message.
    Body,
    /// A deduplication record.
    Deduplication,
    /// The record of a queue.
    Record,
    /// The head of a queue.
    Head,
    /// The cursor of a queue.
    Cursor,
    /// The rest of a deleted queue.
    DeletedRange,
    /// A number.
    Number,
}

/// Decodes bytes of a form and encodes them again; `None` if they are malformed.
#[must_use]
pub fn rewritten(form: StoredForm, bytes: &[u8]) -> Option<Vec<u8>> {
    let value = bytes::Bytes::copy_from_slice(bytes);
    let written = match form {
        StoredForm::State => MessageState::decode(&value).ok()?.encode(),
        StoredForm::Body => Body::decode(&value).ok()?.encode(),
        StoredForm::Deduplication => DeduplicationRecord::decode(&value).ok()?.encode(),
        StoredForm::Record => QueueRecord::decode(&value).ok()?.encode(),
        StoredForm::Head => QueueHead::decode(&value).ok()?.encode(),
        StoredForm::Cursor => Cursor::decode(&value).ok()?.encode(),
        StoredForm::DeletedRange => DeletedRange::decode(&value).ok()?.encode(),
        StoredForm::Number => keys::encode_number(keys::decode_number(&value, "number").ok()?),
    };
    Some(written.to_vec())
}

/// Parses bytes as each kind of key that scans return; true if one of them matches.
#[must_use]
pub fn is_key(bytes: &[u8]) -> bool {
    let (slot, sequence) = (keys::slot_of(bytes).is_ok(), keys::sequence_of(bytes).is_ok());
    let (dead, memory) =
        (keys::deleted_range_of(bytes).is_ok(), keys::deduplication_of(bytes).is_ok());
    slot || sequence || dead || memory || keys::queue_of(bytes).is_ok()
}

/// Parses the text of a receipt and renders it again; `None` if it is malformed.
#[must_use]
pub fn receipt(text: &str) -> Option<String> {
    Receipt::parse(text).map(Receipt::to_text)
}
