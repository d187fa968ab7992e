//! `bench queue`: the operations, their requests, and one caller's loop over them.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::json;
use tokio::time::Instant;
use tonic::Status;
use trestle_command::{
    client::Session, errors::CliError, flags::ClientArgs, interrupt::Interrupts,
    messages::proto_duration, values::whole_number,
};
use trestle_proto::queue::v1::{
    CreateQueueRequest, DeleteMessagesRequest, DeleteQueueRequest, OutgoingMessage,
    PeekMessagesRequest, Queue, ReceiptRef, ReceiveMessagesRequest, SendMessagesRequest,
    outgoing_message::Body,
};

use super::{BenchLoadArgs, BenchTally, CompletedBench, MeasuredTime, measure, op_name};

/// Visibility timeout of received messages: no bench lasts longer between a receive and its delete.
const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(60);
/// A caller whose call failed or found no message waits, so that a server is not called in a busy loop.
const WAIT: Duration = Duration::from_millis(10);

/// Arguments of `bench queue`.
#[derive(Debug, Clone, Args)]
pub struct QueueBenchArgs {
    /// The operation
    #[arg(long, value_enum, default_value_t = QueueBenchOp::Cycle)]
    pub(crate) op: QueueBenchOp,
    /// The load
    #[command(flatten)]
    pub(crate) load: BenchLoadArgs,
    /// Size of each message
    #[arg(long, default_value_t = 1024, value_parser = whole_number::<u32>(0..=65_536))]
    pub(crate) message_bytes: u32,
    /// Messages of one send or receive
    #[arg(long, default_value_t = 1, value_parser = whole_number::<u32>(1..=32))]
    pub(crate) batch: u32,
}

/// An operation to put load on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QueueBenchOp {
    /// Send, receive and delete
    Cycle,
    /// Send
    Send,
    /// Peek
    Peek,
}

/// Runs the bench in a queue of this name; its arguments and the measurements.
pub(super) async fn run(
    args: &QueueBenchArgs,
    client: &ClientArgs,
    session: &Session,
    name: String,
) -> Result<CompletedBench, CliError> {
    let mut interrupts = Interrupts::listen()?;
    let queue = Some(Queue { name: name.clone(), ..Queue::default() });
    session.queues().create_queue(CreateQueueRequest { queue }).await?;
    let caller = |session, _, span| {
        QueueWorker { session, span, queue: name.clone(), args: args.clone() }.run()
    };
    let measured = interrupts.unless_pressed(async {
        if args.op == QueueBenchOp::Peek {
            let span = MeasuredTime { from: Instant::now(), end: Instant::now() };
            let session = session.clone();
            QueueWorker { session, span, queue: name.clone(), args: args.clone() }.send().await?;
        }
        measure(&args.load, client, caller).await
    });
    let measured = measured.await;
    let removed = session.queues().delete_queue(DeleteQueueRequest { queue: name.clone() }).await;
    let record = json!({
        "op": op_name(&args.op), "message_bytes": args.message_bytes, "batch": args.batch,
    });
    CompletedBench::new(record, measured, removed, &format!("queue `{name}`"), client)
}

/// One caller.
struct QueueWorker {
    session: Session,
    span: MeasuredTime,
    queue: String,
    args: QueueBenchArgs,
}

impl QueueWorker {
    /// Calls until the end; what began and ended within the measured time is counted.
    async fn run(self) -> BenchTally {
        let mut tally = BenchTally::new();
        let mut began = Instant::now();
        while began < self.span.end {
            let result = match self.args.op {
                QueueBenchOp::Send => self.send().await,
                QueueBenchOp::Peek => self.peek().await,
                QueueBenchOp::Cycle => self.cycle().await,
            };
            let ended = Instant::now();
            match result {
                Ok(messages) if self.span.has(began, ended) => {
                    tally.call(ended.duration_since(began));
                    tally.entities(messages);
                }
                Ok(_) => {}
                Err(status) => {
                    tally.error(status.code());
                    tokio::time::sleep(WAIT).await;
                }
            }
            began = Instant::now();
        }
        tally
    }

    async fn send(&self) -> Result<usize, Status> {
        let text = "x".repeat(usize::try_from(self.args.message_bytes).unwrap_or_default());
        let message = OutgoingMessage { body: Some(Body::Text(text)), ..Default::default() };
        let messages = vec![message; usize::try_from(self.args.batch).unwrap_or_default()];
        let request =
            SendMessagesRequest { queue: self.queue.clone(), messages, ..Default::default() };
        Ok(self.session.queues().send_messages(request).await?.into_inner().results.len())
    }

    async fn peek(&self) -> Result<usize, Status> {
        let max_messages = Some(self.args.batch);
        let queue = self.queue.clone();
        let request = PeekMessagesRequest { queue, max_messages, ..Default::default() };
        Ok(self.session.queues().peek_messages(request).await?.into_inner().messages.len())
    }

    /// Sends messages, and receives and deletes as many at most, of this caller or another.
    async fn cycle(&self) -> Result<usize, Status> {
        self.send().await?;
        let request = ReceiveMessagesRequest {
            queue: self.queue.clone(),
            max_messages: Some(self.args.batch),
            visibility_timeout: Some(proto_duration(VISIBILITY_TIMEOUT)),
            wait: None,
        };
        let received = self.session.queues().receive_messages(request).await?.into_inner();
        let receipts = received.deliveries.into_iter().map(|delivery| ReceiptRef {
            message_id: delivery.message.map(|message| message.message_id).unwrap_or_default(),
            pop_receipt: delivery.pop_receipt,
        });
        let receipts: Vec<_> = receipts.collect();
        let deleted = receipts.len();
        if deleted > 0 {
            let request = DeleteMessagesRequest { queue: self.queue.clone(), receipts };
            self.session.queues().delete_messages(request).await?;
        }
        Ok(deleted)
    }
}
