//! Queues of an account: listed, peeked, and emptied where that is requested.

use std::{collections::HashMap, time::UNIX_EPOCH};

use futures::{StreamExt as _, TryStreamExt as _};
use http::{Method, StatusCode};
use serde::Deserialize;
use trestle_command::errors::CliError;
use trestle_model::time::Ticks;
use trestle_proto::queue::v1::outgoing_message::Body;

use super::{
    http::{AzureAnswer, AzureRequest, Http, HttpError, Service, encoded, header},
    policies, xml,
};
use crate::{
    ImportTarget,
    args::QueueMode,
    plan::{ImportPlan, PlannedQueue},
    progress::{ReceivedMessage, Tracker},
    queues::{self, SourceMessage},
};

/// Most messages of one peek or receive. The service's limit.
const AT_A_TIME: usize = 32;
/// Visibility timeout of messages in the source while they are sent to the target, in seconds.
const VISIBILITY_SECONDS: u32 = 300;
/// Most messages that are changed or deleted at once.
const CHANGES_AT_ONCE: usize = 8;
/// An expiry from this time on means no expiry.
const NEVER_FROM: u64 = 253_370_764_800;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct QueuesPage {
    #[serde(default)]
    queues: QueueElements,
    #[serde(default)]
    next_marker: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct QueueElements {
    #[serde(default)]
    queue: Vec<QueueElement>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct QueueElement {
    name: String,
    #[serde(default)]
    metadata: HashMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MessagesPage {
    #[serde(default)]
    queue_message: Vec<MessageElement>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MessageElement {
    message_id: String,
    #[serde(default)]
    pop_receipt: String,
    #[serde(default)]
    expiration_time: String,
    #[serde(default)]
    dequeue_count: u32,
    #[serde(default)]
    message_text: String,
}

impl MessageElement {
    fn held(&self) -> ReceivedMessage {
        ReceivedMessage { id: self.message_id.clone(), receipt: self.pop_receipt.clone() }
    }

    fn into_message(self) -> SourceMessage {
        let expires = expiry(&self.expiration_time);
        SourceMessage {
            id: self.message_id,
            position: 0,
            body: expires.clone().map(|_| Body::Text(self.message_text)),
            visible: None,
            expires: expires.unwrap_or_default(),
            dequeue_count: self.dequeue_count,
            ordering_group: String::new(),
        }
    }
}

fn parsed<T: serde::de::DeserializeOwned>(answer: &AzureAnswer, what: &str) -> Result<T, CliError> {
    xml::parse(answer.body()).map_err(|why| {
        let text = format!("the source answers {what} with XML that {why}");
        CliError::Source { text, busy: false }
    })
}

/// Adds every queue of the account to the plan.
pub(super) async fn list(http: &Http, plan: &mut ImportPlan) -> Result<(), CliError> {
    let (mut marker, what) = (String::new(), "the list of queues");
    loop {
        let mut query = "comp=list&include=metadata".to_owned();
        if !marker.is_empty() {
            query.push_str(&format!("&marker={}", encoded(&marker)));
        }
        let request = AzureRequest::get(Service::Queues, "/".to_owned(), query);
        let page: QueuesPage = parsed(&http.send(&request, what).await?, what)?;
        for QueueElement { name, metadata } in page.queues.queue {
            let (path, whose) = (format!("/{}", encoded(&name)), queues::whose(&name));
            let policies = policies::read(http, Service::Queues, path, &whose, plan).await?;
            plan.queues.push(PlannedQueue { name, metadata, policies, ..PlannedQueue::default() });
        }
        marker = page.next_marker;
        if marker.is_empty() {
            return Ok(());
        }
    }
}

/// Copies the messages of a queue, as many as the mode permits.
pub(super) async fn copy(
    http: &Http,
    target: ImportTarget<'_>,
    name: String,
    messages: QueueMode,
) -> Result<(), CliError> {
    let tracker = target.tracker;
    let is_open =
        tracker.read(|progress| progress.queues.get(&name).is_some_and(|queue| !queue.complete));
    if !is_open {
        return Ok(());
    }
    let source = SourceQueue { http, path: format!("/{}", encoded(&name)), name };
    match messages {
        QueueMode::Peek => source.peek(target).await?,
        QueueMode::Receive => source.receive(target).await?,
        QueueMode::Skip => {}
    }
    let total = source.count().await?;
    tracker.change(|progress| {
        let Some(queue) = progress.queues.get_mut(&source.name) else { return };
        queue.remaining = match messages {
            // Peeked messages remain in the source.
            QueueMode::Peek => total.saturating_sub(queue.read),
            QueueMode::Receive => total,
            QueueMode::Skip => 0,
        };
        queue.complete = true;
    });
    Ok(())
}

/// A queue of the source.
struct SourceQueue<'a> {
    http: &'a Http,
    path: String,
    name: String,
}

impl SourceQueue<'_> {
    /// How many messages it holds, approximately, invisible ones included.
    async fn count(&self) -> Result<u64, CliError> {
        let (path, query) = (self.path.clone(), "comp=metadata".to_owned());
        let request = AzureRequest::get(Service::Queues, path, query);
        let answer = self.http.send(&request, &queues::whose(&self.name)).await?;
        let count = header(&answer, "x-ms-approximate-messages-count");
        Ok(count.and_then(|count| count.parse().ok()).unwrap_or_default())
    }

    async fn messages(&self, query: String) -> Result<Vec<MessageElement>, CliError> {
        let what = format!("messages of queue `{}`", self.name);
        let request = AzureRequest::get(Service::Queues, format!("{}/messages", self.path), query);
        let page: MessagesPage = parsed(&self.http.send(&request, &what).await?, &what)?;
        Ok(page.queue_message)
    }

    /// Copies the messages that can be read without receiving them.
    async fn peek(&self, target: ImportTarget<'_>) -> Result<(), CliError> {
        let found = self.messages(format!("peekonly=true&numofmessages={AT_A_TIME}")).await?;
        let batch: Vec<_> = found.into_iter().map(MessageElement::into_message).collect();
        if !batch.is_empty() {
            target.send(&self.name, batch, true).await?;
        }
        Ok(())
    }

    /// Moves every message that can be received; it is deleted in the source once it is sent and recorded.
    async fn receive(&self, target: ImportTarget<'_>) -> Result<(), CliError> {
        let tracker = target.tracker;
        self.release(tracker).await?;
        let query = format!("numofmessages={AT_A_TIME}&visibilitytimeout={VISIBILITY_SECONDS}");
        loop {
            let found = self.messages(query.clone()).await?;
            if found.is_empty() {
                return Ok(());
            }
            let held: Vec<_> = found.iter().map(MessageElement::held).collect();
            self.hold(tracker, held.clone())?;
            let batch = found.into_iter().map(MessageElement::into_message).collect();
            let accepted = target.send(&self.name, batch, true).await?;
            if accepted.is_empty() {
                // A message that the target rejects would be received again and again.
                return Ok(());
            }
            tracker.save()?;
            let deletes = held.iter().filter(|held| accepted.contains(&held.id));
            self.change_all(deletes, &Method::DELETE, "").await?;
            tracker.change_unsaved(|progress| {
                let queue = progress.queues.entry(self.name.clone()).or_default();
                queue.counted.retain(|id| !accepted.contains(id));
            });
        }
    }

    /// Records, on disk, what is received until it is sent and deleted in the source.
    fn hold(&self, tracker: &Tracker, held: Vec<ReceivedMessage>) -> Result<(), CliError> {
        tracker.change_unsaved(|progress| {
            progress.queues.entry(self.name.clone()).or_default().held = held;
        });
        tracker.save()
    }

    /// Makes visible the messages that an earlier run received and may not have deleted. Those that the target holds
    /// are deduplicated by their ids.
    async fn release(&self, tracker: &Tracker) -> Result<(), CliError> {
        let held = tracker.read(|progress| {
            progress.queues.get(&self.name).map(|queue| queue.held.clone()).unwrap_or_default()
        });
        self.change_all(held.iter(), &Method::PUT, "&visibilitytimeout=0").await
    }

    /// Applies the operation to each message.
    async fn change_all(
        &self,
        held: impl Iterator<Item = &ReceivedMessage>,
        method: &Method,
        query: &str,
    ) -> Result<(), CliError> {
        let changes = held.map(|held| self.change(held, method.clone(), query));
        futures::stream::iter(changes).buffer_unordered(CHANGES_AT_ONCE).try_collect().await
    }

    async fn change(
        &self,
        held: &ReceivedMessage,
        method: Method,
        query: &str,
    ) -> Result<(), CliError> {
        let path = format!("{}/messages/{}", self.path, encoded(&held.id));
        let query = format!("popreceipt={}{query}", encoded(&held.receipt));
        let request = AzureRequest { method, ..AzureRequest::get(Service::Queues, path, query) };
        match self.http.try_send(&request).await {
            Ok(_) => Ok(()),
            // It was deleted, maybe by a try without a response, or another client received it.
            Err(HttpError::Rejected { status: StatusCode::NOT_FOUND, .. }) => Ok(()),
            Err(HttpError::Rejected { code, .. }) if code == "PopReceiptMismatch" => Ok(()),
            Err(failure) => Err(failure.of(&format!("a message in queue `{}`", self.name))),
        }
    }
}

/// The expiry of a message; none for no expiry.
fn expiry(text: &str) -> Result<Option<Ticks>, String> {
    let rule = || format!("ExpirationTime `{text}` is not an HTTP date");
    let at = httpdate::parse_http_date(text.trim()).map_err(|_| rule())?;
    let seconds = at.duration_since(UNIX_EPOCH).map_err(|_| rule())?.as_secs();
    if seconds >= NEVER_FROM {
        return Ok(None);
    }
    Ok(i64::try_from(seconds).ok().and_then(|seconds| Ticks::from_unix(seconds, 0)))
}

#[cfg(test)]
mod tests;
