//! Messages of a workspace, from its database to their queues.

use std::{collections::HashMap, path::Path};

use trestle_command::{errors::CliError, output::skip_ahead};

use super::{
    documents::MessageDocument,
    loki, texts,
    workspace::{MESSAGES, Workspace},
};
use crate::{
    ImportTarget,
    progress::Skipped,
    queues::{BATCH_BYTES_MAX, BATCH_MAX, SourceMessage},
};

/// Most bytes of messages that wait until the batch of their queue is full, of all queues together.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The approximate memory of a message besides its body.
const MESSAGE_BYTES: usize = 256;

/// Messages of one queue to send together.
#[derive(Default)]
struct MessageBatch {
    messages: Vec<SourceMessage>,
    bytes: usize,
}

/// Copies the messages of every queue that is in the progress, in batches.
pub(super) async fn copy(
    workspace: &Workspace,
    account: &str,
    target: ImportTarget<'_>,
) -> Result<(), CliError> {
    let tracker = target.tracker;
    let Some(path) = &workspace.queues else { return Ok(()) };
    let text = loki::read(path).await?;
    let database = loki::parse(&text, path)?;
    let directory = workspace.texts();
    // Up to where the messages of each queue are copied.
    let done: HashMap<String, u64> = tracker.read(|progress| {
        progress.queues.iter().map(|(name, queue)| (name.clone(), queue.position)).collect()
    });
    let (mut batches, mut waiting) = (HashMap::<String, MessageBatch>::new(), 0);
    let messages = database.collections.iter().filter(|collection| collection.name == MESSAGES);
    let mut is_first = true;
    for (number, json) in messages.flat_map(|collection| collection.documents(0)) {
        tracker.bar.inc(u64::try_from(json.len()).unwrap_or_default());
        let document: MessageDocument = match serde_json::from_str(json) {
            Ok(document) => document,
            Err(error) => {
                let (which, why) =
                    (format!("document {number}"), format!("is not a message: {error}"));
                tracker.change(|progress| progress.skip(Skipped::new("messages", which, why)));
                continue;
            }
        };
        let is_new = done.get(&document.queue_name).is_some_and(|done| number > *done);
        if document.account_name != account || !is_new {
            continue;
        }
        if std::mem::take(&mut is_first) {
            // Those before were copied by an earlier run.
            skip_ahead(&tracker.bar, 0);
        }
        let message = message(&document, number, &directory);
        let bytes = message.len().saturating_add(MESSAGE_BYTES);
        waiting += bytes;
        let batch = batches.entry(document.queue_name.clone()).or_default();
        batch.bytes += bytes;
        batch.messages.push(message);
        if batch.messages.len() >= BATCH_MAX || batch.bytes >= BATCH_BYTES_MAX {
            let batch = std::mem::take(batch);
            waiting -= batch.bytes;
            target.send(&document.queue_name, batch.messages, false).await?;
        } else if waiting >= WAITING_BYTES_MAX {
            waiting = 0;
            send_all(target, &mut batches).await?;
        }
    }
    send_all(target, &mut batches).await
}

async fn send_all(
    target: ImportTarget<'_>,
    batches: &mut HashMap<String, MessageBatch>,
) -> Result<(), CliError> {
    for (queue, batch) in batches.drain() {
        target.send(&queue, batch.messages, false).await?;
    }
    Ok(())
}

fn message(document: &MessageDocument, number: u64, directory: &Path) -> SourceMessage {
    let expires = document.expires();
    SourceMessage {
        id: document.message_id.clone(),
        position: number,
        body: expires.clone().and_then(|_| texts::read(directory, &document.persistency)),
        visible: document.visible(),
        expires: expires.unwrap_or_default(),
        ordering_group: String::new(),
        dequeue_count: document.dequeue_count,
    }
}
