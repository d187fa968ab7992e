//! Every key of the queue service, and the domains that they belong to.
//!
//! The first byte of a key is its kind. Kinds are part of the disk format: never renumber, never reuse.
//!
//! | kind | key after the kind | value |
//! |---|---|---|
//! | 0x30 queue | account, name | see `record` |
//! | 0x31 deleted range | queue id u64, part u8 | see `deleted_range` |
//! | 0x32 next queue id | nothing | version 1, id u64 |
//! | 0x34 head | queue id u64 | see `head` |
//! | 0x35 cursor | queue id u64 | see `slot` |
//! | 0x36 deduplication record | queue id u64, id kind u8, id text | see `deduplication` |
//! | 0x37 deduplication expiry | ticks u64, queue id u64, id kind u8, id text | version 1 |
//! | 0x38 service properties | account | see `service_properties` of the shared crate |
//! | 0x40 body | queue id u64, sequence u64 | see `stored` |
//! | 0x48 state | queue id u64, visible ticks u64, sequence u64 | see `stored` |
//! | 0x49 next in group | queue id u64, sequence u64 of the message before it | see `groups` |
//! | 0x4A group | queue id u64, group u64 | version 1, sequence u64 of its last message |
//!
//! A queue id is never used twice: a deleted or cleared queue and its successor have no key in common. A sequence is
//! never used twice in a queue. The state of a message is deleted and written again whenever its visibility changes, so
//! the states of a queue are sorted by the time when they become visible.
//!
//! All keys that contain a queue id form one domain; each other key is a domain of its own. No change of a message
//! touches a domain that queues share.

use bytes::Bytes;
use trestle_kv::{Domain, DomainRef, Keyspace, Span, after_prefix, key_domain, order};
use trestle_model::name::{AccountName, QueueName};
use trestle_model::time::Ticks;

use crate::{
    deleted_range::QueuePart,
    error::QueueError,
    slot::Slot,
    wire::{self, RecordReader},
};

const QUEUE: u8 = 0x30;
const DELETED: u8 = 0x31;
const NEXT_QUEUE_ID: u8 = 0x32;
const HEAD: u8 = 0x34;
const CURSOR: u8 = 0x35;
const DEDUPLICATION: u8 = 0x36;
const DEDUPLICATION_EXPIRY: u8 = 0x37;
const SERVICE_PROPERTIES: u8 = 0x38;
const BODY: u8 = 0x40;
const STATE: u8 = 0x48;
const NEXT_IN_GROUP: u8 = 0x49;
const GROUP: u8 = 0x4A;

// 0x39 was the checkpointed time.

/// Version byte of the numbers in this file.
const VERSION: u8 = 1;

/// Whether a key is that of the head of a queue.
pub(crate) fn is_head(key: &[u8]) -> bool {
    key.first() == Some(&HEAD)
}

/// The keyspaces of this service: small records, bodies, and states, each with its own access pattern.
pub const KEYSPACES: &[Keyspace] = &[
    Keyspace { name: "q_meta", kinds: 0x30..=0x3F, domain: domain_of },
    Keyspace { name: "q_msg", kinds: 0x40..=0x47, domain: domain_of },
    Keyspace { name: "q_vis", kinds: 0x48..=0x4F, domain: domain_of },
];

/// The domain of a key: its queue, if it contains a queue id.
fn domain_of(key: &[u8]) -> DomainRef<'_> {
    let id = match key.first() {
        Some(&(DELETED | HEAD | CURSOR | DEDUPLICATION | BODY | STATE | NEXT_IN_GROUP | GROUP)) => {
            key.get(1..9)
        }
        Some(&DEDUPLICATION_EXPIRY) => key.get(9..17),
        _ => None,
    };
    id.map_or_else(|| key_domain(key), |part| DomainRef { group: HEAD, part })
}

/// The domain of every row that is stored under the id of a queue.
pub(crate) fn queue_domain(id: QueueId) -> Domain {
    Domain::new(HEAD, Bytes::copy_from_slice(&id.0.to_be_bytes()))
}

/// The domain of a key that contains no queue id.
pub(crate) fn own_domain(key: &Bytes) -> Domain {
    Domain::of_key(key, domain_of)
}

/// The number of a queue in every key of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct QueueId(pub(crate) u64);

/// The number of an ordering group in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId(pub(crate) u64);

/// The kind of id that a deduplication record belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum IdKind {
    /// A send, by its request id.
    Request = 1,
    /// A message, by its deduplication id.
    Deduplication = 2,
}

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

/// The account and the name in a key of [`queue`].
pub(crate) fn queue_of(key: &[u8]) -> Result<(String, String), QueueError> {
    let names = || {
        let mut rest = RecordReader::of_key(key, QUEUE)?.rest();
        Some((order::take_text(&mut rest)?, order::take_text(&mut rest)?))
    };
    names().ok_or_else(|| QueueError::corrupt("key of a queue"))
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
    // Exactly: a vector with room to spare costs `Bytes` an allocation of its own.
    let mut key = Vec::with_capacity(1 + 8 * numbers.len());
    key.push(kind);
    for number in numbers {
        order::push_u64(&mut key, *number);
    }
    key
}

