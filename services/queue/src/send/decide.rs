//! The decision of a send.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use trestle_kv::{ReadId, Reads, Writes};
use trestle_model::{limits::SEND_REQUEST_REMEMBERED, time::Ticks};

use crate::{
    deduplication::{DeduplicationRecord, Sent, SentState},
    delivery::{AttemptError, FencedHead, IndexEntry},
    error::QueueError,
    keys::{self, GroupId, QueueId},
    message_rows::{MessageChange, MessagePosition, write_message},
};

/// The sent messages, none where one was rejected, and the slots that were filled.
type Decided = (Vec<Option<Sent>>, Vec<IndexEntry>);

/// A message ready to be written.
pub(super) struct PreparedMessage {
    pub(super) sent: SentState,
    pub(super) body: Bytes,
    /// The record of its deduplication id.
    pub(super) deduplication: Option<ReadId>,
    /// Its group, and the row of its last message.
    pub(super) group: Option<(GroupId, ReadId)>,
}

/// A send ready to be decided.
pub(super) struct SendPlan {
    pub(super) id: QueueId,
    pub(super) now: Ticks,
    pub(super) head: FencedHead,
    /// The record of the request id.
    pub(super) request: Option<ReadId>,
    /// The deduplication window.
    pub(super) window: Duration,
    /// None where a message is rejected.
    pub(super) messages: Vec<Option<PreparedMessage>>,
}

/// State of the earlier messages of the batch that the later ones depend on.
#[derive(Default)]
struct Earlier<'a> {
    /// The messages by the key of their deduplication id.
    by_deduplication: HashMap<&'a Bytes, SentState>,
    /// The last message of each group.
    last_of: HashMap<GroupId, u64>,
}

impl SendPlan {
    /// The writes, the sent messages, and the slots that were filled.
    pub(super) fn decide(&self, reads: &Reads<'_>) -> Result<(Writes, Decided), AttemptError> {
        let head = self.head.check(reads)?;
        if let Some(request) = self.request
            && let Some(record) = DeduplicationRecord::of(reads.get(request), self.now)?
        {
            return Ok((Writes::new(), (record.sent, Vec::new())));
        }
        let (mut writes, mut sent, mut entries) = (Writes::new(), Vec::new(), Vec::new());
        let (mut added, mut earlier) = (0, Earlier::default());
        for message in &self.messages {
            let Some(message) = message else {
                sent.push(None);
                continue;
            };
            if let Some(first) = self.duplicate_of(message, &earlier, reads)? {
                sent.push(Some(Sent { sent: first, is_duplicate: true }));
                continue;
            }
            let before = last_in_group(message, &earlier, reads)?;
            let state = SentState { waits: before.is_some(), ..message.sent };
            let now_sent = Some(Sent { sent: state, is_duplicate: false });
            if let Some(deduplication) = message.deduplication {
                let key = reads.key(deduplication);
                earlier.by_deduplication.insert(key, state);
                self.put_record(key, self.window, vec![now_sent], &mut writes);
            }
            self.put_message(message, state, before, &mut writes);
            if let Some((group, _)) = message.group {
                earlier.last_of.insert(group, state.slot.sequence);
            }
            let entry = IndexEntry { slot: state.slot, expires_at: state.state.expires_at };
            entries.extend(before.is_none().then_some(entry));
            sent.push(now_sent);
            added += 1;
        }
        if added > 0 {
            head.with_added(added).put(self.id, &mut writes);
        }
        if let Some(request) = self.request {
            let key = reads.key(request);
            self.put_record(key, SEND_REQUEST_REMEMBERED, sent.clone(), &mut writes);
        }
        Ok((writes, (sent, entries)))
    }

    /// The earlier message with the same deduplication id, if it exists.
    fn duplicate_of(
        &self,
        message: &PreparedMessage,
        earlier: &Earlier<'_>,
        reads: &Reads<'_>,
    ) -> Result<Option<SentState>, QueueError> {
        let Some(deduplication) = message.deduplication else { return Ok(None) };
        let in_batch = earlier.by_deduplication.get(reads.key(deduplication)).copied();
        if in_batch.is_some() {
            return Ok(in_batch);
        }
        let stored = DeduplicationRecord::of(reads.get(deduplication), self.now)?;
        let stored = stored.and_then(|record| record.sent.first().copied().flatten());
        Ok(stored.map(|stored| stored.sent))
    }

    /// Writes a message, behind the one with the sequence `before` if that is given.
    fn put_message(
        &self,
        message: &PreparedMessage,
        SentState { slot, state, .. }: SentState,
        before: Option<u64>,
        writes: &mut Writes,
    ) {
        let position = match before {
            None => MessagePosition::Scheduled(slot),
            Some(before) => MessagePosition::BehindInGroup { before, slot },
        };
        let change = MessageChange::insert(position, &state, message.body.clone());
        write_message(self.id, change, writes);
        if let Some((group, _)) = message.group {
            writes.put(keys::group(self.id, group), keys::encode_number(slot.sequence));
        }
    }

    fn put_record(
        &self,
        key: &Bytes,
        window: Duration,
        sent: Vec<Option<Sent>>,
        writes: &mut Writes,
    ) {
        let until = self.now.after(window);
        writes.put(key.clone(), DeduplicationRecord { until, sent }.encode());
        writes.put(keys::deduplication_expiry(until, key), keys::empty_value());
    }
}

/// The sequence of the last message of the group of a message, if the group has any.
fn last_in_group(
    message: &PreparedMessage,
    earlier: &Earlier<'_>,
    reads: &Reads<'_>,
) -> Result<Option<u64>, QueueError> {
    let Some((group, row)) = message.group else { return Ok(None) };
    if let Some(last) = earlier.last_of.get(&group) {
        return Ok(Some(*last));
    }
    let stored = reads.get(row);
    stored.map(|value| keys::decode_number(value, "last message of a group")).transpose()
}
