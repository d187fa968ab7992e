//! What a queue remembers of a send, so that the same send again does no more than answer the same.
//!
//! ```text
//! version (1) = 1 | remembered until ticks u64 | each message: state as stored behind its length, visible ticks u64,
//! sequence u64
//! ```

use bytes::Bytes;
use trestle_service::clock::Ticks;

use crate::{
    error::QueueError,
    keys::Place,
    stored::MessageState,
    wire::{self, Fields},
};

const VERSION: u8 = 1;

/// A message as it was when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentState {
    /// Where it stood.
    pub(crate) place: Place,
    /// How it stood.
    pub(crate) state: MessageState,
}

/// The messages of a send, by what names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memory {
    /// When it is forgotten.
    pub(crate) until: Ticks,
    /// The messages.
    pub(crate) sent: Vec<SentState>,
}

impl Memory {
    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.until.get().to_be_bytes());
        for SentState { place, state } in &self.sent {
            wire::push_bytes(&mut value, &state.encode());
            value.extend_from_slice(&place.visible_at.get().to_be_bytes());
            value.extend_from_slice(&place.sequence.to_be_bytes());
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
            let mut fields = Fields::of(value, VERSION)?;
            let until = fields.ticks()?;
            let mut sent = Vec::new();
            while !fields.is_empty() {
                let state = MessageState::decode(fields.bytes()?).ok()?;
                let place = Place { visible_at: fields.ticks()?, sequence: fields.u64()? };
                sent.push(SentState { place, state });
            }
            Some(Self { until, sent })
        };
        fields().ok_or_else(|| QueueError::corrupt(what))
    }

    /// What is still remembered at `now`.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn of(value: Option<&Bytes>, now: Ticks) -> Result<Option<Self>, QueueError> {
        let memory = value.map(|value| Self::decode(value)).transpose()?;
        Ok(memory.filter(|memory| memory.until > now))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_memory_survives_and_lasts_until_its_time() {
        let at = |ticks| Ticks::new(ticks).expect("in range");
        let state = MessageState {
            id: Uuid::from_u128(7),
            inserted_at: at(5),
            expires_at: None,
            generation: 0,
            dequeue_count: 0,
        };
        let sent = SentState { place: Place { visible_at: at(6), sequence: 9 }, state };
        let memory = Memory { until: at(100), sent: vec![sent, sent] };

        let value = memory.encode();

        assert_eq!(Memory::of(Some(&value), at(99)).ok(), Some(Some(memory)));
        assert_eq!(Memory::of(Some(&value), at(100)).ok(), Some(None));
        assert_eq!(Memory::of(None, at(0)).ok(), Some(None));
        assert!(Memory::decode(&value[..value.len() - 1]).is_err());
        assert!(Memory::decode(b"").is_err());
    }
}
