//! The calls, as official clients send them: what is created is not sent back, and answers carry minimal metadata.

mod keys;
mod operation;
mod queue;
mod table;

use self::keys::{entity, path};
use super::{
    CONNECTIONS, Numbers,
    sides::Side,
    sign::{ACCOUNT, Signer},
};
use crate::wire::Connection;

pub(super) use self::keys::{batched, grown, row};
pub(crate) use self::operation::Operation;

/// The table that is read and changed.
pub(super) const ROWS: &str = "rows";
/// The table that grows.
pub(super) const GROWN: &str = "grown";
pub(super) const QUEUE: &str = "bench";
/// Entities of a partition of [`ROWS`]: one page, the largest there is.
pub(super) const PARTITION_ROWS: u64 = 1000;
/// Partitions of [`ROWS`].
pub(super) const PARTITIONS: u64 = 2;
/// Entities of a batch: as many as there can be.
pub(super) const BATCH_ROWS: u64 = 100;

/// Creates and fills the tables and the queue.
pub(super) async fn fill(side: &Side, backlog: u64) {
    let mut caller = Caller::open(side, Operation::Batch).await;
    for table in [ROWS, GROWN] {
        let path = format!("/{ACCOUNT}/Tables");
        let body = format!("{{\"TableName\":\"{table}\"}}");
        caller.table(("POST", &path), "Prefer: return-no-content\r\n", &body, 204).await;
    }
    for number in 0..PARTITIONS * PARTITION_ROWS / BATCH_ROWS {
        let keys = (0..BATCH_ROWS).map(|index| row(number * BATCH_ROWS + index));
        caller.batch(ROWS, keys).await;
    }
    let mut caller = Caller::open(side, Operation::QueueSend).await;
    caller.queue(("PUT", &format!("/{ACCOUNT}/{QUEUE}")), &[], "", 201).await;
    // In turns of their own, since a send alone is slow at Azurite.
    let share = backlog / CONNECTIONS as u64;
    let mut tasks = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut caller = Caller::open(side, Operation::QueueSend).await;
        tasks.push(tokio::spawn(async move {
            for _ in 0..share {
                caller.call(Operation::QueueSend).await;
            }
        }));
    }
    for task in tasks {
        task.await.expect("messages are sent");
    }
}

/// A connection with its credentials.
pub(super) struct Caller {
    connection: Connection,
    signer: Signer,
    numbers: Numbers,
    request: Vec<u8>,
}

impl Caller {
    pub(super) async fn open(side: &Side, operation: Operation) -> Self {
        let port = if operation.is_of_queue() { side.queue_port } else { side.table_port };
        let (signer, numbers) = (Signer::new(), side.numbers.clone());
        Self { connection: Connection::open(port).await, signer, numbers, request: Vec::new() }
    }

    /// The same over a connection of one's own.
    pub(super) fn over(connection: Connection) -> Self {
        let (signer, numbers) = (Signer::new(), Numbers::default());
        Self { connection, signer, numbers, request: Vec::new() }
    }

    /// Executes an operation; the number of units, 0 if nothing was left to do.
    pub(super) async fn call(&mut self, operation: Operation) -> u64 {
        match operation {
            Operation::Insert => {
                let body = entity(&grown(self.numbers.insert()));
                let path = format!("/{ACCOUNT}/{GROWN}");
                self.table(("POST", &path), "Prefer: return-no-content\r\n", &body, 204).await;
            }
            Operation::Delete => {
                let Some(number) = self.numbers.delete() else { return 0 };
                let path = path(GROWN, &grown(number));
                self.table(("DELETE", &path), "If-Match: *\r\n", "", 204).await;
            }
            Operation::Get => {
                let path = path(ROWS, &row(self.numbers.other()));
                self.table(("GET", &path), "", "", 200).await;
            }
            Operation::PageOf100 => self.page("&$top=100").await,
            Operation::PageOf1000 => self.page("").await,
            Operation::Update => self.change("PUT", "If-Match: *\r\n").await,
            Operation::Merge => self.change("PATCH", "If-Match: *\r\n").await,
            Operation::Upsert => self.change("PUT", "").await,
            Operation::Batch => {
                let number = self.numbers.other();
                self.batch(GROWN, (0..BATCH_ROWS).map(|row| batched(number, row))).await;
                return BATCH_ROWS;
            }
            Operation::QueueSend => self.put().await,
            Operation::QueueCycle => self.cycle().await,
        }
        1
    }

    async fn sent(&mut self, expected: u16) -> &[u8] {
        let (status, body) = self.connection.call(&self.request).await;
        assert!(status == expected, "{status} is answered: {}", String::from_utf8_lossy(body));
        body
    }
}
