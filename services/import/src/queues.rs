//! Queues of the target: created, filled, inspected.
//!
//! Each message carries its id of the source as deduplication id, and its queue stores those during the import, so
//! that a message is queued once however often it is sent.

use std::{collections::HashSet, time::Duration};

use prost_types::FieldMask;
use tonic::{Code, Status};
use trestle_command::{
    errors::{CliError, status_of},
    messages::{proto_duration, send_messages},
    retry::{Temporary, repeated},
    upload::describe,
};
use trestle_model::limits::DEDUPLICATION_WINDOW_MAX;
use trestle_model::time::{Clock as _, SystemClock, Ticks};
use trestle_proto::queue::v1::{
    CreateQueueRequest, GetQueueRequest, NoExpiry, OutgoingMessage, PeekMessagesRequest, Queue,
    SendMessagesRequest, SetQueueAccessPoliciesRequest, UpdateQueueRequest, message,
    outgoing_message::{Body, Expiration},
    send_result::Outcome,
};

use super::{
    ImportTarget,
    plan::PlannedQueue,
    progress::{QueueProgress, Skipped},
};
use crate::digest::{self, Hash};

/// Most messages of one call. The server's limit.
pub(super) const BATCH_MAX: usize = 100;
/// Most bytes of the messages of one call, under the server's limit.
pub(super) const BATCH_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Most messages of one peek. The server's limit.
pub(super) const PEEK_MAX: u32 = 32;
/// Shortest time to live of a message.
const TTL_MIN: Duration = Duration::from_secs(1);

/// A message of the source.
#[derive(Debug, Clone)]
pub(super) struct SourceMessage {
    /// Its id there.
    pub(super) id: String,
    /// Its number in the source, rising; 0 where there is none.
    pub(super) position: u64,
    /// Its content, or the error of reading it.
    pub(super) body: Result<Body, String>,
    /// Invisible until then.
    pub(super) visible: Option<Ticks>,
    /// None for no expiry.
    pub(super) expires: Option<Ticks>,
    /// Its delivery count.
    pub(super) dequeue_count: u32,
    /// Empty for none.
    pub(super) ordering_group: String,
}

impl SourceMessage {
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

/// The queue of a name, for people.
pub(super) fn whose(name: &str) -> String {
    format!("queue `{name}`")
}

impl ImportTarget<'_> {
    /// The statistics of a queue before the import; empty if it does not exist.
    pub(super) async fn inspect(&self, name: &str) -> Result<QueueProgress, CliError> {
        let Some((queue, before)) = self.get(name).await? else {
            return Ok(QueueProgress::default());
        };
        let window = queue.deduplication_window.and_then(|it| Duration::try_from(it).ok());
        let window_ms = window.and_then(|window| u64::try_from(window.as_millis()).ok());
        Ok(QueueProgress { before, window_ms, ..QueueProgress::default() })
    }

