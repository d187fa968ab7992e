//! The forms in which the service keeps and hands out things, for tests from outside: what reads bytes that may be
//! damaged, or text that anybody may send.

use crate::{
    deduplication::DeduplicationRecord,
    keys::{self, Cursor, DeletedRange},
    receipt::Receipt,
    record::QueueRecord,
    stored::{Body, MessageState},
};

/// A stored form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// How a message stands.
    State,
    /// What a message carries.
    Body,
    /// What is remembered of a send.
    Deduplication,
    /// The record of a queue.
    Record,
    /// How far a queue has come.
    Cursor,
    /// What is left of a dead queue.
    DeletedRange,
    /// A number.
    Number,
}

/// What bytes of a form become when they are read and written again; nothing if they are refused.
#[must_use]
pub fn rewritten(form: Form, bytes: &[u8]) -> Option<Vec<u8>> {
    let value = bytes::Bytes::copy_from_slice(bytes);
    let written = match form {
        Form::State => MessageState::decode(&value).ok()?.encode(),
        Form::Body => Body::decode(&value).ok()?.encode(),
        Form::Deduplication => DeduplicationRecord::decode(&value).ok()?.encode(),
        Form::Record => QueueRecord::decode(&value).ok()?.encode(),
        Form::Cursor => Cursor::decode(&value).ok()?.encode(),
        Form::DeletedRange => DeletedRange::decode(&value).ok()?.encode(),
        Form::Number => keys::encode_number(keys::decode_number(&value, "number").ok()?),
    };
    Some(written.to_vec())
}

/// Reads bytes as the key of everything that is found by scanning; true if any of them could be.
#[must_use]
pub fn is_key(bytes: &[u8]) -> bool {
    let (slot, sequence) = (keys::slot_of(bytes).is_ok(), keys::sequence_of(bytes).is_ok());
    let (dead, memory) =
        (keys::deleted_range_of(bytes).is_ok(), keys::deduplication_of(bytes).is_ok());
    slot || sequence || dead || memory || keys::queue_name(bytes).is_ok()
}

/// The text that a receipt is read from and written as again; nothing if it is none.
#[must_use]
pub fn receipt(text: &str) -> Option<String> {
    Receipt::parse(text).map(Receipt::to_text)
}
