//! Messages of a workspace on their way into their queues.

use std::{collections::HashMap, sync::Arc};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
};

use super::{
    documents::MessageDocument,
    ended,
    loki::{self, Interest},
    nobody,
    survey::{MESSAGES, Workspace},
    texts::Texts,
};
use crate::{
    errors::CliError,
    migrate::{
        notes::{Ledger, Left},
        queues::{Again, BATCH_BYTES_MAX, BATCH_MAX, Carried, Queues},
    },
};

/// Most messages that were read and wait to be handed to their queue.
const AHEAD_MAX: usize = 64;
/// Most bytes of messages on their way, of all queues together.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// What a message takes besides its body, about.
const MESSAGE_BYTES: usize = 256;

/// Copies the messages of every queue that is in the notes.
pub(super) async fn copy(
    workspace: &Workspace,
    account: &str,
    queues: Queues,
    ledger: &Arc<Ledger>,
) -> Result<(), CliError> {
    let Some(path) = workspace.queues.clone() else { return Ok(()) };
    let (sender, mut messages) = mpsc::channel(AHEAD_MAX);
    let mut reader = MessageReader {
        account: account.to_owned(),
        texts: Texts::new(workspace.texts()),
        ledger: Arc::clone(ledger),
        done: ledger.read(|notes| {
            notes.queues.iter().map(|(name, queue)| (name.clone(), queue.place)).collect()
        }),
        messages: sender,
    };
    let reading = tokio::task::spawn_blocking(move || loki::read(&path, &mut reader));
    let room = Arc::new(Semaphore::new(BYTES_MAX));
    let mut lanes: HashMap<String, mpsc::UnboundedSender<Item>> = HashMap::new();
    let mut sending: JoinSet<Result<(), CliError>> = JoinSet::new();
    while let Some((queue, carried)) = messages.recv().await {
        let size = u32::try_from(carried.len().saturating_add(MESSAGE_BYTES)).unwrap_or(u32::MAX);
        let permit = tokio::select! {
            permit = Arc::clone(&room).acquire_many_owned(size) => permit.map_err(|_| nobody())?,
            // A lane ends before its last message only where it fails.
            Some(sent) = sending.join_next() => return sent.map_err(|error| ended(&error))?.and(Err(nobody())),
        };
        let lane = lanes.entry(queue.clone()).or_insert_with(|| {
            let (sender, items) = mpsc::unbounded_channel();
            sending.spawn(send(queues.clone(), Arc::clone(ledger), queue, items));
            sender
        });
        if lane.send(Item { carried, room: permit }).is_err() {
            break;
        }
    }
    drop(lanes);
    drop(messages);
    while let Some(sent) = sending.join_next().await {
        sent.map_err(|error| ended(&error))??;
    }
    reading.await.map_err(|error| ended(&error))?
}

/// A message, with the room that it takes.
struct Item {
    carried: Carried,
    room: OwnedSemaphorePermit,
}

/// Sends the messages of one queue, as many at a time as there are.
async fn send(
    mut queues: Queues,
    ledger: Arc<Ledger>,
    queue: String,
    mut items: mpsc::UnboundedReceiver<Item>,
) -> Result<(), CliError> {
    while let Some(item) = items.recv().await {
        let mut bytes = item.carried.len();
        let (mut batch, mut held) = (vec![item.carried], vec![item.room]);
        while batch.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX {
            let Ok(next) = items.try_recv() else { break };
            bytes = bytes.saturating_add(next.carried.len());
            batch.push(next.carried);
            held.push(next.room);
        }
        queues.send(&ledger, &queue, batch, Again::Never).await?;
    }
    Ok(())
}

/// Hands messages to who sends them.
struct MessageReader {
    account: String,
    texts: Texts,
    ledger: Arc<Ledger>,
    /// Up to where the messages of each queue are done already.
    done: HashMap<String, u64>,
    messages: mpsc::Sender<(String, Carried)>,
}

impl MessageReader {
    fn carried(&mut self, document: &MessageDocument, number: u64) -> Carried {
        let expires = document.expires();
        let body = match &expires {
            Ok(_) => self.texts.read(&document.persistency),
            Err(why) => Err(why.clone()),
        };
        Carried {
            id: document.message_id.clone(),
            place: number,
            body,
            visible: document.visible(),
            expires: expires.unwrap_or_default(),
            dequeue_count: document.dequeue_count,
        }
    }
}

impl loki::Reader for MessageReader {
    fn interest(&mut self, collection: &str) -> Interest {
        if collection == MESSAGES { Interest::After(0) } else { Interest::Skip }
    }

    fn document(&mut self, _: &str, number: u64, json: &str) -> Result<(), CliError> {
        let document: MessageDocument = match serde_json::from_str(json) {
            Ok(document) => document,
            Err(error) => {
                let (whose, which) = ("messages".to_owned(), format!("document {number}"));
                let why = format!("is no message: {error}");
                self.ledger.change(|notes| notes.leave(Left { whose, which, why }));
                return Ok(());
            }
        };
        let queue = document.queue_name.clone();
        let is_wanted = document.account_name == self.account
            && self.done.get(&queue).is_some_and(|done| number > *done);
        if !is_wanted {
            return Ok(());
        }
        let carried = self.carried(&document, number);
        self.messages.blocking_send((queue, carried)).map_err(|_| nobody())
    }

    fn bytes(&mut self, more: u64) {
        self.ledger.progress().inc(more);
    }
}
