//! Receiving and peeking.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;
use trestle_kv::{Write, transact};
use trestle_service::{clock::Ticks, name::QueueName};

use crate::{
    authorize::Access,
    error::QueueError,
    expiries::Standing,
    finish::finish,
    groups,
    keys::{self, Place, QueueId},
    messages::{Delivered, Messages, find},
    queues::Queue,
    shelf::{Claim, Turn},
    stored::{Body, MessageState},
    transfer::Transfer,
};

/// How often one call asks for messages when all that it got were gone.
const CLAIMS_MAX: usize = 10_000;

/// Most messages that are removed together when some turn out to be over.
const EXPIRED_MAX: usize = 500;
/// Most places that one peek looks at, whatever it finds there.
const PEEKED_MAX: usize = 10_000;

/// What a consumer asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receive {
    /// At most this many messages.
    pub(crate) max: usize,
    /// How long they are hidden from others.
    pub(crate) hidden_for: Duration,
    /// How long to wait for the first.
    pub(crate) wait: Duration,
}

/// What the store says about a claimed place.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    /// Delivered.
    Delivered(Box<Delivered>),
    /// Nothing: deleted, or received by another.
    Nothing,
    /// A message that is over.
    Expired,
    /// A message that was delivered as often as its queue allows.
    Exhausted,
    /// A record that cannot be read; nobody can be given it.
    Unreadable,
}

/// Which places are empty, and which messages came to be first of their groups.
type Removed = (Vec<Place>, Vec<Standing>);

/// A receive, ready to be decided.
struct Plan {
    id: QueueId,
    now: Ticks,
    hidden_until: Ticks,
    /// Deliveries before a message goes elsewhere.
    dequeue_count_max: Option<u32>,
    places: Vec<Place>,
}

impl Messages {
    /// Receives messages that are visible; none where there are none in time, or when the process is about to end.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or a failed commit.
    pub(crate) async fn receive(
        &self,
        access: &Access,
        name: &QueueName,
        request: Receive,
    ) -> Result<Vec<Delivered>, QueueError> {
        let deadline = Instant::now() + request.wait;
        for _ in 0..CLAIMS_MAX {
            let queue = self.queues.open(access, name).await?;
            let shelf = self.shelves.open(queue.record.id).await?;
            let turn = tokio::select! {
                // What is there is taken first, also by the last call.
                biased;
                turn = shelf.claim(request.max, deadline) => turn?,
                () = self.leaving.cancelled() => Turn::Empty,
            };
            let claim = match turn {
                Turn::Claimed(claim) => claim,
                Turn::Empty => break,
                Turn::Closed => continue,
            };
            // It may have been taken back while the call waited. What is claimed is free again then.
            let queue = match access.is_by_policy() {
                true => self.queues.open(access, name).await?,
                false => queue,
            };
            if queue.record.id != claim.shelf().id() {
                continue;
            }
            let taken = finish(self.clone().take(queue, claim, request.hidden_for)).await?;
            if !taken.is_empty() {
                return Ok(taken);
            }
        }
        Ok(Vec::new())
    }

    /// Hides what was claimed, as far as the store agrees.
    async fn take(
        self,
        queue: Queue,
        mut claim: Claim,
        hidden_for: Duration,
    ) -> Result<Vec<Delivered>, QueueError> {
        let id = queue.record.id;
        let grave = self.dead_letters_of(&queue).await?;
        let now = self.clock.now();
        let plan = Plan {
            id,
            now,
            hidden_until: now.after(hidden_for),
            dequeue_count_max: grave.as_ref().map(|(_, max)| *max),
            places: claim.places().to_vec(),
        };
        let keys = |place: &Place| [keys::state(id, *place), keys::body(id, place.sequence)];
        let reads = claim.places().iter().flat_map(keys).collect();
        let found = transact(&*self.engine, reads, move |current| {
            Ok::<_, std::convert::Infallible>(plan.decide(current))
        });
        let Ok(found) = found.await?;

        let mut delivered = Vec::new();
        let (mut expired, mut exhausted) = (Vec::new(), Vec::new());
        for (place, found) in claim.places().iter().copied().zip(found) {
            match found {
                Found::Delivered(message) => delivered.push(*message),
                Found::Expired => expired.push(place),
                Found::Exhausted => exhausted.push(place),
                Found::Nothing => {}
                Found::Unreadable => {
                    tracing::error!(sequence = place.sequence, "a message cannot be read");
                }
            }
        }
        let is_left = |place: &&Place| expired.contains(place) || exhausted.contains(place);
        let emptied: Vec<_> = claim.places().iter().filter(|p| !is_left(p)).copied().collect();
        let filled: Vec<_> = delivered.iter().map(Delivered::standing).collect();
        claim.settle(&emptied, &filled);
        self.note_if_far(claim.shelf());
        if !expired.is_empty() {
            self.bury_expired(id, &mut claim, expired).await;
        }
        if let Some((grave, _)) = grave.filter(|_| !exhausted.is_empty()) {
            self.bury_exhausted(queue, grave, &mut claim, exhausted).await;
        }
        Ok(delivered)
    }

