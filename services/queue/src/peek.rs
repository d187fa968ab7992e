//! Peeking at messages, without receiving them.

use bytes::Bytes;
use trestle_kv::{Entry, ScanLimit, Snapshot, after_key};
use trestle_model::{
    fault::{Fault, Reason},
    name::QueueName,
    page::{self, TokenError},
    time::Ticks,
};

use crate::{
    authorize::QueueAccess,
    deleted_range::QueuePart,
    delivery::AttemptError,
    error::QueueError,
    keys::{self, QueueId},
    messages::{MessageOperations, body_of, find, readable},
    next_in_group::NextInGroup,
    queues::FoundQueue,
    slot::Slot,
    stored::{Body, MessageState},
};

/// Most slots that one peek examines, whatever they contain.
const PEEKED_MAX: usize = 10_000;
/// Most bytes of states that are read at once.
const SCAN_BYTES: usize = 64 * 1024;

/// What a peek is to return.
#[derive(Debug)]
pub(crate) struct Peek {
    /// At most this many messages.
    pub(crate) max: usize,
    /// Where to continue; empty at the start.
    pub(crate) page_token: String,
    /// Whether messages that are not visible are returned too.
    pub(crate) is_every: bool,
}

/// A message without a receipt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Peeked {
    pub(crate) state: MessageState,
    pub(crate) body: Body,
    /// When it becomes visible, if every message is returned; none where the message before it in its group decides
    /// that.
    pub(crate) visible_at: Option<Ticks>,
}

/// A page of messages.
#[derive(Debug, Default)]
pub(crate) struct PeekedPage {
    pub(crate) messages: Vec<Peeked>,
    /// Where the next page starts, if there may be one.
    pub(crate) next_page_token: Option<String>,
}

impl MessageOperations {
    /// Messages, without receiving them.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], [`QueueError::NotOwner`], a token of another peek, or a failed read.
    pub(crate) async fn peek(
        &self,
        access: &QueueAccess,
        name: &QueueName,
        peek: &Peek,
    ) -> Result<PeekedPage, QueueError> {
        self.with_queue(access, name, |queue| self.peek_in(queue, peek)).await
    }

    async fn peek_in(&self, queue: FoundQueue, peek: &Peek) -> Result<PeekedPage, AttemptError> {
        let id = queue.record.id;
        let is_every = [u8::from(peek.is_every)];
        let identity = page::request_identity(&[b"peek", &id.0.to_be_bytes(), &is_every]);
        let start = match &*peek.page_token {
            "" => None,
            token => Some(page::decode(token, identity).map_err(other)?),
        };
        let (messages, next) = match peek.is_every {
            true => self.every(id, start.unwrap_or_default().into(), peek.max).await?,
            false => {
                let after = start.map(|key| keys::slot_of(&key)).transpose();
                let after = after.map_err(|_| other(TokenError::Malformed))?;
                self.visible(&queue, after, peek.max).await?
            }
        };
        let next_page_token = next.map(|next| page::encode(identity, &next));
        Ok(PeekedPage { messages, next_page_token })
    }

    /// Visible messages behind a slot, and the key of the last one that was looked at, unless there is none behind it.
    async fn visible(
        &self,
        queue: &FoundQueue,
        mut after: Option<Slot>,
        max: usize,
    ) -> Result<(Vec<Peeked>, Option<Bytes>), AttemptError> {
        let id = queue.record.id;
        let scheduler = self.schedulers.open(queue).await?;
        let (mut messages, mut looked_at) = (Vec::new(), 0);
        while messages.len() < max && looked_at < PEEKED_MAX {
            let slots = scheduler.look(after, max - messages.len()).await?;
            looked_at += slots.len();
            let snapshot = self.engine.snapshot().await?;
            // The index is complete only for the owner.
            let head = snapshot.get(&keys::head(id)).await?;
            scheduler.fence(queue.record.version).check(head.as_deref())?;
            let Some(last) = slots.last() else { return Ok((messages, None)) };
            after = Some(*last);
            let now = self.engine.now();
            for slot in slots {
                let found = find(&*snapshot, id, slot, now).await?;
                messages.extend(found.map(|(state, body)| Peeked {
                    state,
                    body,
                    visible_at: None,
                }));
            }
        }
        Ok((messages, after.map(|last| keys::state(id, last))))
    }

    /// Messages from a key on, visible or not, and the key behind them, unless they are the last.
    async fn every(
        &self,
        id: QueueId,
        start: Bytes,
        max: usize,
    ) -> Result<(Vec<Peeked>, Option<Bytes>), QueueError> {
        let (snapshot, now) = (self.engine.snapshot().await?, self.engine.now());
        let (mut messages, mut looked_at) = (Vec::new(), 0);
        // In the order of their keys.
        for part in [QueuePart::States, QueuePart::NextInGroups] {
            let mut span = keys::part_span(id, part);
            span.start = span.start.max(start.clone());
            while !span.is_empty() {
                if messages.len() >= max || looked_at >= PEEKED_MAX {
                    return Ok((messages, Some(span.start)));
                }
                let limit = ScanLimit { rows: max - messages.len(), bytes: SCAN_BYTES };
                let scan = snapshot.scan(&span, limit).await?;
                looked_at += scan.entries.len();
                for row in &scan.entries {
                    messages.extend(read(&*snapshot, id, row, now).await?);
                }
                let Some(last) = scan.entries.last().filter(|_| scan.more) else { break };
                span.start = after_key(&last.key).into();
            }
        }
        Ok((messages, None))
    }
}

/// The error of a token that is not of this peek.
fn other(error: TokenError) -> QueueError {
    let reason = Reason::InvalidQueryParameterValue;
    Fault::violation(reason, "page_token", error.to_string()).into()
}

/// The message whose state is in a row, if it has not expired.
///
/// # Errors
/// A failed read.
async fn read(
    snapshot: &dyn Snapshot,
    id: QueueId,
    row: &Entry,
    now: Ticks,
) -> Result<Option<Peeked>, QueueError> {
    let scheduled = keys::slot_of(&row.key).ok();
    let read = match scheduled {
        Some(slot) => MessageState::decode(&row.value).map(|state| (slot.sequence, state)),
        None => NextInGroup::decode(&row.value).map(|next| (next.slot.sequence, next.state)),
    };
    let sequence = scheduled.map_or(0, |slot| slot.sequence);
    let read = readable(sequence, read).filter(|(_, state)| !state.is_expired(now));
    let Some((sequence, state)) = read else { return Ok(None) };
    let visible_at = scheduled.map(|slot| slot.visible_at);
    let body = body_of(snapshot, id, sequence).await?;
    Ok(body.map(|body| Peeked { state, body, visible_at }))
}
