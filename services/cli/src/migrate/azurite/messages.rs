//! Messages of a workspace, from its database to their queues.

use std::{collections::HashMap, sync::Arc};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
};

use super::{
    closed,
    documents::MessageDocument,
    ended, loki,
    texts::Texts,
    workspace::{MESSAGES, Workspace},
};
use crate::{
    errors::CliError,
    migrate::{
        progress::{Skipped, Tracker},
        queues::{BATCH_BYTES_MAX, BATCH_MAX, SourceMessage, TargetQueues},
    },
};

/// Most messages that were read and wait to be passed to their queue.
const AHEAD_MAX: usize = 64;
/// Most bytes of messages in flight, of all queues together.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// The approximate memory of a message besides its body.
const MESSAGE_BYTES: usize = 256;

/// Copies the messages of every queue that is in the progress.
pub(super) async fn copy(
    workspace: &Workspace,
    account: &str,
    queues: TargetQueues,
    tracker: &Arc<Tracker>,
) -> Result<(), CliError> {
    let Some(path) = workspace.queues.clone() else { return Ok(()) };
    let (sender, mut messages) = mpsc::channel(AHEAD_MAX);
    let mut reader = MessageReader {
        account: account.to_owned(),
        texts: Texts::new(workspace.texts()),
        tracker: Arc::clone(tracker),
        done: tracker.read(|progress| {
            progress.queues.iter().map(|(name, queue)| (name.clone(), queue.position)).collect()
        }),
        messages: sender,
    };
    let reading = tokio::task::spawn_blocking(move || loki::read(&path, &mut reader));
    let room = Arc::new(Semaphore::new(BYTES_MAX));
    let mut senders: HashMap<String, mpsc::UnboundedSender<Item>> = HashMap::new();
    let mut sending: JoinSet<Result<(), CliError>> = JoinSet::new();
    while let Some((queue, message)) = messages.recv().await {
        let size = u32::try_from(message.len().saturating_add(MESSAGE_BYTES)).unwrap_or(u32::MAX);
        let permit = tokio::select! {
            permit = Arc::clone(&room).acquire_many_owned(size) => permit.map_err(|_| closed())?,
            // A task ends before its last message only if it fails.
            Some(sent) = sending.join_next() => return sent.map_err(|error| ended(&error))?.and(Err(closed())),
        };
        let sender = senders.entry(queue.clone()).or_insert_with(|| {
            let (sender, items) = mpsc::unbounded_channel();
            sending.spawn(send(queues.clone(), Arc::clone(tracker), queue, items));
            sender
        });
        if sender.send(Item { message, room: permit }).is_err() {
            break;
        }
    }
    drop(senders);
    drop(messages);
    while let Some(sent) = sending.join_next().await {
        sent.map_err(|error| ended(&error))??;
    }
    reading.await.map_err(|error| ended(&error))?
}

/// A message, with its share of the memory.
struct Item {
    message: SourceMessage,
    room: OwnedSemaphorePermit,
}

/// Sends the messages of one queue, as many at a time as are available.
async fn send(
    mut queues: TargetQueues,
    tracker: Arc<Tracker>,
    queue: String,
    mut items: mpsc::UnboundedReceiver<Item>,
) -> Result<(), CliError> {
    while let Some(item) = items.recv().await {
        let mut bytes = item.message.len();
        let (mut batch, mut held) = (vec![item.message], vec![item.room]);
        while batch.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX {
            let Ok(next) = items.try_recv() else { break };
            bytes = bytes.saturating_add(next.message.len());
            batch.push(next.message);
            held.push(next.room);
        }
        queues.send(&tracker, &queue, batch, false).await?;
    }
    Ok(())
}

/// Passes messages to the tasks that send them.
struct MessageReader {
    account: String,
    texts: Texts,
    tracker: Arc<Tracker>,
    /// Up to where the messages of each queue are copied.
    done: HashMap<String, u64>,
    messages: mpsc::Sender<(String, SourceMessage)>,
}

impl MessageReader {
    fn message(&mut self, document: &MessageDocument, number: u64) -> SourceMessage {
        let expires = document.expires();
        let body = match &expires {
            Ok(_) => self.texts.read(&document.persistency),
            Err(why) => Err(why.clone()),
        };
        SourceMessage {
            id: document.message_id.clone(),
            position: number,
            body,
            visible: document.visible(),
            expires: expires.unwrap_or_default(),
            dequeue_count: document.dequeue_count,
        }
    }
}

impl loki::DatabaseReader for MessageReader {
    fn select(&mut self, collection: &str) -> Option<u64> {
        (collection == MESSAGES).then_some(0)
    }

    fn document(&mut self, _: &str, number: u64, json: &str) -> Result<(), CliError> {
        let document: MessageDocument = match serde_json::from_str(json) {
            Ok(document) => document,
            Err(error) => {
                let (whose, which) = ("messages".to_owned(), format!("document {number}"));
                let why = format!("is not a message: {error}");
                self.tracker.change(|progress| progress.skip(Skipped { whose, which, why }));
                return Ok(());
            }
        };
        let queue = document.queue_name.clone();
        let is_wanted = document.account_name == self.account
            && self.done.get(&queue).is_some_and(|done| number > *done);
        if !is_wanted {
            return Ok(());
        }
        let message = self.message(&document, number);
        self.messages.blocking_send((queue, message)).map_err(|_| closed())
    }

    fn bytes(&mut self, more: u64) {
        self.tracker.bar.inc(more);
    }
}
