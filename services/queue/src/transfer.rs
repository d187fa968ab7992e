//! Moving messages from one queue to another, each in one step: into a dead-letter queue, and back.

use std::collections::HashMap;

use bytes::Bytes;
use trestle_kv::{Write, transact};
use trestle_service::{clock::Ticks, fault::Violations, name::QueueName};

use crate::{
    authorize::Access,
    error::QueueError,
    expiries::Standing,
    finish::finish,
    groups,
    keys::{self, Place, QueueId},
    messages::{Messages, Miss, find, live},
    queues::Queue,
    stored::{Body, MessageState, Origin},
};

/// Most messages of one commit of a redrive.
const STEP_MAX: usize = 64;

/// What to move.
pub(crate) struct Transfer {
    /// Where the messages are.
    pub(crate) from: Queue,
    /// Where they go.
    pub(crate) to: Queue,
    /// Which of them, if they are still there.
    pub(crate) places: Vec<Place>,
    /// Whether they go into a dead-letter queue, and are to be told where they come from.
    pub(crate) is_burial: bool,
}

/// A transfer ready to be decided.
struct Plan {
    from: QueueId,
    to: QueueId,
    now: Ticks,
    /// The name that dead letters are given as their origin.
    origin: Option<String>,
    /// The sequence of the first in its new queue.
    first: u64,
    places: Vec<Place>,
}

/// What a transfer did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Moved {
    emptied: Vec<Place>,
    filled: Vec<Standing>,
    /// What came to be first of its group where they were.
    promoted: Vec<Standing>,
}

impl Messages {
    /// Moves messages; which places are empty now.
    ///
    /// # Errors
    /// [`Miss::Gone`] when either queue is no more, or a failed commit. Nothing is moved then.
    pub(crate) async fn transfer(&self, transfer: Transfer) -> Result<Vec<Place>, Miss> {
        finish(self.clone().carry_out(transfer)).await
    }

    async fn carry_out(self, transfer: Transfer) -> Result<Vec<Place>, Miss> {
        let Transfer { from, to, places, is_burial } = transfer;
        let source = self.shelves.open(from.record.id).await?;
        let target = self.shelves.open(to.record.id).await?;
        let counter = self.sequences.counter().await?;
        // What lies behind them in their groups becomes visible.
        let _writing_there = source.write(|| (0, ()));
        let (_writing, now, first) = target.write(|| {
            let first = counter.take(places.len());
            (first, first)
        });
        let (from_id, to_id) = (from.record.id, to.record.id);
        let origin = is_burial.then(|| from.name.as_str().to_owned());
        let mut reads = vec![keys::count(from_id), keys::count(to_id)];
        for place in &places {
            reads.push(keys::state(from_id, *place));
            reads.push(keys::body(from_id, place.sequence));
            reads.push(keys::follower(from_id, place.sequence));
        }
        let plan = Plan { from: from_id, to: to_id, now, origin, first, places };
        let moved = transact(&*self.engine, reads, move |current| plan.decide(current)).await??;
        source.change(&moved.emptied, &moved.promoted);
        target.change(&[], &moved.filled);
        Ok(moved.emptied)
    }

    /// Moves up to `max` visible messages of a queue to `destination`, or each back to where it came from; how many.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or a failed commit.
    pub(crate) async fn redrive(
        &self,
        access: &Access,
        name: &QueueName,
        destination: Option<QueueName>,
        max: usize,
    ) -> Result<usize, QueueError> {
        let from = self.queues.open(access, name).await?;
        let to = match &destination {
            Some(destination) => Some(self.queues.open(access, destination).await?),
            None => None,
        };
        let shelf = self.shelves.open(from.record.id).await?;
        let (mut moved, mut after) = (0, None);
        while moved < max {
            let places = shelf.look(after, STEP_MAX.min(max - moved)).await?;
            let Some(last) = places.last() else { break };
            after = Some(*last);
            for (to, places) in self.destinations(&from, to.as_ref(), places).await? {
                let (from, is_burial) = (from.clone(), false);
                match self.transfer(Transfer { from, to, places, is_burial }).await {
                    Ok(emptied) => moved += emptied.len(),
                    // One of the queues went away meanwhile.
                    Err(Miss::Gone) => {}
                    Err(Miss::Failed(error)) => return Err(error),
                }
            }
        }
        Ok(moved)
    }

