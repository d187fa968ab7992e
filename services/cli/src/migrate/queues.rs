//! Queues on our side: made ready, filled, looked at.
//!
//! Each message carries its id of the source as deduplication id, and its queue remembers those
//! while the import lasts, so that a message is queued once however often it is sent.

use std::{collections::HashSet, sync::Arc, time::Duration};

use prost_types::FieldMask;
use tonic::{Code, Status};
use trestle_proto::queue::v1::{
    CreateQueueRequest, GetQueueRequest, NoExpiry, OutgoingMessage, PeekMessagesRequest, Queue,
    SendMessagesRequest, SetQueueAccessPoliciesRequest, UpdateQueueRequest, message,
    outgoing_message::{Body, Expiration},
    queue_service_client::QueueServiceClient,
    send_result::Outcome,
};
use trestle_service::{
    clock::{Clock as _, SystemClock, Ticks},
    limits::DEDUPLICATION_WINDOW_MAX,
};

use super::{
    digest::{self, Hash},
    notes::{Ledger, Left, QueueNotes},
    plan::PlannedQueue,
};
use crate::{
    client::{Link, Random, Retries, Session, is_retryable, repeated},
    errors::CliError,
    upload::describe,
};

/// Most messages of one call. The server's limit.
pub(super) const BATCH_MAX: usize = 100;
/// Most bytes of the messages of one call, under the server's limit.
pub(super) const BATCH_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Most messages of one peek. The server's limit.
const PEEK_MAX: u32 = 32;
/// How many of the first messages are remembered to compare a peek with: more than it shows, since
/// some may expire meanwhile.
const FIRST_MAX: usize = 128;
/// Shortest life of a message.
const LIFE_MIN: Duration = Duration::from_secs(1);

/// A message of the source.
#[derive(Debug, Clone)]
pub(super) struct Carried {
    /// Its id there.
    pub(super) id: String,
    /// Its number in the source, rising; 0 where there is none.
    pub(super) place: u64,
    /// What it carries, or why that is not known.
    pub(super) body: Result<Body, String>,
    /// Hidden until then.
    pub(super) visible: Option<Ticks>,
    /// Gone from then on; none for never.
    pub(super) expires: Option<Ticks>,
    /// How often it was received.
    pub(super) dequeue_count: u32,
}

impl Carried {
    /// Bytes of its body.
    pub(super) fn len(&self) -> usize {
        self.body.as_ref().map_or(0, |body| bytes_of(body).len())
    }
}

fn bytes_of(body: &Body) -> &[u8] {
    match body {
        Body::Text(text) => text.as_bytes(),
        Body::Data(data) => data,
    }
}

/// Whether the source may give a message once more after it was sent and noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    Never,
    Possible,
}

/// The queue of a name, for people.
pub(super) fn whose(name: &str) -> String {
    format!("queue `{name}`")
}

/// Queues of an endpoint.
#[derive(Clone)]
pub(super) struct Queues {
    session: Session,
    client: QueueServiceClient<Link>,
}

impl Queues {
    pub(super) fn new(session: &Session) -> Self {
        Self { session: session.clone(), client: QueueServiceClient::new(session.link()) }
    }

    /// A queue as it is, and how many messages it holds; none where there is none.
    pub(super) async fn get(&mut self, name: &str) -> Result<Option<(Queue, u64)>, CliError> {
        let Self { session, client } = self;
        let request = GetQueueRequest { queue: name.to_owned() };
        match repeated(async || client.get_queue(session.request(request.clone())).await).await {
            Ok(answer) => {
                let answer = answer.into_inner();
                let messages = answer.stats.unwrap_or_default().approximate_message_count;
                Ok(Some((answer.queue.unwrap_or_default(), messages)))
            }
            Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => {
                Ok(None)
            }
            Err(status) => Err(status.into()),
        }
    }

    /// Makes a queue ready to be filled: there, with metadata and policies, and remembering
    /// deduplication ids. What of it the server refuses.
    pub(super) async fn open(&mut self, queue: &PlannedQueue) -> Result<Option<Left>, CliError> {
        let name = queue.name.clone();
        let metadata = queue.metadata.clone();
        let deduplication_window = Some(super::span(DEDUPLICATION_WINDOW_MAX));
        let wanted = Queue { name, metadata, deduplication_window, ..Queue::default() };
        let made = self.make(wanted).await;
        let left = |which: &str, status: &Status| {
            let (which, why) = (which.to_owned(), status.message().to_owned());
            Ok(Some(Left { whose: whose(&queue.name), which, why }))
        };
        match made {
            Ok(()) => {}
            Err(status) if status.code() == Code::InvalidArgument => return left("", &status),
            Err(status) => return Err(status.into()),
        }
        if queue.policies.is_empty() {
            return Ok(None);
        }
        let Self { session, client } = self;
        let (queue_name, policies) = (queue.name.clone(), queue.policies.clone());
        let request = SetQueueAccessPoliciesRequest { queue: queue_name, policies };
        let set = repeated(async || {
            client.set_queue_access_policies(session.request(request.clone())).await
        });
        match set.await {
            Ok(_) => Ok(None),
            Err(status)
                if matches!(status.code(), Code::InvalidArgument | Code::PermissionDenied) =>
            {
                left("access policies", &status)
            }
            Err(status) => Err(status.into()),
        }
    }

