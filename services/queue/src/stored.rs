//! The stored forms of a message: its state and its body.
//!
//! ```text
//! state: version (1) = 1 | generation u32 | dequeue count u32 | id u128 | inserted ticks u64
//!        | 1 if it never expires u8 | expires ticks u64
//! the same of a message of a group: version (1) = 2 | … | group u64
//! the same with a nonce: version (1) = 3 | … | nonce u64, and version (1) = 4 | … | group u64 | nonce u64
//! body:  version (1) = 1 | flags u8 | inserted ticks u64 | [origin: queue, dequeue count u32] | [group]
//!        | content
//! ```
//!
//! The state is small and written anew by every receive; the body is written once, and again only by an update that
//! replaces it. Flag 1 of a body marks text, flag 2 an origin, flag 4 an ordering group.

use bytes::Bytes;
use trestle_model::time::Ticks;
use uuid::Uuid;

use crate::{
    error::QueueError,
    keys::GroupId,
    wire::{self, RecordReader},
};

const VERSION: u8 = 1;
const VERSION_IN_GROUP: u8 = 2;
const VERSION_WITH_NONCE: u8 = 3;
const VERSION_WITH_NONCE_IN_GROUP: u8 = 4;
const IS_TEXT: u8 = 1;
const HAS_ORIGIN: u8 = 2;
const HAS_GROUP: u8 = 4;

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageState {
    /// The id that clients see.
    pub(crate) id: Uuid,
    /// When it was sent.
    pub(crate) inserted_at: Ticks,
    /// When it expires; no expiry where none.
    pub(crate) expires_at: Option<Ticks>,
    /// How often it was received or updated; distinguishes its receipts.
    pub(crate) generation: u32,
    /// Random, and new with each generation, so that no caller can compute a receipt; 0 in states of earlier versions.
    pub(crate) nonce: u64,
    /// How often it was received.
    pub(crate) dequeue_count: u32,
    /// The ordering group whose first message it is.
    pub(crate) group: Option<GroupId>,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Payload {
    /// Text, in UTF-8.
    Text(Bytes),
    /// Bytes.
    Data(Bytes),
}

/// The origin of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The queue.
    pub(crate) queue: String,
    /// How often it had been received there.
    pub(crate) dequeue_count: u32,
}

/// The stored body of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    /// When the message was sent.
    pub(crate) inserted_at: Ticks,
    /// Its origin, if it was dead-lettered.
    pub(crate) origin: Option<Origin>,
    /// The name of the ordering group that it was sent in.
    pub(crate) group: Option<String>,
    /// Its content.
    pub(crate) payload: Payload,
}

impl Payload {
    /// The size of the content.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(bytes) | Self::Data(bytes) => bytes.len(),
        }
    }
}

impl MessageState {
    /// Whether it has expired.
    pub(crate) fn is_expired(&self, now: Ticks) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// The state of a message, if it exists and has not expired.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn unexpired(value: Option<&Bytes>, now: Ticks) -> Result<Option<Self>, QueueError> {
        let state = value.map(|value| Self::decode(value)).transpose()?;
        Ok(state.filter(|state| !state.is_expired(now)))
    }

    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        // Exactly: a vector with room to spare costs `Bytes` an allocation of its own.
        let (has_nonce, has_group) = (self.nonce != 0, self.group.is_some());
        let bytes = 42 + 8 * usize::from(has_nonce) + 8 * usize::from(has_group);
        let mut value = Vec::with_capacity(bytes);
        value.push(match (has_nonce, has_group) {
            (false, false) => VERSION,
            (false, true) => VERSION_IN_GROUP,
            (true, false) => VERSION_WITH_NONCE,
            (true, true) => VERSION_WITH_NONCE_IN_GROUP,
        });
        value.extend_from_slice(&self.generation.to_be_bytes());
        value.extend_from_slice(&self.dequeue_count.to_be_bytes());
        value.extend_from_slice(&self.id.as_u128().to_be_bytes());
        value.extend_from_slice(&self.inserted_at.get().to_be_bytes());
        value.push(u8::from(self.expires_at.is_none()));
        value.extend_from_slice(&self.expires_at.map_or(0, Ticks::get).to_be_bytes());
        if let Some(group) = self.group {
            value.extend_from_slice(&group.0.to_be_bytes());
        }
        if has_nonce {
            value.extend_from_slice(&self.nonce.to_be_bytes());
        }
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn decode(value: &[u8]) -> Result<Self, QueueError> {
        let fields = || {
            let version = *value.first()?;
            let (has_nonce, is_in_group) = match version {
                VERSION => (false, false),
                VERSION_IN_GROUP => (false, true),
                VERSION_WITH_NONCE => (true, false),
                VERSION_WITH_NONCE_IN_GROUP => (true, true),
                _ => return None,
            };
            let mut fields = RecordReader::of(value, version)?;
            let (generation, dequeue_count) = (fields.u32()?, fields.u32()?);
            let id = Uuid::from_u128(fields.u128()?);
            let inserted_at = fields.ticks()?;
            let never = fields.u8()? != 0;
            let expires_at = Some(fields.ticks()?).filter(|_| !never);
            let group = if is_in_group { Some(GroupId(fields.u64()?)) } else { None };
            let nonce = if has_nonce { fields.nonce()? } else { 0 };
            fields.end(Self {
                id,
                inserted_at,
                expires_at,
                generation,
                nonce,
                dequeue_count,
                group,
            })
        };
        fields().ok_or_else(|| QueueError::corrupt("state of a message"))
    }
}

impl Body {
    /// The stored form; owns its bytes.
    pub(crate) fn encode(&self) -> Bytes {
        let (is_text, payload) = match &self.payload {
            Payload::Text(bytes) => (IS_TEXT, bytes),
            Payload::Data(bytes) => (0, bytes),
        };
        let has_origin = if self.origin.is_some() { HAS_ORIGIN } else { 0 };
        let mut value = Vec::with_capacity(10 + payload.len());
        let has_group = if self.group.is_some() { HAS_GROUP } else { 0 };
        value.extend_from_slice(&[VERSION, is_text | has_origin | has_group]);
        value.extend_from_slice(&self.inserted_at.get().to_be_bytes());
        if let Some(origin) = &self.origin {
            wire::push_bytes(&mut value, origin.queue.as_bytes());
            value.extend_from_slice(&origin.dequeue_count.to_be_bytes());
        }
        if let Some(group) = &self.group {
            wire::push_bytes(&mut value, group.as_bytes());
        }
        value.extend_from_slice(payload);
        value.into()
    }

    /// From the stored form, whose bytes it shares.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn decode(value: &Bytes) -> Result<Self, QueueError> {
        let fields = || {
            let mut fields = RecordReader::of(value, VERSION)?;
            let flags = fields.u8()?;
            let inserted_at = fields.ticks()?;
            let origin = if flags & HAS_ORIGIN == 0 {
                None
            } else {
                Some(Origin { queue: fields.text()?, dequeue_count: fields.u32()? })
            };
            let group = if flags & HAS_GROUP == 0 { None } else { Some(fields.text()?) };
            let payload = value.slice_ref(fields.rest());
            let payload = match flags & IS_TEXT {
                0 => Payload::Data(payload),
                _ => Payload::Text(payload),
            };
            Some(Self { inserted_at, origin, group, payload })
        };
        fields().ok_or_else(|| QueueError::corrupt("body of a message"))
    }
}

#[cfg(test)]
mod tests;
