//! Queues of a server: listed, and peeked at.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use trestle_command::{errors::CliError, selection::Renamed};
use trestle_model::time::Ticks;
use trestle_proto::queue::v1::{
    GetQueueAccessPoliciesRequest, GetQueueRequest, ListQueuesRequest, Message,
    PeekMessagesRequest, Queue, message, outgoing_message::Body,
};

use super::TrestleSource;
use crate::{
    ImportTarget,
    plan::{ImportPlan, PlannedQueue},
    queues::{self, PEEK_MAX, SourceMessage},
};

/// Adds the selected queues, or every queue, to the plan; their names.
pub(super) async fn plan(
    server: &TrestleSource,
    selected: Option<&[Renamed]>,
    plan: &mut ImportPlan,
) -> Result<Vec<Renamed>, CliError> {
    let found = match selected {
        Some(selected) => find(server, selected).await?,
        None => list(server).await?,
    };
    let names: HashMap<_, _> =
        found.iter().map(|(name, _)| (name.from.clone(), name.to.clone())).collect();
    let mut all = Vec::new();
    for (name, queue) in found {
        let request = GetQueueAccessPoliciesRequest { queue: name.from.clone() };
        let session = &server.session;
        let read = async || session.queues().get_queue_access_policies(request.clone()).await;
        let whose = queues::whose(&name.to);
        let policies = server.policies(read, &whose, |read| read.policies, plan).await?;
        let mut dead_letter = queue.dead_letter;
        if let Some(policy) = &mut dead_letter
            && let Some(to) = names.get(&policy.queue)
        {
            policy.queue.clone_from(to);
        }
        let window = queue.deduplication_window.and_then(|it| Duration::try_from(it).ok());
        let window_ms = window.and_then(|window| u64::try_from(window.as_millis()).ok());
        let (name_of, metadata) = (name.to.clone(), queue.metadata);
        let planned = PlannedQueue { name: name_of, metadata, policies, dead_letter, window_ms };
        plan.queues.push(planned);
        all.push(name);
    }
    Ok(all)
}

async fn find(
    server: &TrestleSource,
    selected: &[Renamed],
) -> Result<Vec<(Renamed, Queue)>, CliError> {
    let mut found = Vec::new();
    for name in selected {
        let request = GetQueueRequest { queue: name.from.clone() };
        let get = async || server.session.queues().get_queue(request.clone()).await;
        let answer = server.find(get, "--queue", name).await?;
        found.push((name.clone(), answer.queue.unwrap_or_default()));
    }
    Ok(found)
}

async fn list(server: &TrestleSource) -> Result<Vec<(Renamed, Queue)>, CliError> {
    let (mut found, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = ListQueuesRequest { page_token, ..ListQueuesRequest::default() };
        let list = async || server.session.queues().list_queues(request.clone()).await;
        let page = server.call(list, "the list of queues").await?;
        found.extend(page.queues.into_iter().map(|it| (Renamed::kept(it.name.clone()), it)));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(found);
        }
    }
}

/// Copies the messages of a queue, whether they are visible or not.
pub(super) async fn copy(
    server: &TrestleSource,
    target: ImportTarget<'_>,
    Renamed { from, to }: &Renamed,
) -> Result<(), CliError> {
    let tracker = target.tracker;
    let page_token = tracker.read(|progress| {
        let queue = progress.queues.get(to)?;
        (!queue.complete).then(|| queue.page_token.clone())
    });
    let Some(page_token) = page_token else { return Ok(()) };
    let (session, max_messages) = (&server.session, Some(PEEK_MAX));
    let mut request = PeekMessagesRequest {
        queue: from.clone(),
        max_messages,
        page_token,
        include_invisible: true,
    };
    loop {
        let peek = async || session.queues().peek_messages(request.clone()).await;
        let page = server.call(peek, &format!("messages of queue `{from}`")).await?;
        let unordered = unordered_groups(&page.messages);
        let batch = page.messages.into_iter().map(|it| source_message(it, &unordered));
        let batch: Vec<_> = batch.collect();
        if !batch.is_empty() {
            target.send(to, batch, true).await?;
        }
        request.page_token = page.next_page_token;
        tracker.change(|progress| {
            let Some(queue) = progress.queues.get_mut(to) else { return };
            queue.page_token.clone_from(&request.page_token);
            // Only this page may be read again.
            queue.counted.clear();
        });
        if request.page_token.is_empty() {
            break;
        }
    }
    let request = GetQueueRequest { queue: from.clone() };
    let get = async || session.queues().get_queue(request.clone()).await;
    let stats = server.call(get, &queues::whose(from)).await?.stats.unwrap_or_default();
    tracker.change(|progress| {
        let Some(queue) = progress.queues.get_mut(to) else { return };
        queue.remaining = stats.approximate_message_count.saturating_sub(queue.read);
        queue.complete = true;
    });
    Ok(())
}

