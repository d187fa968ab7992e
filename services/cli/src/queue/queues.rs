//! `create`, `list`, `delete`, `clear` and `stats`.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use serde_json::{Map, Value, json};
use trestle_proto::queue::v1::{
    self as proto, ClearMessagesRequest, CreateQueueRequest, DeadLetterPolicy, DeleteQueueRequest,
    GetQueueRequest, GetServiceStatsRequest, ListQueuesRequest, Queue,
};

use super::{QueueContext, duration};
use crate::{
    confirm::confirm,
    datetime,
    errors::CliError,
    output::{bytes, counted, thousands},
};

/// The settings in the arguments.
pub(super) fn settings(
    name: String,
    metadata: Vec<String>,
    dead_letter: Option<(String, u32)>,
    window: Option<Duration>,
) -> Result<Queue, CliError> {
    let pair = |text: String| {
        let pair = text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        pair.ok_or_else(|| CliError::Usage(format!("metadata must be NAME=VALUE: `{text}`")))
    };
    let mut named = HashMap::new();
    for text in metadata {
        let (name, value) = pair(text)?;
        // A map in a message has each name once, so the server cannot detect repeats.
        if named.insert(name.clone(), value).is_some() {
            return Err(CliError::Usage(format!("metadata must have each name once: `{name}`")));
        }
    }
    let metadata = named;
    let dead_letter =
        dead_letter.map(|(queue, max_dequeue_count)| DeadLetterPolicy { queue, max_dequeue_count });
    let deduplication_window = window.map(duration);
    Ok(Queue { name, metadata, dead_letter, deduplication_window, create_time: None })
}

/// Creates a queue.
pub(super) async fn create(context: &mut QueueContext, queue: Queue) -> Result<(), CliError> {
    let name = queue.name.clone();
    let request = context.session.request(CreateQueueRequest { queue: Some(queue) });
    let created = context.queues.create_queue(request).await?.into_inner().created;
    let text = match created {
        true => format!("created queue {name}"),
        false => format!("queue {name} already exists, with the same settings"),
    };
    context.output.either(&text, &json!({ "queue": name, "created": created }))
}

