//! Every key of the queue service, and the values of its counters and marks.
//!
//! The first byte of a key is its kind. Kinds are part of the disk format: never renumber, never reuse.
//!
//! | kind | key after the kind | value |
//! |---|---|---|
//! | 0x30 queue | account, name | see `record` |
//! | 0x31 dead range | queue id u64, part u8 | version 1, died ticks u64, key where sweeping goes on |
//! | 0x32 next queue id | nothing | version 1, id u64 |
//! | 0x33 epoch | nothing | version 1, number of the latest start u64 |
//! | 0x34 count | queue id u64 | version 1, messages u64 |
//! | 0x35 cursor | queue id u64 | version 1, ticks u64, sequence u64, lowest sequence u64 |
//! | 0x36 memory | queue id u64, what u8, id text | see `memory` |
//! | 0x37 forget | ticks u64, queue id u64, what u8, id text | version 1 |
//! | 0x38 service properties | account | see `service_properties` of the shared crate |
//! | 0x39 time | nothing | version 1, ticks u64: the service was there at that time |
//! | 0x40 body | queue id u64, sequence u64 | see `stored` |
//! | 0x48 state | queue id u64, visible ticks u64, sequence u64 | see `stored` |
//! | 0x49 next_in_group | queue id u64, sequence u64 of the message before it | see `groups` |
//! | 0x4A group | queue id u64, group u64 | version 1, sequence u64 of its last message |
//!
//! A queue id is never used twice: a deleted or cleared queue and its successor share nothing. A sequence is never used
//! twice in the whole store. The state of a message is deleted and written anew whenever it becomes visible at another
//! time, so the states of a queue lie in the order in which they are due.

use bytes::Bytes;
use trestle_kv::{Keyspace, Span, after_prefix, order};
use trestle_service::{
    clock::Ticks,
    name::{AccountName, QueueName},
};

use crate::{
    error::QueueError,
    wire::{self, RecordReader},
};

const QUEUE: u8 = 0x30;
const DELETED: u8 = 0x31;
const NEXT_QUEUE_ID: u8 = 0x32;
const EPOCH: u8 = 0x33;
const COUNT: u8 = 0x34;
const CURSOR: u8 = 0x35;
const DEDUPLICATION: u8 = 0x36;
const DEDUPLICATION_EXPIRY: u8 = 0x37;
const SERVICE_PROPERTIES: u8 = 0x38;
const TIME: u8 = 0x39;
const BODY: u8 = 0x40;
const STATE: u8 = 0x48;
const NEXT_IN_GROUP: u8 = 0x49;
const GROUP: u8 = 0x4A;

/// Version byte of every value in this file.
const VERSION: u8 = 1;

/// Where the kinds of this service live: small records, what messages carry, and how they stand, each with a pattern of
/// access of its own.
pub const KEYSPACES: &[Keyspace] = &[
    Keyspace { name: "q_meta", kinds: 0x30..=0x3F },
    Keyspace { name: "q_msg", kinds: 0x40..=0x47 },
    Keyspace { name: "q_vis", kinds: 0x48..=0x4F },
];

/// The number that stands for a queue in every key of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct QueueId(pub(crate) u64);

/// The number that stands for an ordering group in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId(pub(crate) u64);

/// Where a message stands in its queue: the order of delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot {
    /// When it can be received.
    pub(crate) visible_at: Ticks,
    /// Its number; later messages have greater ones.
    pub(crate) sequence: u64,
}

/// What a queue remembers an id of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum IdKind {
    /// A send.
    Request = 1,
    /// A message.
    Deduplication = 2,
}

/// A part of what a dead queue leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueuePart {
    /// The states of its messages.
    States = 0,
    /// Their bodies.
    Bodies = 1,
    /// The messages that wait behind others of their groups.
    NextInGroups = 2,
    /// The groups.
    Groups = 3,
}

impl QueuePart {
    /// Every part.
    pub(crate) const ALL: [Self; 4] =
        [Self::States, Self::Bodies, Self::NextInGroups, Self::Groups];
}

/// How far a queue has come. Nothing lies before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The lowest slot that a message may have.
    pub(crate) slot: Slot,
    /// The lowest sequence that a message may have.
    pub(crate) sequence: u64,
}

/// A range of a dead queue that is being removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeletedRange {
    /// When the queue was deleted or cleared.
    pub(crate) deleted_at: Ticks,
    /// First key not swept yet.
    pub(crate) resume: Bytes,
}

impl Slot {
    /// Before every message.
    pub(crate) const FIRST: Self = Self { visible_at: FIRST_TICK, sequence: 0 };

    /// The next slot.
    pub(crate) fn next(self) -> Self {
        Self { sequence: self.sequence.saturating_add(1), ..self }
    }
}

