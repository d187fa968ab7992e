//! `create`, `list`, `delete`, `clear` and `stats`.

use std::time::Duration;

use serde_json::json;
use trestle_proto::queue::v1::{
    self as proto, ClearMessagesRequest, CreateQueueRequest, DeadLetterPolicy, DeleteQueueRequest,
    GetQueueRequest, GetServiceStatsRequest, ListQueuesRequest, Queue,
};

use super::{Context, duration};
use crate::{
    datetime,
    errors::CliError,
    output::{bytes, thousands},
};

/// The settings that the arguments say.
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
    let metadata = metadata.into_iter().map(pair).collect::<Result<_, _>>()?;
    let dead_letter =
        dead_letter.map(|(queue, max_dequeue_count)| DeadLetterPolicy { queue, max_dequeue_count });
    let deduplication_window = window.map(duration);
    Ok(Queue { name, metadata, dead_letter, deduplication_window, create_time: None })
}

/// Creates a queue.
pub(super) async fn create(context: &mut Context, queue: Queue) -> Result<(), CliError> {
    let name = queue.name.clone();
    let request = context.session.request(CreateQueueRequest { queue: Some(queue) });
    let created = context.queues.create_queue(request).await?.into_inner().created;
    let text = match created {
        true => format!("created queue {name}"),
        false => format!("queue {name} exists already, with the same settings"),
    };
    context.output.either(&text, &json!({ "queue": name, "created": created }))
}

/// Prints the queues whose names begin so.
pub(super) async fn list(context: &mut Context, prefix: String) -> Result<(), CliError> {
    let (mut page_token, mut rows) = (String::new(), Vec::new());
    loop {
        let prefix = prefix.clone();
        let request = ListQueuesRequest { prefix, page_size: None, page_token };
        let request = context.session.request(request);
        let page = context.queues.list_queues(request).await?.into_inner();
        for queue in page.queues {
            let created = queue.create_time.as_ref().and_then(datetime::format);
            let dead_letter = queue.dead_letter.map(|policy| policy.queue);
            if context.output.is_json() {
                let metadata: std::collections::BTreeMap<_, _> = queue.metadata.iter().collect();
                let object = json!({
                    "queue": queue.name, "create_time": created, "metadata": metadata,
                    "dead_letter": dead_letter,
                });
                context.output.line(&object.to_string())?;
            } else {
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

fn must_confirm(what: &str, yes: bool) -> Result<(), CliError> {
    if yes {
        return Ok(());
    }
    Err(CliError::Usage(format!("{what} takes --yes; nothing was deleted")))
}

/// Deletes a queue.
pub(super) async fn delete(
    context: &mut Context,
    queue: String,
    yes: bool,
) -> Result<(), CliError> {
    must_confirm("deleting a queue", yes)?;
    let request = context.session.request(DeleteQueueRequest { queue: queue.clone() });
    context.queues.delete_queue(request).await?;
    let text = format!("deleted queue {queue}");
    context.output.either(&text, &json!({ "queue": queue, "deleted": true }))
}

/// Deletes the messages of a queue.
pub(super) async fn clear(context: &mut Context, queue: String, yes: bool) -> Result<(), CliError> {
    must_confirm("clearing a queue", yes)?;
    let request = context.session.request(ClearMessagesRequest { queue: queue.clone() });
    context.queues.clear_messages(request).await?;
    let text = format!("cleared queue {queue}");
    context.output.either(&text, &json!({ "queue": queue, "cleared": true }))
}

/// Prints how a queue is, or the service.
pub(super) async fn stats(context: &mut Context, queue: Option<String>) -> Result<(), CliError> {
    let Some(queue) = queue else { return service(context).await };
    let request = context.session.request(GetQueueRequest { queue: queue.clone() });
    let stats = context.queues.get_queue(request).await?.into_inner().stats.unwrap_or_default();
    let age = stats.oldest_message_age.map(|age| age.seconds);
    if context.output.is_json() {
        let object = json!({
            "queue": queue, "messages": stats.approximate_message_count,
            "oldest_message_age_seconds": age,
        });
        return context.output.line(&object.to_string());
    }
    let age = age.map_or_else(|| "none".to_owned(), |seconds| format!("{seconds} s ago"));
    let rows = [
        vec!["Messages".to_owned(), thousands(stats.approximate_message_count)],
        vec!["Oldest sent".to_owned(), age],
    ];
    context.output.table(&["Queue", &queue], &rows)
}

async fn service(context: &mut Context) -> Result<(), CliError> {
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
