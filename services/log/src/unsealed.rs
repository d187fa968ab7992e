//! Which streams of this process have records that are not sealed, and who waits for new ones. It can be reconstructed
//! from the heads of the streams.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, watch};
use trestle_model::time::Ticks;

use crate::{
    stream::{Head, RollPolicy, StreamId},
    streams::OpenStream,
};

/// Most streams whose readers are remembered while none reads; more are forgotten.
const WATCHED_IDLE_MAX: usize = 1024;
/// How long after its time the records of a stream are sealed by any process.
const LATE: Duration = Duration::from_secs(30);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct UnsealedStreams {
    state: Mutex<UnsealedState>,
    /// Wakes the sealer: a stream has reached the bytes of its policy.
    is_due: Notify,
}

#[derive(Debug, Default)]
struct UnsealedState {
    streams: HashMap<StreamId, UnsealedStream>,
    watched: HashMap<StreamId, watch::Sender<u64>>,
}

/// A stream with records that are not sealed.
#[derive(Debug)]
struct UnsealedStream {
    stream: Arc<OpenStream>,
    /// The sequence of the next record.
    next: u64,
    bytes: u64,
    /// When the oldest of them arrived.
    since: u64,
}

impl UnsealedStream {
    /// Whether its records are to be sealed.
    fn is_due(&self, now: Ticks) -> bool {
        self.is_due_for(now, Duration::ZERO)
    }

    /// Whether they have been due at least so long, as far as is known: each seal sets their age back.
    fn is_due_for(&self, now: Ticks, time: Duration) -> bool {
        let since = Ticks::new(self.since).unwrap_or(now);
        let RollPolicy { max_age, max_bytes } = self.stream.record.settings.roll;
        let from = if self.bytes >= max_bytes { Duration::ZERO } else { max_age };
        now.since(since) >= from + time
    }
}

impl UnsealedStreams {
    fn state(&self) -> MutexGuard<'_, UnsealedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the position of a stream after a change, and wakes who waits for it.
    pub(crate) fn changed(&self, stream: &Arc<OpenStream>, head: &Head) {
        let (id, roll) = (stream.record.id, stream.record.settings.roll);
        let mut state = self.state();
        if head.unsealed_records() == 0 {
            state.streams.remove(&id);
        } else {
            let (next, bytes, since) =
                (head.next_sequence, head.unsealed_bytes, head.unsealed_since);
            let stream = Arc::clone(stream);
            let changed = UnsealedStream { stream, next, bytes, since };
            // A position that was read before an append may come after it.
            if state.streams.get(&id).is_none_or(|before| before.next <= next) {
                state.streams.insert(id, changed);
            }
        }
        if let Some(watched) = state.watched.get(&id) {
            watched.send_if_modified(|next| {
                let is_newer = head.next_sequence > *next;
                *next = head.next_sequence.max(*next);
                is_newer
            });
        }
        drop(state);
        if head.unsealed_bytes >= roll.max_bytes {
            self.is_due.notify_one();
        }
    }

    /// The streams that have unsealed records here, or followers.
    pub(crate) fn known(&self) -> HashSet<StreamId> {
        let state = self.state();
        state.streams.keys().chain(state.watched.keys()).copied().collect()
    }

    /// Forgets a deleted stream, and ends the wait of who waits for it.
    pub(crate) fn deleted(&self, id: StreamId) {
        let mut state = self.state();
        state.streams.remove(&id);
        state.watched.remove(&id);
    }

    /// The next sequence of a stream, as it changes in this process.
    pub(crate) fn watch(&self, id: StreamId, next: u64) -> watch::Receiver<u64> {
        let mut state = self.state();
        if state.watched.len() >= WATCHED_IDLE_MAX {
            state.watched.retain(|_, sender| sender.receiver_count() > 0);
        }
        state.watched.entry(id).or_insert_with(|| watch::channel(next).0).subscribe()
    }

    /// The streams that this process is to seal, the oldest records first: its own, then those of others that are late.
    pub(crate) fn due(
        &self,
        now: Ticks,
        is_ours: impl Fn(StreamId) -> bool,
    ) -> Vec<Arc<OpenStream>> {
        let state = self.state();
        let due = state.streams.values().filter(|it| it.is_due(now));
        let due = due.map(|it| (!is_ours(it.stream.record.id), it));
        let mut due: Vec<_> =
            due.filter(|(is_foreign, it)| !is_foreign || it.is_due_for(now, LATE)).collect();
        due.sort_unstable_by_key(|(is_foreign, it)| (*is_foreign, it.since));
        due.into_iter().map(|(_, it)| Arc::clone(&it.stream)).collect()
    }