const FIRST_TICK: Ticks = match Ticks::new(0) {
    Some(ticks) => ticks,
    None => Ticks::MAX,
};

/// Key of the record of a queue.
pub(crate) fn queue(account: &AccountName, name: &QueueName) -> Bytes {
    let mut key = of_account(QUEUE, account);
    order::push_text(&mut key, name.as_str());
    key.into()
}

/// The queues of an account whose names start with `prefix`, by name.
pub(crate) fn queues(account: &AccountName, prefix: &str) -> Span {
    let mut key = of_account(QUEUE, account);
    // The text without its end mark: names are ASCII.
    key.extend_from_slice(prefix.as_bytes());
    Span::prefix(&key)
}

/// Every queue of every account.
pub(crate) fn all_queues() -> Span {
    Span::prefix(&[QUEUE])
}

/// The name in a key of [`queue`].
pub(crate) fn queue_name(key: &[u8]) -> Result<String, QueueError> {
    let name = || {
        let mut rest = RecordReader::of_key(key, QUEUE)?.rest();
        order::take_text(&mut rest)?;
        order::take_text(&mut rest)
    };
    name().ok_or_else(|| QueueError::corrupt("key of a queue"))
}

/// Key of the settings of the service for an account.
pub(crate) fn service_properties(account: &AccountName) -> Bytes {
    of_account(SERVICE_PROPERTIES, account).into()
}

fn of_account(kind: u8, account: &AccountName) -> Vec<u8> {
    let mut key = vec![kind];
    order::push_text(&mut key, account.as_str());
    key
}

fn numbered(kind: u8, numbers: &[u64]) -> Vec<u8> {
    let mut key = Vec::with_capacity(32);
    key.push(kind);
    for number in numbers {
        order::push_u64(&mut key, *number);
    }
    key
}

/// Key of what is left of a dead queue.
pub(crate) fn deleted(id: QueueId, part: QueuePart) -> Bytes {
    let mut key = numbered(DELETED, &[id.0]);
    key.push(part as u8);
    key.into()
}

/// Everything that is left of dead queues.
pub(crate) fn all_deleted() -> Span {
    Span::prefix(&[DELETED])
}

/// The dead queue and the part that a key of [`all_deleted`] names.
pub(crate) fn deleted_range_of(key: &[u8]) -> Result<(QueueId, QueuePart), QueueError> {
    let fields = || {
        let mut fields = RecordReader::of_key(key, DELETED)?;
        let (id, part) = (fields.u64()?, fields.u8()?);
        let part = QueuePart::ALL.into_iter().find(|p| *p as u8 == part)?;
        fields.end((QueueId(id), part))
    };
    fields().ok_or_else(|| QueueError::corrupt("key of a dead queue"))
}

/// Key of the number that the next queue gets.
pub(crate) fn next_queue_id() -> Bytes {
    Bytes::from_static(&[NEXT_QUEUE_ID])
}

/// Key of the number of the latest start.
pub(crate) fn epoch() -> Bytes {
    Bytes::from_static(&[EPOCH])
}

/// Key of the time that was noted last.
pub(crate) fn time() -> Bytes {
    Bytes::from_static(&[TIME])
}

/// Key of the number of messages in a queue. It is there exactly as long as the queue is.
pub(crate) fn count(id: QueueId) -> Bytes {
    numbered(COUNT, &[id.0]).into()
}

/// Key of the cursor of a queue.
pub(crate) fn cursor(id: QueueId) -> Bytes {
    numbered(CURSOR, &[id.0]).into()
}

/// Key of what a queue remembers of an id.
pub(crate) fn deduplication(id: QueueId, what: IdKind, text: &str) -> Bytes {
    let mut key = numbered(DEDUPLICATION, &[id.0]);
    key.push(what as u8);
    key.extend_from_slice(text.as_bytes());
    key.into()
}

/// Key of the mark that says when to forget a key of [`memory`].
pub(crate) fn deduplication_expiry(at: Ticks, record_key: &[u8]) -> Bytes {
    let mut key = numbered(DEDUPLICATION_EXPIRY, &[at.get()]);
    key.extend_from_slice(record_key.get(1..).unwrap_or_default());
    key.into()
}

/// What is to be forgotten at `now`, from `start` on if that is not empty.
pub(crate) fn expired_deduplications(start: &Bytes, now: Ticks) -> Span {
    let first = Bytes::from_static(&[DEDUPLICATION_EXPIRY]);
    Span::new(
        first.max(start.clone()),
        numbered(DEDUPLICATION_EXPIRY, &[now.get().saturating_add(1)]),
    )
}

/// The key of [`memory`] that a key of [`forget`] is about.
pub(crate) fn deduplication_of(expiry_key: &[u8]) -> Result<Bytes, QueueError> {
    let rest = || {
        let mut fields = RecordReader::of_key(expiry_key, DEDUPLICATION_EXPIRY)?;
        fields.u64()?;
        Some([&[DEDUPLICATION], fields.rest()].concat().into())
    };
    rest().ok_or_else(|| QueueError::corrupt("key of what is to be forgotten"))
}

