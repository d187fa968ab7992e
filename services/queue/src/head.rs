//! The head row of a queue, which every change of the queue reads: how many messages it holds, who owns it, and which
//! version its record has.
//!
//! ```text
//! version (1) = 1 | messages u64 | token u32 | owner u128 | record version u64
//! ```
//!
//! The row exists exactly as long as the queue does. A take-over of the queue raises the token, so a change that was
//! prepared by a former owner finds another token than its own and is rejected inside the decision.

use bytes::Bytes;
use trestle_kv::Writes;

use crate::{
    error::QueueError,
    keys::{self, QueueId},
    wire::RecordReader,
};

const VERSION: u8 = 1;
/// Sequence numbers of one token: about a trillion.
pub(crate) const SEQUENCE_BITS: u32 = 40;

/// The number of a take-over of a queue: 24 bits, since the token is the upper part of every sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FencingToken(u32);

/// A process that owns queues, while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OwnerId(pub(crate) u128);

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueHead {
    /// How many messages the queue holds.
    pub(crate) count: u64,
    /// How often a process took over the queue.
    pub(crate) token: FencingToken,
    /// The process that took it over last; none before the first time.
    pub(crate) owner: Option<OwnerId>,
    /// The version of the record that holds the settings of the queue.
    pub(crate) record_version: u64,
}

impl FencingToken {
    /// No process took the queue over.
    pub(crate) const NONE: Self = Self(0);
    /// The first take-over.
    pub(crate) const FIRST: Self = Self(1);
    /// The last possible one.
    pub(crate) const LAST: Self = Self((1 << (u64::BITS - SEQUENCE_BITS)) - 1);

    /// The token of the next take-over; none after the last one.
    pub(crate) fn next(self) -> Option<Self> {
        (self < Self::LAST).then(|| Self(self.0 + 1))
    }

    /// The first sequence number of the token; those of later tokens are greater.
    pub(crate) fn first_sequence(self) -> u64 {
        u64::from(self.0) << SEQUENCE_BITS
    }

    fn new(number: u32) -> Option<Self> {
        (number <= Self::LAST.0).then_some(Self(number))
    }
}

impl QueueHead {
    /// The head of a queue without messages; owned from the start, if `owner` is given.
    pub(crate) fn empty(owner: Option<OwnerId>, record_version: u64) -> Self {
        let token = owner.map_or(FencingToken::NONE, |_| FencingToken::FIRST);
        Self { count: 0, token, owner, record_version }
    }

    /// The head after a take-over; none after the last token.
    pub(crate) fn acquired_by(self, owner: OwnerId) -> Option<Self> {
        Some(Self { token: self.token.next()?, owner: Some(owner), ..self })
    }

    /// The head after this number of take-overs; none after the last token.
    pub(crate) fn ahead_by(self, tokens: u32) -> Option<Self> {
        let token = self.token.0.checked_add(tokens).and_then(FencingToken::new)?;
        Some(Self { token, ..self })
    }

    /// The head with `messages` more.
    pub(crate) fn with_added(self, messages: usize) -> Self {
        Self { count: self.count.saturating_add(as_u64(messages)), ..self }
    }

    /// The head with `messages` fewer.
    pub(crate) fn with_removed(self, messages: usize) -> Self {
        Self { count: self.count.saturating_sub(as_u64(messages)), ..self }
    }

    /// Writes the head of a queue.
    pub(crate) fn put(&self, id: QueueId, writes: &mut Writes) {
        writes.put(keys::head(id), self.encode());
    }

    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut value = Vec::with_capacity(37);
        value.push(VERSION);
        value.extend_from_slice(&self.count.to_be_bytes());
        value.extend_from_slice(&self.token.0.to_be_bytes());
        value.extend_from_slice(&self.owner.map_or(0, |owner| owner.0).to_be_bytes());
        value.extend_from_slice(&self.record_version.to_be_bytes());
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn decode(value: &[u8]) -> Result<Self, QueueError> {
        let fields = || {
            let mut fields = RecordReader::of(value, VERSION)?;
            let (count, token) = (fields.u64()?, FencingToken::new(fields.u32()?)?);
            let owner = Some(OwnerId(fields.u128()?)).filter(|_| token > FencingToken::NONE);
            let record_version = fields.u64()?;
            fields.end(Self { count, token, owner, record_version })
        };
        fields().ok_or_else(|| QueueError::corrupt("head of a queue"))
    }
}

fn as_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
