//! Queues of an account: listed, looked at, and emptied where that is asked for.

use std::{collections::HashMap, sync::Arc, time::UNIX_EPOCH};

use futures::{StreamExt as _, TryStreamExt as _};
use http::{Method, StatusCode};
use trestle_proto::queue::v1::outgoing_message::Body;
use trestle_service::clock::Ticks;

use super::{
    http::{Ask, Failure, Http, Service, encoded},
    policies,
    xml::{self, Fields},
};
use crate::{
    errors::CliError,
    migrate::{
        args::Messages,
        notes::{Held, Ledger},
        plan::{Plan, PlannedQueue},
        queues::{self, Again, Carried, Queues},
    },
};

/// Most messages of one peek or receive. The service's limit.
const AT_A_TIME: usize = 32;
/// How long messages are hidden in the source while they are sent here, in seconds.
const HIDDEN_SECONDS: u32 = 300;
/// Most messages that are changed or deleted at once.
const CHANGES_AT_ONCE: usize = 8;
/// Messages that never expire do so from this year on.
const NEVER_FROM: u64 = 253_370_764_800;

fn malformed(what: &str, why: &str) -> CliError {
    let text = format!("the source answers {what} with XML that {why}");
    CliError::Source { text, busy: false }
}

/// Adds every queue of the account to the plan.
///
/// # Errors
/// A source that fails.
pub(super) async fn list(http: &Http, plan: &mut Plan) -> Result<(), CliError> {
    let (mut marker, what) = (String::new(), "the list of queues");
    loop {
        let mut query = "comp=list&include=metadata".to_owned();
        if !marker.is_empty() {
            query.push_str(&format!("&marker={}", encoded(&marker)));
        }
        let ask = Ask::get(Service::Queues, "/".to_owned(), query);
        let answer = http.ask(&ask).await.map_err(|failure| failure.of(what))?;
        let answer = xml::parse(&answer.body, "Queue").map_err(|why| malformed(what, &why))?;
        for fields in &answer.records {
            let name = fields.get("Name").unwrap_or_default().to_owned();
            let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
            let metadata: HashMap<_, _> = fields.below("Metadata").map(pair).collect();
            let path = format!("/{}", encoded(&name));
            let whose = queues::whose(&name);
            let policies = policies::read(http, Service::Queues, path, &whose, plan).await?;
            plan.queues.push(PlannedQueue { name, metadata, policies });
        }
        marker = answer.fields.get("NextMarker").unwrap_or_default().to_owned();
        if marker.is_empty() {
            return Ok(());
        }
    }
}