    /// Removes what is over, and what may be over behind it. A failure only leaves it for the next consumer.
    async fn bury_expired(&self, id: QueueId, claim: &mut Claim, expired: Vec<Place>) {
        let shelf = Arc::clone(claim.shelf());
        // Many messages expire together: one commit for each handful would hold up the consumer.
        let behind = shelf.look(expired.last().copied(), EXPIRED_MAX).await.unwrap_or_default();
        let places = expired.into_iter().chain(behind).collect();
        match self.remove_expired(id, places).await {
            Ok(removed) => claim.settle(&removed, &[]),
            Err(error) => tracing::warn!(%error, "expired messages cannot be removed"),
        }
    }

    /// Moves what was delivered too often. A failure only leaves it for the next consumer.
    async fn bury_exhausted(&self, from: Queue, to: Queue, claim: &mut Claim, places: Vec<Place>) {
        match self.transfer(Transfer { from, to, places, is_burial: true }).await {
            Ok(moved) => claim.settle(&moved, &[]),
            Err(error) => tracing::warn!(?error, "dead letters cannot be moved"),
        }
    }

    /// Where the messages of a queue go that were received too often, if that queue is there.
    async fn dead_letters_of(&self, queue: &Queue) -> Result<Option<(Queue, u32)>, QueueError> {
        let Some(policy) = &queue.record.settings.dead_letter else {
            return Ok(None);
        };
        let grave = self.queues.find(&queue.account, &policy.queue).await?;
        Ok(grave.map(|grave| (grave, policy.dequeue_count_max)))
    }

    /// Messages that are visible, without receiving them.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or a failed read.
    pub(crate) async fn peek(
        &self,
        access: &Access,
        name: &QueueName,
        max: usize,
    ) -> Result<Vec<(MessageState, Body)>, QueueError> {
        let queue = self.queues.open(access, name).await?;
        let id = queue.record.id;
        let shelf = self.shelves.open(id).await?;
        let (mut messages, mut after, mut looked_at) = (Vec::new(), None, 0);
        while messages.len() < max && looked_at < PEEKED_MAX {
            let places = shelf.look(after, max - messages.len()).await?;
            looked_at += places.len();
            let Some(last) = places.last() else { break };
            after = Some(*last);
            let now = self.clock.now();
            let snapshot = self.engine.snapshot().await?;
            for place in places {
                messages.extend(find(&*snapshot, id, place, now).await?);
            }
        }
        Ok(messages)
    }

    /// Removes messages that are over; which of the places are empty now.
    ///
    /// # Errors
    /// A failed commit.
    pub(crate) async fn remove_expired(
        &self,
        id: QueueId,
        places: Vec<Place>,
    ) -> Result<Vec<Place>, QueueError> {
        finish(self.clone().carry_away(id, places)).await
    }

    async fn carry_away(self, id: QueueId, places: Vec<Place>) -> Result<Vec<Place>, QueueError> {
        let shelf = self.shelves.open(id).await?;
        // What lies behind them in their groups becomes visible.
        let (_writing, now, ()) = shelf.write(|| (0, ()));
        let mut reads = vec![keys::count(id)];
        let keys = |place: &Place| [keys::state(id, *place), keys::follower(id, place.sequence)];
        reads.extend(places.iter().flat_map(keys));
        let removed = transact(&*self.engine, reads, move |current| {
            decide_removal(id, now, &places, current)
        });
        let (empty, promoted) = removed.await??;
        shelf.change(&empty, &promoted);
        self.note_if_far(&shelf);
        Ok(empty)
    }
}

impl Plan {
    /// What to write, and what was found at each place. `current` is the state and the body of each.
    fn decide(&self, current: &[Option<Bytes>]) -> (Vec<Write>, Vec<Found>) {
        let mut writes = Vec::with_capacity(self.places.len() * 2);
        let found = self.places.iter().zip(current.chunks(2)).map(|(place, values)| {
            let (state, body) = match values {
                [Some(state), Some(body)] => (state, body),
                [Some(_), None] => return Found::Unreadable,
                _ => return Found::Nothing,
            };
            let Ok((state, body)) =
                MessageState::decode(state).and_then(|state| Ok((state, Body::decode(body)?)))
            else {
                return Found::Unreadable;
            };
            if state.is_expired(self.now) {
                return Found::Expired;
            }
            if self.dequeue_count_max.is_some_and(|max| state.dequeue_count >= max) {
                return Found::Exhausted;
            }
            let state = MessageState {
                generation: state.generation.wrapping_add(1),
                dequeue_count: state.dequeue_count.saturating_add(1),
                ..state
            };
            let hidden = Place { visible_at: self.hidden_until, sequence: place.sequence };
            writes.push(Write::Delete { key: keys::state(self.id, *place) });
            writes.push(Write::Put { key: keys::state(self.id, hidden), value: state.encode() });
            Found::Delivered(Box::new(Delivered { place: hidden, state, body }))
        });
        let found = found.collect();
        (writes, found)
    }
}

