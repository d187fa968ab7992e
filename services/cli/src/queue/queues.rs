//! `create`, `update`, `list`, `delete`, `clear` and `stats`.

use std::collections::{BTreeMap, HashMap};

use prost_types::FieldMask;
use serde_json::{Value, json};
use trestle_command::{
    client::Session,
    confirm::{confirm, require_found},
    errors::CliError,
    messages::proto_duration,
    output::with_fields,
};
use trestle_proto::queue::v1::{
    ClearMessagesRequest, CreateQueueRequest, DeadLetterPolicy, DeleteQueueRequest,
    GetQueueRequest, GetServiceStatsRequest, ListQueuesRequest, Queue, UpdateQueueRequest,
};

use super::{Context, QueueSettingsArgs, args::RemovedSettingsArgs};
use crate::{
    datetime,
    service::{durability_name, instance_id, processes, quotas},
};

/// The settings in the arguments.
fn settings(args: QueueSettingsArgs) -> Result<Queue, CliError> {
    let QueueSettingsArgs { queue: name, metadata, dead_letter, max_dequeue_count, window } = args;
    let dead_letter = dead_letter.zip(max_dequeue_count);
    let mut named = HashMap::new();
    for text in metadata {
        let rule = |rule: &str| CliError::Usage(format!("metadata must {rule}: `{text}`"));
        let (name, value) = text.split_once('=').ok_or_else(|| rule("be NAME=VALUE"))?;
        // A map in a message has each name once, so the server cannot detect repeats.
        if named.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(rule("have each name once"));
        }
    }
    let metadata = named;
    let dead_letter =
        dead_letter.map(|(queue, max_dequeue_count)| DeadLetterPolicy { queue, max_dequeue_count });
    let deduplication_window = window.map(proto_duration);
    Ok(Queue { name, metadata, dead_letter, deduplication_window, create_time: None })
}

/// Creates a queue.
pub(super) async fn create(context: &mut Context, args: QueueSettingsArgs) -> Result<(), CliError> {
    let queue = settings(args)?;
    let name = queue.name.clone();
    let request = CreateQueueRequest { queue: Some(queue) };
    let created = context.session.queues().create_queue(request).await?.into_inner().created;
    let text = match created {
        true => format!("created queue {name}"),
        false => format!("queue {name} already exists, with the same settings"),
    };
    context.output.either(&text, &json!({ "queue": name, "created": created }))
}

/// Changes the given settings of a queue, and removes those of `removed`.
pub(super) async fn update(
    context: &mut Context,
    args: QueueSettingsArgs,
    removed: RemovedSettingsArgs,
) -> Result<(), CliError> {
    let queue = settings(args)?;
    let name = queue.name.clone();
    let has_window = queue.deduplication_window.is_some();
    let changed = [
        ("metadata", removed.no_metadata || !queue.metadata.is_empty()),
        ("dead_letter", removed.no_dead_letter || queue.dead_letter.is_some()),
        ("deduplication_window", removed.no_deduplication_window || has_window),
    ];
    let changed = changed.into_iter().filter(|(_, is_changed)| *is_changed);
    let paths: Vec<_> = changed.map(|(path, _)| path.to_owned()).collect();
    if paths.is_empty() {
        return Err(CliError::Usage("nothing to change: give a setting, see --help".to_owned()));
    }
    let update_mask = Some(FieldMask { paths: paths.clone() });
    let request = UpdateQueueRequest { queue: Some(queue), update_mask };
    context.session.queues().update_queue(request).await?;
    let text = format!("changed {} of queue {name}", paths.join(", "));
    context.output.either(&text, &json!({ "queue": name, "changed": paths }))
}

/// Prints the queues whose names have the prefix.
pub(super) async fn list(context: &mut Context, prefix: String) -> Result<(), CliError> {
    let (mut page_token, mut printed) = (String::new(), false);
    loop {
        let prefix = prefix.clone();
        let request = ListQueuesRequest { prefix, page_size: None, page_token };
        let page = context.session.queues().list_queues(request).await?.into_inner();
        let records: Vec<_> = page.queues.iter().map(record).collect();
        context.output.records(&records, &["queue", "create_time", "dead_letter"])?;
        printed |= !records.is_empty();
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return context.output.unless_empty(printed, "no queues");
        }
    }
}

/// The settings of a queue.
fn record(queue: &Queue) -> Value {
    let metadata: BTreeMap<_, _> = queue.metadata.iter().collect();
    let dead_letter = queue.dead_letter.as_ref();
    json!({
        "queue": queue.name,
        "create_time": queue.create_time.as_ref().and_then(datetime::format),
        "metadata": metadata,
        "dead_letter": dead_letter.map(|policy| &policy.queue),
        "max_dequeue_count": dead_letter.map(|policy| policy.max_dequeue_count),
        "deduplication_window_seconds":
            queue.deduplication_window.as_ref().map(|window| window.seconds),
    })
}

/// Deletes a queue.
pub(super) async fn delete(
    context: &mut Context,
    queue: String,
    yes: bool,
) -> Result<(), CliError> {
    if !yes {
        let request = GetQueueRequest { queue: queue.clone() };
        require_found(context.session.queues().get_queue(request).await)?;
    }
    confirm(yes, "deleting a queue", "queue", &queue)?;
    let request = DeleteQueueRequest { queue: queue.clone() };
    context.session.queues().delete_queue(request).await?;
    let text = format!("deleted queue {queue}");
    context.output.either(&text, &json!({ "queue": queue, "deleted": true }))
}

/// Deletes the messages of a queue.
pub(super) async fn clear(context: &mut Context, queue: String, yes: bool) -> Result<(), CliError> {
    if !yes {
        let request = GetQueueRequest { queue: queue.clone() };
        require_found(context.session.queues().get_queue(request).await)?;
    }
    confirm(yes, "clearing a queue", "queue", &queue)?;
    let request = ClearMessagesRequest { queue: queue.clone() };
    context.session.queues().clear_messages(request).await?;
    let text = format!("cleared queue {queue}");
    context.output.either(&text, &json!({ "queue": queue, "cleared": true }))
}

/// Prints the statistics of a queue, or of the service.
pub(super) async fn stats(context: &mut Context, queue: Option<String>) -> Result<(), CliError> {
    let Some(queue) = queue else {
        let record = service_record(&context.session).await?;
        return context.output.record(["Service", ""], &record);
    };
    let request = GetQueueRequest { queue: queue.clone() };
    let answer = context.session.queues().get_queue(request).await?.into_inner();
    let (settings, stats) = (answer.queue.unwrap_or_default(), answer.stats.unwrap_or_default());
    let counts = json!({
        "messages": stats.approximate_message_count,
        "oldest_message_age_seconds": stats.oldest_message_age.map(|age| age.seconds),
    });
    context.output.record(["Queue", ""], &with_fields(record(&settings), counts))
}

/// The state of the service.
pub(crate) async fn service_record(session: &Session) -> Result<Value, CliError> {
    let request = GetServiceStatsRequest {};
    let stats = session.queues().get_service_stats(request).await?.into_inner();
    let record = json!({
        "durability": durability_name(stats.durability),
        "engine": stats.engine,
        "server_version": stats.server_version,
        "start_time": stats.start_time.as_ref().and_then(datetime::format),
        "instance_id": instance_id(stats.instance_id),
        "storage_bytes": stats.storage_bytes,
        "free_bytes": stats.free_bytes,
        "queues_being_reclaimed": stats.queues_being_reclaimed,
        "processes": processes(stats.processes),
    });
    Ok(with_fields(record, quotas(stats.quotas)))
}