/// Copies the messages of a queue, as many as that way of copying gets.
///
/// # Errors
/// A source or a server that fails.
pub(super) async fn copy(
    http: &Http,
    mut queues: Queues,
    ledger: &Arc<Ledger>,
    name: String,
    messages: Messages,
) -> Result<(), CliError> {
    let is_open = ledger.read(|notes| notes.queues.get(&name).is_some_and(|queue| !queue.complete));
    if !is_open {
        return Ok(());
    }
    let source = SourceQueue { http, path: format!("/{}", encoded(&name)), name };
    match messages {
        Messages::Peek => source.peek(&mut queues, ledger).await?,
        Messages::Receive => source.receive(&mut queues, ledger).await?,
        Messages::Skip => {}
    }
    let there = source.count().await?;
    ledger.change(|notes| {
        let Some(queue) = notes.queues.get_mut(&source.name) else { return };
        // What was peeked is still there.
        let copied = if messages == Messages::Peek { queue.read } else { 0 };
        let asked_for = messages != Messages::Skip;
        queue.stayed = if asked_for { there.saturating_sub(copied) } else { 0 };
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
    /// How many messages it holds, about, hidden ones included.
    async fn count(&self) -> Result<u64, CliError> {
        let ask = Ask::get(Service::Queues, self.path.clone(), "comp=metadata".to_owned());
        let answer = self.http.ask(&ask).await;
        let answer = answer.map_err(|failure| failure.of(&queues::whose(&self.name)))?;
        let count = answer.header("x-ms-approximate-messages-count");
        Ok(count.and_then(|count| count.parse().ok()).unwrap_or_default())
    }

    async fn messages(&self, query: String) -> Result<Vec<Fields>, CliError> {
        let what = format!("messages of queue `{}`", self.name);
        let ask = Ask::get(Service::Queues, format!("{}/messages", self.path), query);
        let answer = self.http.ask(&ask).await.map_err(|failure| failure.of(&what))?;
        let answer = xml::parse(&answer.body, "QueueMessage");
        Ok(answer.map_err(|why| malformed(&what, &why))?.records)
    }

    /// Copies the messages that can be seen without receiving them.
    async fn peek(&self, queues: &mut Queues, ledger: &Arc<Ledger>) -> Result<(), CliError> {
        let found = self.messages(format!("peekonly=true&numofmessages={AT_A_TIME}")).await?;
        let batch: Vec<_> = found.iter().map(carried).collect();
        if !batch.is_empty() {
            queues.send(ledger, &self.name, batch, Again::Possible).await?;
        }
        Ok(())
    }

    /// Moves every message that can be received; it is deleted there once it is here, and noted.
    async fn receive(&self, queues: &mut Queues, ledger: &Arc<Ledger>) -> Result<(), CliError> {
        self.release(ledger).await?;
        let query = format!("numofmessages={AT_A_TIME}&visibilitytimeout={HIDDEN_SECONDS}");
        loop {
            let found = self.messages(query.clone()).await?;
            let batch: Vec<_> = found.iter().map(carried).collect();
            if batch.is_empty() {
                return Ok(());
            }
            let held: Vec<_> = found.iter().map(held).collect();
            self.hold(ledger, held.clone())?;
            let taken = queues.send(ledger, &self.name, batch, Again::Possible).await?;
            if taken.is_empty() {
                // What is refused here would come again and again.
                return Ok(());
            }
            ledger.save()?;
            let deletes = held.iter().filter(|held| taken.contains(&held.id));
            self.change_all(deletes, &Method::DELETE, "").await?;
            ledger.change_quietly(|notes| {
                let queue = notes.queues.entry(self.name.clone()).or_default();
                queue.counted.retain(|id| !taken.contains(id));
            });
        }
    }

    /// Notes, on disk, what is hidden until it is here and deleted there.
    fn hold(&self, ledger: &Arc<Ledger>, held: Vec<Held>) -> Result<(), CliError> {
        ledger.change_quietly(|notes| {
            notes.queues.entry(self.name.clone()).or_default().held = held;
        });
        ledger.save()
    }

    /// Lets the messages come again at once that a run before this one received and may not have
    /// deleted. Those that are here already are known by their ids.
    async fn release(&self, ledger: &Arc<Ledger>) -> Result<(), CliError> {
        let held = ledger.read(|notes| {
            notes.queues.get(&self.name).map(|queue| queue.held.clone()).unwrap_or_default()
        });
        self.change_all(held.iter(), &Method::PUT, "&visibilitytimeout=0").await
    }

    /// Does the same with each message.
    async fn change_all(
        &self,
        held: impl Iterator<Item = &Held>,
        method: &Method,
        query: &str,
    ) -> Result<(), CliError> {
        let changes = held.map(|held| self.change(held, method.clone(), query));
        futures::stream::iter(changes).buffer_unordered(CHANGES_AT_ONCE).try_collect().await
    }

    async fn change(&self, held: &Held, method: Method, query: &str) -> Result<(), CliError> {
        let path = format!("{}/messages/{}", self.path, encoded(&held.id));
        let query = format!("popreceipt={}{query}", encoded(&held.receipt));
        let ask = Ask { method, ..Ask::get(Service::Queues, path, query) };
        match self.http.ask(&ask).await {
            Ok(_) => Ok(()),
            // It was deleted, maybe by a try whose answer was lost, or somebody else received it.
            Err(Failure::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(()),
            Err(Failure::Refused { code, .. }) if code == "PopReceiptMismatch" => Ok(()),
            Err(failure) => Err(failure.of(&format!("a message in queue `{}`", self.name))),
        }
    }
}

fn held(fields: &Fields) -> Held {
    let field = |name| fields.get(name).unwrap_or_default().to_owned();
    Held { id: field("MessageId"), receipt: field("PopReceipt") }
}

fn carried(fields: &Fields) -> Carried {
    let text = fields.get("MessageText").unwrap_or_default();
    let expires = expiry(fields.get("ExpirationTime").unwrap_or_default());
    let received = fields.get("DequeueCount").and_then(|count| count.parse().ok());
    Carried {
        id: fields.get("MessageId").unwrap_or_default().to_owned(),
        place: 0,
        body: expires.clone().map(|_| Body::Text(text.to_owned())),
        visible: None,
        expires: expires.unwrap_or_default(),
        dequeue_count: received.unwrap_or_default(),
    }
}

/// The time at which a message is gone; none for never.
fn expiry(text: &str) -> Result<Option<Ticks>, String> {
    let rule = || format!("ExpirationTime `{text}` is no date of HTTP");
    let at = httpdate::parse_http_date(text.trim()).map_err(|_| rule())?;
    let seconds = at.duration_since(UNIX_EPOCH).map_err(|_| rule())?.as_secs();
    if seconds >= NEVER_FROM {
        return Ok(None);
    }
    Ok(i64::try_from(seconds).ok().and_then(|seconds| Ticks::from_unix(seconds, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_times_and_the_last_one_is_never() {
        let never = expiry("Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(never, Ok(None));
        assert_eq!(expiry("Thu, 01 Jan 1970 00:00:02 GMT"), Ok(Ticks::from_unix(2, 0)));
        assert!(expiry("soon").is_err_and(|rule| rule.contains("`soon`")));
    }
}
