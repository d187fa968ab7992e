//! The calls, as official clients send them: what is created is not sent back, and answers carry minimal metadata.

use std::fmt::Write as _;

use super::{
    CONNECTIONS, Numbers,
    sides::Side,
    sign::{ACCOUNT, Signer, VERSION},
};
use crate::{load, wire::Connection};

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
/// The visibility timeout.
const VISIBILITY_SECONDS: u32 = 300;
const BOUNDARY: &str = "batch_9f2d1c";

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Insert,
    Delete,
    Get,
    PageOf100,
    PageOf1000,
    Update,
    Merge,
    Upsert,
    Batch,
    QueueSend,
    QueueCycle,
}

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert 1 KiB",
            Self::Delete => "delete",
            Self::Get => "get 1 KiB",
            Self::PageOf100 => "page of 100",
            Self::PageOf1000 => "page of 1,000",
            Self::Update => "update",
            Self::Merge => "merge",
            Self::Upsert => "upsert",
            Self::Batch => "entities in $batch of 100",
            Self::QueueSend => "queue put",
            Self::QueueCycle => "queue put + get + delete",
        }
    }

    fn is_of_queue(self) -> bool {
        matches!(self, Self::QueueSend | Self::QueueCycle)
    }
}

/// The key of an entity of [`ROWS`].
pub(super) fn row(number: u64) -> (String, String) {
    let number = number % (PARTITIONS * PARTITION_ROWS);
    (format!("p{}", number / PARTITION_ROWS), format!("{:012}", number % PARTITION_ROWS))
}

/// The key of an entity of [`GROWN`].
pub(super) fn grown(number: u64) -> (String, String) {
    (format!("p{:05}", number % 1000), format!("{number:012}"))
}

/// The key of an entity of a batch into [`GROWN`].
pub(super) fn batched(number: u64, row: u64) -> (String, String) {
    (format!("b{:05}", number % 1000), format!("{number:012}-{row:03}"))
}

