//! A stored record that cannot be decoded.

use trestle_proto::wire::MalformedMessage;

/// A stored record that cannot be decoded: what it is, or what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stored record unreadable: {0}")]
pub struct CorruptRecord(pub &'static str);

impl From<MalformedMessage> for CorruptRecord {
    fn from(MalformedMessage(text): MalformedMessage) -> Self {
        Self(text)
    }
}