/// Key of a part of a deleted queue.
pub(crate) fn deleted(id: QueueId, part: QueuePart) -> Bytes {
    let mut key = numbered(DELETED, &[id.0]);
    key.push(part as u8);
    key.into()
}

/// Every part of every deleted queue.
pub(crate) fn all_deleted() -> Span {
    Span::prefix(&[DELETED])
}

/// The deleted queue and the part in a key of [`deleted`].
pub(crate) fn deleted_range_of(key: &[u8]) -> Result<(QueueId, QueuePart), QueueError> {
    let fields = || {
        let mut fields = RecordReader::of_key(key, DELETED)?;
        let (id, part) = (fields.u64()?, fields.u8()?);
        let part = QueuePart::ALL.into_iter().find(|p| *p as u8 == part)?;
        fields.end((QueueId(id), part))
    };
    fields().ok_or_else(|| QueueError::corrupt("key of a deleted queue"))
}

/// Key of the number of the next queue.
pub(crate) fn next_queue_id() -> Bytes {
    Bytes::from_static(&[NEXT_QUEUE_ID])
}

/// Key of the head of a queue. It exists exactly as long as the queue does.
pub(crate) fn head(id: QueueId) -> Bytes {
    numbered(HEAD, &[id.0]).into()
}

/// The head of every queue.
pub(crate) fn all_heads() -> Span {
    Span::prefix(&[HEAD])
}

/// The queue in a key of [`head`].
pub(crate) fn head_of(key: &[u8]) -> Result<QueueId, QueueError> {
    let fields = || {
        let mut fields = RecordReader::of_key(key, HEAD)?;
        let id = QueueId(fields.u64()?);
        fields.end(id)
    };
    fields().ok_or_else(|| QueueError::corrupt("key of a head"))
}

/// Key of the cursor of a queue.
pub(crate) fn cursor(id: QueueId) -> Bytes {
    numbered(CURSOR, &[id.0]).into()
}

/// Key of the deduplication record of an id.
pub(crate) fn deduplication(id: QueueId, kind: IdKind, text: &str) -> Bytes {
    let mut key = numbered(DEDUPLICATION, &[id.0]);
    key.push(kind as u8);
    key.extend_from_slice(text.as_bytes());
    key.into()
}

/// The deduplication records of a queue.
pub(crate) fn deduplications(id: QueueId) -> Span {
    Span::prefix(&numbered(DEDUPLICATION, &[id.0]))
}

/// Key of the row that schedules the removal of a key of [`deduplication`].
pub(crate) fn deduplication_expiry(at: Ticks, record_key: &[u8]) -> Bytes {
    let mut key = numbered(DEDUPLICATION_EXPIRY, &[at.get()]);
    key.extend_from_slice(record_key.get(1..).unwrap_or_default());
    key.into()
}

/// The keys of [`deduplication_expiry`] up to `now`, from `start` on if that is not empty.
pub(crate) fn expired_deduplications(start: &Bytes, now: Ticks) -> Span {
    let first = Bytes::from_static(&[DEDUPLICATION_EXPIRY]);
    let end = numbered(DEDUPLICATION_EXPIRY, &[now.get().saturating_add(1)]);
    Span::new(first.max(start.clone()), end)
}

/// The queue and the key of [`deduplication`] in a key of [`deduplication_expiry`].
pub(crate) fn deduplication_of(expiry_key: &[u8]) -> Result<(QueueId, Bytes), QueueError> {
    let record_key = || {
        let mut fields = RecordReader::of_key(expiry_key, DEDUPLICATION_EXPIRY)?;
        fields.u64()?;
        let rest = fields.rest();
        let id = u64::from_be_bytes(*rest.first_chunk()?);
        Some((QueueId(id), [&[DEDUPLICATION], rest].concat().into()))
    };
    record_key().ok_or_else(|| QueueError::corrupt("key of a deduplication expiry"))
}

/// Key of the body of a message.
pub(crate) fn body(id: QueueId, sequence: u64) -> Bytes {
    numbered(BODY, &[id.0, sequence]).into()
}

/// The bodies of the messages of a queue, from a sequence on.
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

/// Key of the message behind the one with this sequence, in the same group.
pub(crate) fn next_in_group(id: QueueId, sequence: u64) -> Bytes {
    numbered(NEXT_IN_GROUP, &[id.0, sequence]).into()
}

/// Key of the last message of a group. It exists exactly as long as the group has a message.
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
/// [`QueueError::Corrupt`]; `what` names the number.
pub(crate) fn decode_number(value: &[u8], what: &str) -> Result<u64, QueueError> {
    let number = RecordReader::of(value, VERSION).and_then(|mut fields| {
        let number = fields.u64()?;
        fields.end(number)
    });
    number.ok_or_else(|| QueueError::corrupt(what))
}

/// The value of a key whose existence is its only content.
pub(crate) fn empty_value() -> Bytes {
    Bytes::from_static(&[VERSION])
}

#[cfg(test)]
mod tests;