/// Key of what a message carries.
pub(crate) fn body(id: QueueId, sequence: u64) -> Bytes {
    numbered(BODY, &[id.0, sequence]).into()
}

/// What the messages of a queue carry, from a sequence on.
pub(crate) fn bodies_from(id: QueueId, sequence: u64) -> Span {
    Span::new(body(id, sequence), after_prefix(&numbered(BODY, &[id.0])))
}

/// The sequence in a key of [`body`].
pub(crate) fn sequence_of(key: &[u8]) -> Result<u64, QueueError> {
    let fields = || {
        let mut fields = RecordReader::of_key(key, BODY)?;
        fields.u64()?;
        let sequence = fields.u64()?;
        fields.end(sequence)
    };
    fields().ok_or_else(|| QueueError::corrupt("key of a message"))
}

/// Key of the state of a message.
pub(crate) fn state(id: QueueId, slot: Slot) -> Bytes {
    numbered(STATE, &[id.0, slot.visible_at.get(), slot.sequence]).into()
}

/// The states of the messages of a queue, from a slot on.
pub(crate) fn states_from(id: QueueId, slot: Slot) -> Span {
    Span::new(state(id, slot), after_prefix(&numbered(STATE, &[id.0])))
}

/// The slot in a key of [`state`].
pub(crate) fn slot_of(key: &[u8]) -> Result<Slot, QueueError> {
    let fields = || {
        let mut fields = RecordReader::of_key(key, STATE)?;
        fields.u64()?;
        let slot = Slot { visible_at: fields.ticks()?, sequence: fields.u64()? };
        fields.end(slot)
    };
    fields().ok_or_else(|| QueueError::corrupt("key of a state"))
}

/// Key of the message that waits behind the one with this sequence, in the same group.
pub(crate) fn next_in_group(id: QueueId, sequence: u64) -> Bytes {
    numbered(NEXT_IN_GROUP, &[id.0, sequence]).into()
}

/// Key of the last message of a group. It is there exactly as long as the group has a message.
pub(crate) fn group(id: QueueId, group: GroupId) -> Bytes {
    numbered(GROUP, &[id.0, group.0]).into()
}

/// Every key of a part of a queue.
pub(crate) fn part_span(id: QueueId, part: QueuePart) -> Span {
    match part {
        QueuePart::States => states_from(id, Slot::FIRST),
        QueuePart::Bodies => bodies_from(id, 0),
        QueuePart::NextInGroups => Span::prefix(&numbered(NEXT_IN_GROUP, &[id.0])),
        QueuePart::Groups => Span::prefix(&numbered(GROUP, &[id.0])),
    }
}

/// The stored form of a number.
pub(crate) fn encode_number(number: u64) -> Bytes {
    wire::number(VERSION, number)
}

/// A number from its stored form.
///
/// # Errors
/// [`QueueError::Corrupt`]; `what` says which number.
pub(crate) fn decode_number(value: &[u8], what: &str) -> Result<u64, QueueError> {
    let number = RecordReader::of(value, VERSION).and_then(|mut fields| {
        let number = fields.u64()?;
        fields.end(number)
    });
    number.ok_or_else(|| QueueError::corrupt(what))
}

/// The value of a mark that says nothing but that it is there.
pub(crate) fn empty_value() -> Bytes {
    Bytes::from_static(&[VERSION])
}

impl Cursor {
    /// Before every message.
    pub(crate) const START: Self = Self { slot: Slot::FIRST, sequence: 0 };

    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        for number in [self.slot.visible_at.get(), self.slot.sequence, self.sequence] {
            value.extend_from_slice(&number.to_be_bytes());
        }
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn decode(value: &[u8]) -> Result<Self, QueueError> {
        let fields = || {
            let mut fields = RecordReader::of(value, VERSION)?;
            let slot = Slot { visible_at: fields.ticks()?, sequence: fields.u64()? };
            let sequence = fields.u64()?;
            fields.end(Self { slot, sequence })
        };
        fields().ok_or_else(|| QueueError::corrupt("cursor of a queue"))
    }
}

impl DeletedRange {
    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.deleted_at.get().to_be_bytes());
        value.extend_from_slice(&self.resume);
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn decode(value: &[u8]) -> Result<Self, QueueError> {
        let fields = || {
            let mut fields = RecordReader::of(value, VERSION)?;
            let deleted_at = fields.ticks()?;
            Some(Self { deleted_at, resume: Bytes::copy_from_slice(fields.rest()) })
        };
        fields().ok_or_else(|| QueueError::corrupt("record of a dead queue"))
    }
}

#[cfg(test)]
mod tests;