/// The writes that remove those of the places that hold something expired or nothing, these places, and what came to be
/// first of its group. `current` is the count, then each state and what waits behind it.
fn decide_removal(
    id: QueueId,
    now: Ticks,
    places: &[Place],
    current: &[Option<Bytes>],
) -> Result<(Vec<Write>, Removed), QueueError> {
    let mut promoted = Vec::new();
    let Some((Some(count), rows)) = current.split_first() else {
        // The queue is no more; its sweeper removes everything.
        return Ok((Vec::new(), (places.to_vec(), promoted)));
    };
    let count = keys::decode_number(count, "count of a queue")?;
    let (mut writes, mut removed, mut empty) = (Vec::new(), 0, Vec::new());
    for (place, row) in places.iter().zip(rows.chunks(2)) {
        let [Some(state), follower] = row else {
            empty.push(*place);
            continue;
        };
        let state = MessageState::decode(state)?;
        if state.is_expired(now) {
            writes.push(Write::Delete { key: keys::state(id, *place) });
            writes.push(Write::Delete { key: keys::body(id, place.sequence) });
            if let Some(group) = state.group {
                let (gone, follower) = ((place.sequence, group), follower.as_ref());
                promoted.extend(groups::succeed(id, gone, follower, now, &mut writes)?);
            }
            empty.push(*place);
            removed += 1;
        }
    }
    if removed > 0 {
        let value = keys::encode_number(count.saturating_sub(removed));
        writes.push(Write::Put { key: keys::count(id), value });
    }
    Ok((writes, (empty, promoted)))
}

#[cfg(test)]
mod tests {
    use trestle_service::clock::Ticks;
    use uuid::Uuid;

    use super::*;
    use crate::stored::Payload;

    const ID: QueueId = QueueId(3);

    fn at(ticks: u64) -> Ticks {
        Ticks::new(ticks).expect("in range")
    }

    fn state(expires_at: u64, dequeue_count: u32) -> MessageState {
        MessageState {
            id: Uuid::from_u128(1),
            inserted_at: at(1),
            expires_at: Some(at(expires_at)),
            generation: 7,
            dequeue_count,
            group: None,
        }
    }

    fn body() -> Body {
        let payload = Payload::Text(Bytes::from_static(b"work"));
        Body { inserted_at: at(1), origin: None, group: None, payload }
    }

    fn found(state: Option<MessageState>, body: Option<Body>) -> (Vec<Write>, Found) {
        let place = Place { visible_at: at(10), sequence: 5 };
        let plan = Plan {
            id: ID,
            now: at(20),
            hidden_until: at(50),
            dequeue_count_max: Some(3),
            places: vec![place],
        };
        let current = [state.map(|state| state.encode()), body.map(|body| body.encode())];
        let (writes, mut found) = plan.decide(&current);
        (writes, found.remove(0))
    }

    #[test]
    fn a_delivery_moves_the_state_and_counts() {
        let (writes, found) = found(Some(state(99, 2)), Some(body()));

        let hidden = Place { visible_at: at(50), sequence: 5 };
        let new = MessageState { generation: 8, dequeue_count: 3, ..state(99, 2) };
        let old = Place { visible_at: at(10), sequence: 5 };
        let delivered = Delivered { place: hidden, state: new, body: body() };
        assert_eq!(found, Found::Delivered(Box::new(delivered)));
        assert_eq!(
            writes,
            [
                Write::Delete { key: keys::state(ID, old) },
                Write::Put { key: keys::state(ID, hidden), value: new.encode() },
            ]
        );
    }

    #[test]
    fn what_cannot_be_delivered_is_left_as_it_is() {
        assert_eq!(found(None, None), (Vec::new(), Found::Nothing));
        assert_eq!(found(None, Some(body())), (Vec::new(), Found::Nothing));
        assert_eq!(found(Some(state(20, 0)), Some(body())), (Vec::new(), Found::Expired));
        assert_eq!(found(Some(state(99, 3)), Some(body())), (Vec::new(), Found::Exhausted));
        assert_eq!(found(Some(state(99, 0)), None), (Vec::new(), Found::Unreadable));
    }

    #[test]
    fn only_what_is_expired_is_removed_and_counted_off() {
        let place = |sequence| Place { visible_at: at(10), sequence };
        let current = [
            Some(keys::encode_number(5)),
            Some(state(20, 0).encode()),
            None,
            Some(state(21, 0).encode()),
            None,
            None,
            None,
        ];

        let places = [place(1), place(2), place(3)];
        let (writes, (empty, _)) = decide_removal(ID, at(20), &places, &current).expect("readable");

        assert_eq!(empty, [place(1), place(3)]);
        assert_eq!(
            writes,
            [
                Write::Delete { key: keys::state(ID, place(1)) },
                Write::Delete { key: keys::body(ID, 1) },
                Write::Put { key: keys::count(ID), value: keys::encode_number(4) },
            ]
        );
    }

    #[test]
    fn nothing_is_removed_from_a_queue_that_is_no_more() {
        let place = Place { visible_at: at(10), sequence: 1 };
        let current = [None, Some(state(20, 0).encode()), None];

        let (writes, (empty, _)) =
            decide_removal(ID, at(20), &[place], &current).expect("readable");

        assert_eq!((writes, empty), (Vec::new(), vec![place]));
    }
}