    /// Waits until a stream has reached the bytes of its policy, at most for this time.
    pub(crate) async fn wait(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.is_due.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        names::StreamName,
        stream::{RollPolicy, StreamRecord, StreamSettings},
    };

    fn ticks(seconds: u64) -> Ticks {
        Ticks::new(1).expect("in range").after(Duration::from_secs(seconds))
    }

    fn head(next: u64, bytes: u64, since: u64) -> Head {
        let unsealed_since = ticks(since).get();
        Head { next_sequence: next, unsealed_bytes: bytes, unsealed_since, ..Head::default() }
    }

    fn stream(id: u64) -> Arc<OpenStream> {
        let roll = RollPolicy { max_age: Duration::from_secs(10), max_bytes: 100 };
        let settings = StreamSettings { roll, ..StreamSettings::default() };
        Arc::new(OpenStream {
            account: trestle_model::name::AccountName::parse("acme").expect("a valid name"),
            name: StreamName::stored(format!("stream-{id}")),
            record: StreamRecord::new(StreamId(id), ticks(0), settings),
        })
    }

    fn due(streams: &UnsealedStreams, seconds: u64) -> Vec<u64> {
        due_of(streams, seconds, true)
    }

    fn due_of(streams: &UnsealedStreams, seconds: u64, are_ours: bool) -> Vec<u64> {
        let due = streams.due(ticks(seconds), |_| are_ours);
        due.iter().map(|stream| stream.record.id.0).collect()
    }

    #[test]
    fn a_stream_is_due_by_age_or_bytes_until_it_is_sealed() {
        let streams = UnsealedStreams::default();
        streams.changed(&stream(1), &head(1, 99, 5));
        streams.changed(&stream(2), &head(1, 99, 0));
        streams.changed(&stream(3), &head(1, 100, 9));

        assert_eq!(due(&streams, 9), [3]);
        assert_eq!(due(&streams, 10), [2, 3]);

        streams.changed(&stream(2), &Head { sealed_before: 1, ..head(1, 0, 0) });
        streams.deleted(StreamId(3));
        assert_eq!(due(&streams, 15), [1]);
    }

    #[test]
    fn streams_of_other_processes_are_due_once_they_are_late() {
        let streams = UnsealedStreams::default();
        streams.changed(&stream(1), &head(1, 99, 0));
        streams.changed(&stream(2), &head(1, 99, 1));
        streams.changed(&stream(3), &head(1, 100, 5));

        assert_eq!(due_of(&streams, 34, false), [0; 0]);
        assert_eq!(due_of(&streams, 35, false), [3], "by its bytes");
        assert_eq!(due_of(&streams, 40, false), [1, 3]);
        assert_eq!(due_of(&streams, 41, false), [1, 2, 3]);
        let due = streams.due(ticks(41), |stream| stream.0 == 3);
        let due: Vec<_> = due.iter().map(|stream| stream.record.id.0).collect();
        assert_eq!(due, [3, 1, 2], "its own first");
    }

    #[test]
    fn a_position_that_was_read_before_an_append_does_not_replace_it() {
        let streams = UnsealedStreams::default();
        streams.changed(&stream(1), &head(2, 100, 0));
        streams.changed(&stream(1), &head(1, 50, 0));
        assert_eq!(due(&streams, 1), [1]);
    }

    #[test]
    fn readers_see_the_next_sequence_and_the_end_of_a_stream() {
        let streams = UnsealedStreams::default();
        let mut reader = streams.watch(StreamId(1), 4);
        assert_eq!(*reader.borrow_and_update(), 4);

        streams.changed(&stream(1), &head(7, 1, 0));
        assert_eq!(*reader.borrow_and_update(), 7);
        // An older change that is reported late.
        streams.changed(&stream(1), &head(6, 1, 0));
        assert!(!reader.has_changed().expect("the stream exists"));

        streams.deleted(StreamId(1));
        assert!(reader.has_changed().is_err());
    }
}
