//! Deduplication records: the stored outcome of a send, so that a repeated send returns it and writes nothing.
//!
//! ```text
//! version (1) = 2 | expires ticks u64 | each message: outcome u8, and unless it is 0 the state as stored
//! behind its length, visible ticks u64, sequence u64
//! ```
//!
//! Outcome 0: rejected; 1: sent; 2: sent behind another message of its group; 3 and 4: not sent, as a duplicate of an
//! earlier message, whose outcome was 1 or 2. Version 1 is the same without outcomes, which are all 1. Outcomes 3 and 4
//! were added later: before, they were stored as 1 and 2.

use bytes::Bytes;
use trestle_model::time::Ticks;

use crate::{
    error::QueueError,
    receipt::Receipt,
    slot::Slot,
    stored::MessageState,
    wire::{self, RecordReader},
};

const VERSION: u8 = 2;
const VERSION_WITHOUT_OUTCOMES: u8 = 1;
const REJECTED: u8 = 0;
const SENT: u8 = 1;
const WAITS: u8 = 2;
const DUPLICATE: u8 = 3;
const DUPLICATE_WAITS: u8 = 4;

/// A message as it was when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentState {
    /// Its slot.
    pub(crate) slot: Slot,
    /// Its state.
    pub(crate) state: MessageState,
    /// Whether it waited behind another message of its group; then it had no receipt.
    pub(crate) waits: bool,
}

/// A message that was sent, or the earlier one of which it is a duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// The message as it was sent.
    pub(crate) sent: SentState,
    /// Whether it is a duplicate of an earlier one.
    pub(crate) is_duplicate: bool,
}

impl Sent {
    /// The receipt that is valid until the message is received; none where it waits behind another message of its
    /// group, since its slot will change.
    pub(crate) fn receipt(&self) -> Option<Receipt> {
        let SentState { slot, state, waits } = &self.sent;
        (!waits).then(|| Receipt::of(*slot, state))
    }
}

/// The messages of a send, stored under its deduplication id or request id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeduplicationRecord {
    /// When it expires.
    pub(crate) until: Ticks,
    /// The messages; none where one was rejected.
    pub(crate) sent: Vec<Option<Sent>>,
}

impl DeduplicationRecord {
    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.until.get().to_be_bytes());
        for sent in &self.sent {
            let Some(Sent { sent: SentState { slot, state, waits }, is_duplicate }) = sent else {
                value.push(REJECTED);
                continue;
            };
            value.push(match (is_duplicate, waits) {
                (false, false) => SENT,
                (false, true) => WAITS,
                (true, false) => DUPLICATE,
                (true, true) => DUPLICATE_WAITS,
            });
            wire::push_bytes(&mut value, &state.encode());
            value.extend_from_slice(&slot.visible_at.get().to_be_bytes());
            value.extend_from_slice(&slot.sequence.to_be_bytes());
        }
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn decode(value: &[u8]) -> Result<Self, QueueError> {
        let what = "memory of a send";
        let fields = || {
            let is_old = value.first() == Some(&VERSION_WITHOUT_OUTCOMES);
            let version = if is_old { VERSION_WITHOUT_OUTCOMES } else { VERSION };
            let mut fields = RecordReader::of(value, version)?;
            let until = fields.ticks()?;
            let mut sent = Vec::new();
            while !fields.is_empty() {
                let outcome = if is_old { SENT } else { fields.u8()? };
                let (is_duplicate, waits) = match outcome {
                    REJECTED => {
                        sent.push(None);
                        continue;
                    }
                    SENT => (false, false),
                    WAITS => (false, true),
                    DUPLICATE => (true, false),
                    DUPLICATE_WAITS => (true, true),
                    _ => return None,
                };
                let state = MessageState::decode(fields.bytes()?).ok()?;
                let slot = Slot { visible_at: fields.ticks()?, sequence: fields.u64()? };
                sent.push(Some(Sent { sent: SentState { slot, state, waits }, is_duplicate }));
            }
            Some(Self { until, sent })
        };
        fields().ok_or_else(|| QueueError::corrupt(what))
    }

    /// The record, unless it has expired at `now`.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn of(value: Option<&Bytes>, now: Ticks) -> Result<Option<Self>, QueueError> {
        let memory = value.map(|value| Self::decode(value)).transpose()?;
        Ok(memory.filter(|memory| memory.until > now))
    }
}

#[cfg(test)]
mod tests;