/// The groups with several messages that wait for none of their group: they have no order any more, since they were
/// moved from another queue.
fn unordered_groups(messages: &[Message]) -> HashSet<String> {
    let (mut once, mut again) = (HashSet::new(), HashSet::new());
    let first = messages.iter().filter(|message| message.visible_time.is_some());
    for Message { ordering_group, .. } in first {
        if !once.insert(ordering_group) {
            again.insert(ordering_group.clone());
        }
    }
    again
}

fn is_ordered(message: &Message, unordered: &HashSet<String>) -> bool {
    !message.ordering_group.is_empty()
        && message.dead_letter_origin.is_none()
        && !unordered.contains(&message.ordering_group)
}

fn source_message(message: Message, unordered: &HashSet<String>) -> SourceMessage {
    let ordering_group = match is_ordered(&message, unordered) {
        true => message.ordering_group,
        false => String::new(),
    };
    let body = match message.body {
        Some(message::Body::Text(text)) => Ok(Body::Text(text)),
        Some(message::Body::Data(data)) => Ok(Body::Data(data)),
        None => Err("the source returned no body".to_owned()),
    };
    let ticks = |time: prost_types::Timestamp| Ticks::from_unix(time.seconds, time.nanos);
    SourceMessage {
        id: message.message_id,
        position: 0,
        body,
        visible: message.visible_time.and_then(ticks),
        expires: message.expiration_time.and_then(ticks),
        dequeue_count: message.dequeue_count,
        ordering_group,
    }
}

#[cfg(test)]
mod tests {
    use trestle_proto::queue::v1::DeadLetterOrigin;

    use super::*;

    fn of_group(group: &str) -> Message {
        let body = Some(message::Body::Text(group.to_owned()));
        let visible_time = Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 });
        Message { ordering_group: group.to_owned(), body, visible_time, ..Message::default() }
    }

    #[test]
    fn only_messages_that_are_ordered_keep_their_group() {
        let moved =
            Message { dead_letter_origin: Some(DeadLetterOrigin::default()), ..of_group("moved") };
        let behind = Message { visible_time: None, ..of_group("a") };
        let messages = [of_group(""), of_group("a"), of_group("b"), moved, of_group("b"), behind];

        let unordered = unordered_groups(&messages);

        let groups = messages.map(|message| source_message(message, &unordered).ordering_group);
        assert_eq!(groups, ["", "a", "", "", "", "a"]);
    }

    #[test]
    fn a_message_keeps_its_body_and_its_times() {
        let at = prost_types::Timestamp { seconds: 1_900_000_000, nanos: 500 };
        let body = Some(message::Body::Data(vec![1, 2].into()));
        let message = Message {
            expiration_time: Some(at),
            visible_time: Some(at),
            body,
            ..Message::default()
        };

        let kept = source_message(message, &HashSet::new());

        assert_eq!(kept.body, Ok(Body::Data(vec![1, 2].into())));
        assert_eq!(kept.expires, Ticks::from_unix(1_900_000_000, 500));
        assert_eq!(kept.visible, kept.expires);
        let empty = source_message(Message::default(), &HashSet::new());
        assert!(empty.body.is_err() && empty.expires.is_none());
    }
}