/// The entity in JSON, with 1 KiB of text.
fn entity((partition, row): &(String, String)) -> String {
    let text = load::payload();
    format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"payload\":\"{text}\"}}")
}

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

    async fn change(&mut self, method: &str, condition: &str) {
        let key = row(self.numbers.other());
        self.table((method, &path(ROWS, &key)), condition, &entity(&key), 204).await;
    }

    async fn page(&mut self, top: &str) {
        let partition = self.numbers.other() % PARTITIONS;
        let path = format!("/{ACCOUNT}/{ROWS}()?$filter=PartitionKey%20eq%20'p{partition}'{top}");
        self.table(("GET", &path), "", "", 200).await;
    }

    /// Inserts entities as one change set.
    pub(super) async fn batch(
        &mut self,
        table: &str,
        keys: impl Iterator<Item = (String, String)>,
    ) {
        let mut body =
            format!("--{BOUNDARY}\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n");
        for key in keys {
            let _ = write!(
                body,
                "--changeset_1\r\nContent-Type: application/http\r\n\
                 Content-Transfer-Encoding: binary\r\n\r\n\
                 POST http://127.0.0.1/{ACCOUNT}/{table} HTTP/1.1\r\n\
                 Content-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\n\
                 DataServiceVersion: 3.0\r\nPrefer: return-no-content\r\n\r\n{}\r\n",
                entity(&key)
            );
        }
        let _ = write!(body, "--changeset_1--\r\n--{BOUNDARY}--\r\n");
        let content_type = format!("multipart/mixed; boundary={BOUNDARY}");
        let path = format!("/{ACCOUNT}/$batch");
        self.write_table(("POST", &path), &content_type, "", &body);
        let answer = self.sent(202).await;
        let rejected = answer.windows(10).any(|line| line == b"HTTP/1.1 4");
        assert!(!rejected, "a batch is accepted: {}", String::from_utf8_lossy(answer));
    }

    /// A request to tables, in JSON.
    pub(super) async fn table(
        &mut self,
        target: (&str, &str),
        headers: &str,
        body: &str,
        status: u16,
    ) {
        let content_type = if body.is_empty() { "" } else { "application/json" };
        self.write_table(target, content_type, headers, body);
        self.sent(status).await;
    }

    fn write_table(
        &mut self,
        (method, target): (&str, &str),
        content_type: &str,
        headers: &str,
        body: &str,
    ) {
        let path = target.split('?').next().unwrap_or_default();
        let signature = self.signer.of_table(method, content_type, path);
        let date = &self.signer.date;
        let mut request = format!(
            "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-date: {date}\r\n\
             x-ms-version: {VERSION}\r\nAuthorization: SharedKey {ACCOUNT}:{signature}\r\n\
             Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n{headers}"
        );
        if !body.is_empty() {
            let _ = write!(request, "Content-Type: {content_type}\r\n");
        }
        if method != "GET" {
            let _ = write!(request, "Content-Length: {}\r\n", body.len());
        }
        let _ = write!(request, "\r\n{body}");
        self.request = request.into_bytes();
    }

    /// Sends a query and does not read the answer.
    pub(super) async fn request_only(&mut self, target: &str) {
        self.write_table(("GET", target), "", "", "");
        self.connection.send(&self.request).await;
        self.connection.begins().await;
    }

    async fn put(&mut self) {
        let text = load::payload();
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        let path = format!("/{ACCOUNT}/{QUEUE}/messages");
        self.queue(("POST", &path), &[], &body, 201).await;
    }

    async fn cycle(&mut self) {
        self.put().await;
        let visibility = VISIBILITY_SECONDS.to_string();
        let parameters = [("numofmessages", "1"), ("visibilitytimeout", visibility.as_str())];
        let path = format!("/{ACCOUNT}/{QUEUE}/messages");
        let answer = self.queue(("GET", &path), &parameters, "", 200).await;
        let answer = String::from_utf8_lossy(answer).into_owned();
        let id = element(&answer, "MessageId").expect("a message waits");
        let receipt = element(&answer, "PopReceipt").expect("with a receipt");
        let path = format!("/{ACCOUNT}/{QUEUE}/messages/{id}");
        self.queue(("DELETE", &path), &[("popreceipt", receipt)], "", 204).await;
    }

    /// A request to queues. The parameters are in the order of their names.
    pub(super) async fn queue(
        &mut self,
        (method, path): (&str, &str),
        parameters: &[(&str, &str)],
        body: &str,
        status: u16,
    ) -> &[u8] {
        let (mut query, mut signed) = (String::new(), String::new());
        for (name, value) in parameters {
            let encoded =
                percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
            let separator = if query.is_empty() { '?' } else { '&' };
            let _ = write!(query, "{separator}{name}={encoded}");
            let _ = write!(signed, "\n{name}:{value}");
        }
        let content_type = if body.is_empty() { "" } else { "application/xml" };
        let signature = self.signer.of_queue(method, body.len(), content_type, (path, &signed));
        let date = &self.signer.date;
        let mut request = format!(
            "{method} {path}{query} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-date: {date}\r\n\
             x-ms-version: {VERSION}\r\nAuthorization: SharedKey {ACCOUNT}:{signature}\r\n\
             Content-Length: {}\r\n",
            body.len()
        );
        if !body.is_empty() {
            request.push_str("Content-Type: application/xml\r\n");
        }
        let _ = write!(request, "\r\n{body}");
        self.request = request.into_bytes();
        self.sent(status).await
    }

    async fn sent(&mut self, expected: u16) -> &[u8] {
        let (status, body) = self.connection.call(&self.request).await;
        assert!(status == expected, "{status} is answered: {}", String::from_utf8_lossy(body));
        body
    }
}

fn path(table: &str, (partition, row): &(String, String)) -> String {
    format!("/{ACCOUNT}/{table}(PartitionKey='{partition}',RowKey='{row}')")
}

/// The text between the tags of an element.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}