    /// The places by the queue that their messages go to; those that have nowhere to go are left out.
    async fn destinations(
        &self,
        from: &Queue,
        to: Option<&Queue>,
        places: Vec<Place>,
    ) -> Result<Vec<(Queue, Vec<Place>)>, QueueError> {
        if let Some(to) = to {
            return Ok(vec![(to.clone(), places)]);
        }
        let now = self.clock.now();
        let snapshot = self.engine.snapshot().await?;
        let mut by_origin: HashMap<String, Vec<Place>> = HashMap::new();
        for place in places {
            let found = find(&*snapshot, from.record.id, place, now).await?;
            if let Some(origin) = found.and_then(|(_, body)| body.origin) {
                by_origin.entry(origin.queue).or_default().push(place);
            }
        }
        let mut destinations = Vec::new();
        for (name, places) in by_origin {
            let name = QueueName::parse(name, "origin", &mut Violations::default());
            let Some(name) = name.filter(|name| *name != from.name) else { continue };
            let to = self.queues.find(&from.account, &name).await?;
            destinations.extend(to.map(|to| (to, places)));
        }
        Ok(destinations)
    }
}

impl Plan {
    /// What to write and what moved. `current` is both counts, then of each place the state, the body and what
    /// waits behind it. What is moved leaves its group: it may come back at any time, or never.
    fn decide(&self, current: &[Option<Bytes>]) -> Result<(Vec<Write>, Moved), Miss> {
        let [Some(left), Some(held), messages @ ..] = current else {
            return Err(Miss::Gone);
        };
        let left = keys::decode_number(left, "count of a queue")?;
        let held = keys::decode_number(held, "count of a queue")?;
        let mut writes = Vec::with_capacity(messages.len() * 2 + 2);
        let mut moved = Moved::default();
        let rows = self.places.iter().zip(messages.chunks(3)).zip(self.first..);
        for ((place, values), sequence) in rows {
            let [state, Some(body), follower] = values else { continue };
            // What cannot be read stays, and must not keep the others.
            let Ok(Some(state)) = live(state.as_ref(), self.now) else { continue };
            let Ok(body) = Body::decode(body) else { continue };
            let origin = self
                .origin
                .as_ref()
                .map(|queue| Origin { queue: queue.clone(), dequeue_count: state.dequeue_count });
            let new_place = Place { visible_at: self.now, sequence };
            let new_state = MessageState { generation: 0, dequeue_count: 0, group: None, ..state };
            let new_body = Body { origin, ..body };
            let put = |key, value| Write::Put { key, value };
            writes.push(Write::Delete { key: keys::state(self.from, *place) });
            writes.push(Write::Delete { key: keys::body(self.from, place.sequence) });
            if let Some(group) = state.group {
                let (gone, follower) = ((place.sequence, group), follower.as_ref());
                let next = groups::succeed(self.from, gone, follower, self.now, &mut writes)?;
                moved.promoted.extend(next);
            }
            writes.push(put(keys::state(self.to, new_place), new_state.encode()));
            writes.push(put(keys::body(self.to, sequence), new_body.encode()));
            moved.emptied.push(*place);
            moved.filled.push(Standing { place: new_place, expires_at: state.expires_at });
        }
        let count = u64::try_from(moved.emptied.len()).unwrap_or(u64::MAX);
        if count > 0 {
            let counts = [(self.from, left.saturating_sub(count)), (self.to, held + count)];
            writes.extend(counts.map(|(id, count)| Write::Put {
                key: keys::count(id),
                value: keys::encode_number(count),
            }));
        }
        Ok((writes, moved))
    }
}

#[cfg(test)]
mod tests {
    use trestle_kv::Engine as _;

    use super::*;
    use crate::{
        bench::{Bench, outgoing},
        model::queue_name,
    };

    #[tokio::test]
    async fn what_cannot_be_read_stays_and_keeps_nothing_else() {
        let bench = Bench::new().await;
        bench.create("other").await;
        let sent = bench.send(vec![outgoing(0); 4]).await;
        let id = bench.id().await;
        bench.damage(keys::body(id, sent[0].sent.place.sequence)).await;
        bench.damage(keys::state(id, sent[2].sent.place)).await;
        let redrive = async |to: Option<&str>| {
            let to = to.map(queue_name);
            bench.messages.redrive(&bench.access, &bench.name, to, 1000).await.expect("moved")
        };

        assert_eq!(redrive(None).await, 0, "nobody knows where the others come from");
        assert_eq!(redrive(Some("other")).await, 2);

        let other = Bench { name: queue_name("other"), ..bench.clone() };
        assert_eq!(other.count().await, 2);
        let snapshot = bench.engine.snapshot().await.expect("a snapshot");
        let left = snapshot.get(&keys::count(id)).await.expect("readable").expect("there");
        assert_eq!(keys::decode_number(&left, "count").expect("readable"), 2);
    }
}