/// Prints the queues whose names have the prefix.
pub(super) async fn list(context: &mut QueueContext, prefix: String) -> Result<(), CliError> {
    let (mut page_token, mut rows) = (String::new(), Vec::new());
    loop {
        let prefix = prefix.clone();
        let request = ListQueuesRequest { prefix, page_size: None, page_token };
        let request = context.session.request(request);
        let page = context.queues.list_queues(request).await?.into_inner();
        for queue in page.queues {
            if context.output.is_json() {
                context.output.line(&Value::from(object(&queue)).to_string())?;
            } else {
                let created = queue.create_time.as_ref().and_then(datetime::format);
                let dead_letter = queue.dead_letter.map(|policy| policy.queue);
                let cells = [Some(queue.name), created, dead_letter];
                rows.push(cells.map(Option::unwrap_or_default).to_vec());
            }
        }
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    match (context.output.is_json(), rows.is_empty()) {
        (true, _) => Ok(()),
        (false, true) => context.output.line("no queues"),
        (false, false) => context.output.table(&["Queue", "Created", "Dead letters"], &rows),
    }
}

/// The settings of a queue for programs.
fn object(queue: &Queue) -> Map<String, Value> {
    let metadata: BTreeMap<_, _> = queue.metadata.iter().collect();
    let dead_letter = queue.dead_letter.as_ref();
    let fields = [
        ("queue", json!(queue.name)),
        ("create_time", json!(queue.create_time.as_ref().and_then(datetime::format))),
        ("metadata", json!(metadata)),
        ("dead_letter", json!(dead_letter.map(|policy| &policy.queue))),
        ("max_dequeue_count", json!(dead_letter.map(|policy| policy.max_dequeue_count))),
        (
            "deduplication_window_seconds",
            json!(queue.deduplication_window.as_ref().map(|window| window.seconds)),
        ),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

/// The settings of a queue for a person; only those that are set.
fn settings_rows(queue: &Queue) -> Vec<Vec<String>> {
    let metadata: BTreeMap<_, _> = queue.metadata.iter().collect();
    let metadata = metadata.iter().map(|(name, value)| format!("{name}={value}"));
    let dead_letter = queue.dead_letter.as_ref().map(|policy| {
        let deliveries = counted(policy.max_dequeue_count.into(), "delivery");
        format!("to {} after {deliveries}", policy.queue)
    });
    let window = queue.deduplication_window.as_ref();
    let rows = [
        ("Created", queue.create_time.as_ref().and_then(datetime::format)),
        ("Dead letters", dead_letter),
        ("Deduplication window", window.map(|window| format!("{} s", window.seconds))),
        ("Metadata", Some(metadata.collect::<Vec<_>>().join(", "))),
    ];
    let filled = rows.into_iter().filter_map(|(name, value)| {
        let value = value.filter(|value| !value.is_empty())?;
        Some(vec![name.to_owned(), value])
    });
    filled.collect()
}

/// Deletes a queue.
pub(super) async fn delete(
    context: &mut QueueContext,
    queue: String,
    yes: bool,
) -> Result<(), CliError> {
    if !yes {
        let question = format!("Delete queue {queue} and its messages");
        confirm("deleting a queue", &question, "queue", &queue)?;
    }
    let request = context.session.request(DeleteQueueRequest { queue: queue.clone() });
    context.queues.delete_queue(request).await?;
    let text = format!("deleted queue {queue}");
    context.output.either(&text, &json!({ "queue": queue, "deleted": true }))
}

/// Deletes the messages of a queue.
pub(super) async fn clear(
    context: &mut QueueContext,
    queue: String,
    yes: bool,
) -> Result<(), CliError> {
    if !yes {
        let question = format!("Delete every message of queue {queue}");
        confirm("clearing a queue", &question, "queue", &queue)?;
    }
    let request = context.session.request(ClearMessagesRequest { queue: queue.clone() });
    context.queues.clear_messages(request).await?;
    let text = format!("cleared queue {queue}");
    context.output.either(&text, &json!({ "queue": queue, "cleared": true }))
}

/// Prints the statistics of a queue, or of the service.
pub(super) async fn stats(
    context: &mut QueueContext,
    queue: Option<String>,
) -> Result<(), CliError> {
    let Some(queue) = queue else { return service(context).await };
    let request = context.session.request(GetQueueRequest { queue: queue.clone() });
    let answer = context.queues.get_queue(request).await?.into_inner();
    let (settings, stats) = (answer.queue.unwrap_or_default(), answer.stats.unwrap_or_default());
    let age = stats.oldest_message_age.map(|age| age.seconds);
    if context.output.is_json() {
        let mut object = object(&settings);
        object.insert("messages".to_owned(), json!(stats.approximate_message_count));
        object.insert("oldest_message_age_seconds".to_owned(), json!(age));
        return context.output.line(&Value::from(object).to_string());
    }
    let age = age.map_or_else(|| "none".to_owned(), |seconds| format!("{seconds} s ago"));
    let mut rows = vec![
        vec!["Messages".to_owned(), thousands(stats.approximate_message_count)],
        vec!["Oldest sent".to_owned(), age],
    ];
    rows.extend(settings_rows(&settings));
    context.output.table(&["Queue", &queue], &rows)
}

async fn service(context: &mut QueueContext) -> Result<(), CliError> {
    let request = context.session.request(GetServiceStatsRequest {});
    let stats = context.queues.get_service_stats(request).await?.into_inner();
    let durability = stats.durability().as_str_name();
    let durability = durability.strip_prefix("DURABILITY_").unwrap_or(durability);
    let started = stats.start_time.as_ref().and_then(datetime::format);
    let proto::GetServiceStatsResponse { engine, server_version, storage_bytes, .. } = &stats;
    if context.output.is_json() {
        let object = json!({
            "durability": durability, "engine": engine, "server_version": server_version,
            "start_time": started, "storage_bytes": storage_bytes,
            "free_bytes": stats.free_bytes,
            "queues_being_reclaimed": stats.queues_being_reclaimed,
        });
        return context.output.line(&object.to_string());
    }
    let rows = [
        ("Durability", durability.to_owned()),
        ("Engine", engine.clone()),
        ("Version", server_version.clone()),
        ("Started", started.unwrap_or_default()),
        ("On disk", bytes(*storage_bytes)),
        ("Free", stats.free_bytes.map(bytes).unwrap_or_default()),
        ("Queues being reclaimed", thousands(stats.queues_being_reclaimed)),
    ];
    let rows: Vec<_> = rows.map(|(name, value)| vec![name.to_owned(), value]).into();
    context.output.table(&["Queue service", ""], &rows)
}