    /// Gives a queue back the deduplication window that it had before the import.
    pub(super) async fn settle(
        &mut self,
        name: &str,
        window_ms: Option<u64>,
    ) -> Result<(), CliError> {
        let deduplication_window = window_ms.map(|ms| super::span(Duration::from_millis(ms)));
        let queue = Queue { name: name.to_owned(), deduplication_window, ..Queue::default() };
        Ok(self.update(queue, &["deduplication_window"]).await?)
    }

    /// Creates a queue; one that is there with other settings gets these.
    async fn make(&mut self, wanted: Queue) -> Result<(), Status> {
        let Self { session, client } = self;
        let request = CreateQueueRequest { queue: Some(wanted.clone()) };
        let made = repeated(async || client.create_queue(session.request(request.clone())).await);
        match made.await {
            Ok(_) => Ok(()),
            Err(status) if status.code() == Code::AlreadyExists => {
                self.update(wanted, &["metadata", "deduplication_window"]).await
            }
            Err(status) => Err(status),
        }
    }

    async fn update(&mut self, queue: Queue, mask: &[&str]) -> Result<(), Status> {
        let Self { session, client } = self;
        let paths = mask.iter().map(|path| (*path).to_owned()).collect();
        let update_mask = Some(FieldMask { paths });
        let request = UpdateQueueRequest { queue: Some(queue), update_mask };
        repeated(async || client.update_queue(session.request(request.clone())).await).await?;
        Ok(())
    }

    /// Whether the first messages of a queue are those that were sent first.
    pub(super) async fn begins_with(
        &mut self,
        name: &str,
        first: &[Hash],
    ) -> Result<bool, CliError> {
        let Self { session, client } = self;
        let request = PeekMessagesRequest { queue: name.to_owned(), max_messages: Some(PEEK_MAX) };
        let peek = repeated(async || client.peek_messages(session.request(request.clone())).await);
        let peeked = peek.await?.into_inner().messages;
        let first: HashSet<_> = first.iter().copied().collect();
        Ok(peeked.into_iter().all(|peeked| {
            let hash = match &peeked.body {
                Some(message::Body::Text(text)) => digest::of_message(text.as_bytes()),
                Some(message::Body::Data(data)) => digest::of_message(data),
                None => digest::of_message(&[]),
            };
            first.contains(&hash)
        }))
    }

    /// Sends messages of one queue, again if that may help, and notes what became of them; the ids
    /// of those that are here now.
    pub(super) async fn send(
        &mut self,
        ledger: &Arc<Ledger>,
        queue: &str,
        batch: Vec<Carried>,
        again: Again,
    ) -> Result<HashSet<String>, CliError> {
        let counted = ledger.read(|notes| {
            notes.queues.get(queue).map(|queue| queue.counted.clone()).unwrap_or_default()
        });
        let now = SystemClock.now();
        let (mut sent, mut messages) = (Vec::new(), Vec::new());
        let mut delta = Delta::default();
        for carried in batch {
            delta.see(&carried);
            let body = match carried.body {
                Ok(body) => body,
                Err(why) => {
                    delta.refused.push((which(&carried.id), why));
                    continue;
                }
            };
            let Some((life, delay)) = times(&carried.visible, &carried.expires, now) else {
                delta.expired = delta.expired.saturating_add(1);
                continue;
            };
            sent.push(Sent {
                id: carried.id.clone(),
                hash: digest::of_message(bytes_of(&body)),
                at_once: delay.is_none(),
                received: carried.dequeue_count > 0,
            });
            messages.push(OutgoingMessage {
                body: Some(body),
                visibility_delay: delay,
                expiration: Some(life),
                deduplication_id: carried.id,
                ordering_group: String::new(),
            });
        }
        let mut taken = HashSet::new();
        if !messages.is_empty() {
            let outcomes = self.deliver(queue, messages).await?;
            for (sent, outcome) in sent.iter().zip(outcomes) {
                if delta.book(sent, outcome, &counted) {
                    taken.insert(sent.id.clone());
                }
            }
        }
        ledger.change(|notes| {
            let left = delta.refused.clone();
            let queue_notes = notes.queues.entry(queue.to_owned()).or_default();
            delta.add_to(queue_notes);
            if again == Again::Possible {
                let new = taken.iter().filter(|id| !counted.contains(id));
                queue_notes.counted.extend(new.cloned());
            }
            for (which, why) in left {
                notes.leave(Left { whose: whose(queue), which, why });
            }
        });
        Ok(taken)
    }