    /// A queue, and how many messages it holds; none if it does not exist.
    async fn get(&self, name: &str) -> Result<Option<(Queue, u64)>, CliError> {
        let session = self.session;
        let request = GetQueueRequest { queue: name.to_owned() };
        match repeated(async || session.queues().get_queue(request.clone()).await).await {
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

    /// How many messages a queue holds.
    pub(super) async fn count(&self, name: &str) -> Result<u64, CliError> {
        Ok(self.get(name).await?.map_or(0, |(_, messages)| messages))
    }

    /// Creates a queue with its settings, policies and the longest deduplication window; returns what the server
    /// rejects.
    pub(super) async fn open_queue(
        &self,
        queue: &PlannedQueue,
    ) -> Result<Option<Skipped>, CliError> {
        let (name, metadata) = (queue.name.clone(), queue.metadata.clone());
        let deduplication_window = Some(proto_duration(DEDUPLICATION_WINDOW_MAX));
        let dead_letter = queue.dead_letter.clone();
        let requested =
            Queue { name, metadata, deduplication_window, dead_letter, ..Queue::default() };
        let created = self.create(requested).await;
        let rejected =
            Skipped::rejected(created, &[Code::InvalidArgument], whose(&queue.name), "")?;
        if rejected.is_some() || queue.policies.is_empty() {
            return Ok(rejected);
        }
        let session = self.session;
        let (name, policies) = (queue.name.clone(), queue.policies.clone());
        let request = SetQueueAccessPoliciesRequest { queue: name, policies };
        let set =
            repeated(async || session.queues().set_queue_access_policies(request.clone()).await);
        let codes = [Code::InvalidArgument, Code::PermissionDenied];
        Skipped::rejected(set.await, &codes, whose(&queue.name), "access policies")
    }

    /// Restores the deduplication window that a queue had before the import.
    pub(super) async fn restore(&self, name: &str, window_ms: Option<u64>) -> Result<(), CliError> {
        let deduplication_window = window_ms.map(|ms| proto_duration(Duration::from_millis(ms)));
        let queue = Queue { name: name.to_owned(), deduplication_window, ..Queue::default() };
        Ok(self.update(queue, ["deduplication_window"]).await?)
    }

    /// Creates a queue; an existing one with other settings is updated.
    async fn create(&self, requested: Queue) -> Result<(), Status> {
        let session = self.session;
        let request = CreateQueueRequest { queue: Some(requested.clone()) };
        let created = repeated(async || session.queues().create_queue(request.clone()).await);
        match created.await {
            Ok(_) => Ok(()),
            Err(status) if status.code() == Code::AlreadyExists => {
                let dead_letter = requested.dead_letter.is_some().then_some("dead_letter");
                let mask = ["metadata", "deduplication_window"].into_iter().chain(dead_letter);
                self.update(requested, mask).await
            }
            Err(status) => Err(status),
        }
    }

    async fn update(
        &self,
        queue: Queue,
        mask: impl IntoIterator<Item = &str>,
    ) -> Result<(), Status> {
        let session = self.session;
        let paths = mask.into_iter().map(str::to_owned).collect();
        let update_mask = Some(FieldMask { paths });
        let request = UpdateQueueRequest { queue: Some(queue), update_mask };
        repeated(async || session.queues().update_queue(request.clone()).await).await?;
        Ok(())
    }

    /// Whether the first messages of a queue match those that were sent first.
    pub(super) async fn begins_with(&self, name: &str, first: &[Hash]) -> Result<bool, CliError> {
        let session = self.session;
        let (queue, max_messages) = (name.to_owned(), Some(PEEK_MAX));
        let request = PeekMessagesRequest { queue, max_messages, ..Default::default() };
        let peek = repeated(async || session.queues().peek_messages(request.clone()).await);
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

    /// Sends messages of one queue, and records their outcomes; returns the ids of those that the target holds
    /// now.
    ///
    /// If the source may return a message `again` after it was sent and recorded, its id is stored.
    pub(super) async fn send(
        &self,
        queue: &str,
        batch: Vec<SourceMessage>,
        again: bool,
    ) -> Result<HashSet<String>, CliError> {
        let counted = self.tracker.read(|progress| {
            progress.queues.get(queue).map(|queue| queue.counted.clone()).unwrap_or_default()
        });
        let now = SystemClock.now();
        let (mut sent, mut messages) = (Vec::new(), Vec::new());
        let (mut more, mut rejected) = (QueueProgress::default(), Vec::new());
        for message in batch {
            more.read += 1;
            more.position = more.position.max(message.position);
            let body = match message.body {
                Ok(body) => body,
                Err(why) => {
                    rejected.push((message.id, why));
                    continue;
                }
            };
            let Some((expiration, visibility_delay)) = times(message.visible, message.expires, now)
            else {
                more.expired += 1;
                continue;
            };
            let (hash, at_once) = (digest::of_message(bytes_of(&body)), visibility_delay.is_none());
            sent.push((message.id.clone(), hash, at_once, message.dequeue_count > 0));
            messages.push(OutgoingMessage {
                body: Some(body),
                visibility_delay,
                expiration: Some(expiration),
                deduplication_id: message.id,
                ordering_group: message.ordering_group,
            });
        }
        let outcomes = self.deliver(queue, messages).await?;
        let mut accepted = HashSet::new();
        for ((id, hash, at_once, was_received), outcome) in sent.into_iter().zip(outcomes) {
            let message = match outcome {
                Outcome::Sent(message) => message,
                Outcome::Error(error) => {
                    rejected.push((id, describe(&error.into())));
                    continue;
                }
            };
            if message.duplicate && counted.contains(&id) {
                // Counted by a run that was killed before it was deleted in the source.
                more.read = more.read.saturating_sub(1);
            } else {
                more.sent.add(hash);
                more.first.extend(at_once.then_some(hash));
                more.repeated += u64::from(message.duplicate);
                more.received_before += u64::from(was_received);
            }
            if again && !counted.contains(&id) {
                more.counted.push(id.clone());
            }
            accepted.insert(id);
        }
        more.rejected = u64::try_from(rejected.len()).unwrap_or(u64::MAX);
        self.tracker.change(|progress| {
            progress.queues.entry(queue.to_owned()).or_default().add(more);
            for (id, why) in rejected {
                progress.skip(Skipped::new(whose(queue), format!("message `{id}`"), why));
            }
        });
        Ok(accepted)
    }

    async fn deliver(
        &self,
        queue: &str,
        messages: Vec<OutgoingMessage>,
    ) -> Result<Vec<Outcome>, CliError> {
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let session = self.session;
        let (queue, request_id) = (queue.to_owned(), String::new());
        let request = SendMessagesRequest { queue, messages, request_id };
        repeated(async || {
            let outcomes = send_messages(session, request.clone()).await?;
            temporary(&outcomes).map_or(Ok(outcomes), |status| Err(status.into()))
        })
        .await
    }
}

/// The temporary error of a message, for which all are sent again.
fn temporary(outcomes: &[Outcome]) -> Option<Status> {
    outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Error(error) => {
            Some(status_of(&error.clone().into())).filter(Temporary::is_temporary)
        }
        Outcome::Sent(_) => None,
    })
}

/// The remaining time to live of a message, and its remaining visibility delay; none if it has expired.
fn times(
    visible: Option<Ticks>,
    expires: Option<Ticks>,
    now: Ticks,
) -> Option<(Expiration, Option<prost_types::Duration>)> {
    let expiration = match expires.map(|expires| expires.since(now)) {
        None => Expiration::NeverExpires(NoExpiry {}),
        Some(rest) if rest < TTL_MIN => return None,
        Some(rest) => Expiration::TimeToLive(proto_duration(rest)),
    };
    let delay = visible.map(|visible| visible.since(now)).filter(|delay| !delay.is_zero());
    Some((expiration, delay.map(proto_duration)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Ticks {
        Ticks::new(seconds * 10_000_000).unwrap()
    }

    #[test]
    fn a_message_keeps_its_remaining_ttl_and_visibility_delay() {
        let seconds = |seconds| prost_types::Duration { seconds, nanos: 0 };
        let of = |visible: Option<u64>, expires: Option<u64>| {
            times(visible.map(at), expires.map(at), at(100))
        };

        let delay = Some(seconds(30));
        assert_eq!(of(Some(130), Some(200)), Some((Expiration::TimeToLive(seconds(100)), delay)));
        let never = Expiration::NeverExpires(NoExpiry {});
        assert_eq!(of(Some(90), None), Some((never, None)), "it can be received already");
        assert_eq!(of(None, Some(100)), None, "it has expired");
    }
}