    async fn deliver(
        &mut self,
        queue: &str,
        messages: Vec<OutgoingMessage>,
    ) -> Result<Vec<Outcome>, CliError> {
        let mut retries = Retries::new(Random::from_system());
        loop {
            let (queue, messages) = (queue.to_owned(), messages.clone());
            let request = SendMessagesRequest { queue, messages, request_id: String::new() };
            let request = self.session.request(request);
            let failed = match self.client.send_messages(request).await {
                Ok(answer) => {
                    let results = answer.into_inner().results.into_iter();
                    let outcomes: Option<Vec<_>> = results.map(|result| result.outcome).collect();
                    let outcomes = outcomes.ok_or_else(|| {
                        CliError::Protocol("a message without an outcome".to_owned())
                    })?;
                    match passing(&outcomes) {
                        None => return Ok(outcomes),
                        Some(status) => status,
                    }
                }
                Err(status) => status,
            };
            match retries.next(&failed) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(failed.into()),
            }
        }
    }
}

/// The failure of a message that may go better the next time.
fn passing(outcomes: &[Outcome]) -> Option<Status> {
    outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Error(error) => {
            let status = Status::new(Code::from_i32(error.code), error.message.clone());
            is_retryable(&status).then_some(status)
        }
        Outcome::Sent(_) => None,
    })
}

/// What is left of the life of a message, and of the time that it is hidden; none where its life
/// is over.
fn times(
    visible: &Option<Ticks>,
    expires: &Option<Ticks>,
    now: Ticks,
) -> Option<(Expiration, Option<prost_types::Duration>)> {
    let life = match expires {
        None => Expiration::NeverExpires(NoExpiry {}),
        Some(expires) => {
            let rest = expires.since(now);
            if rest < LIFE_MIN {
                return None;
            }
            Expiration::TimeToLive(super::span(rest))
        }
    };
    let delay = visible.map(|visible| visible.since(now)).filter(|delay| !delay.is_zero());
    Some((life, delay.map(super::span)))
}

/// A message, for people.
fn which(id: &str) -> String {
    format!("message `{id}`")
}

/// What is remembered of a message until it is answered.
struct Sent {
    id: String,
    hash: Hash,
    /// Whether it can be received at once.
    at_once: bool,
    /// Whether it had been received before.
    received: bool,
}

/// What a batch adds to the notes of its queue.
#[derive(Default)]
struct Delta {
    read: u64,
    place: u64,
    expired: u64,
    repeated: u64,
    received_before: u64,
    sent: Vec<Hash>,
    first: Vec<Hash>,
    refused: Vec<(String, String)>,
}

impl Delta {
    fn see(&mut self, carried: &Carried) {
        self.read = self.read.saturating_add(1);
        self.place = self.place.max(carried.place);
    }

    /// Whether the message is here now.
    fn book(&mut self, sent: &Sent, outcome: Outcome, counted: &[String]) -> bool {
        let taken = match outcome {
            Outcome::Sent(taken) => taken,
            Outcome::Error(error) => {
                self.refused.push((which(&sent.id), describe(&error)));
                return false;
            }
        };
        if taken.duplicate && counted.contains(&sent.id) {
            // Counted by a run that was killed before the source knew.
            self.read = self.read.saturating_sub(1);
            return true;
        }
        self.sent.push(sent.hash);
        if sent.at_once {
            self.first.push(sent.hash);
        }
        self.repeated = self.repeated.saturating_add(u64::from(taken.duplicate));
        self.received_before = self.received_before.saturating_add(u64::from(sent.received));
        true
    }

    fn add_to(self, notes: &mut QueueNotes) {
        notes.read = notes.read.saturating_add(self.read);
        notes.place = notes.place.max(self.place);
        notes.expired = notes.expired.saturating_add(self.expired);
        notes.repeated = notes.repeated.saturating_add(self.repeated);
        notes.received_before = notes.received_before.saturating_add(self.received_before);
        let refused = u64::try_from(self.refused.len()).unwrap_or(u64::MAX);
        notes.refused = notes.refused.saturating_add(refused);
        let room = FIRST_MAX.saturating_sub(notes.first.len());
        notes.first.extend(self.first.into_iter().take(room));
        self.sent.into_iter().for_each(|hash| notes.sent.add(hash));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn at(seconds: u64) -> Ticks {
        Ticks::new(seconds * 10_000_000).unwrap()
    }

    #[test]
    fn a_message_takes_along_what_is_left_of_its_times() {
        let seconds = |seconds| prost_types::Duration { seconds, nanos: 0 };
        let of = |visible: Option<u64>, expires: Option<u64>| {
            times(&visible.map(at), &expires.map(at), at(100))
        };

        let hidden = Some(seconds(30));
        assert_eq!(of(Some(130), Some(200)), Some((Expiration::TimeToLive(seconds(100)), hidden)));
        let never = Expiration::NeverExpires(NoExpiry {});
        assert_eq!(of(Some(90), None), Some((never, None)), "it can be received already");
        assert_eq!(of(None, Some(100)), None, "its life is over");
    }
}
