//! A received message, which is invisible to others as long as its visibility timeout is extended.

use std::{future, time::Duration};

use tokio::time::{Instant, sleep_until, timeout};
use tonic::{Code, Status};
use trestle_command::{
    errors::{CliError, status_of},
    messages::proto_duration,
    retry::{Retries, Temporary as _},
};
use trestle_proto::queue::v1::{DeleteMessagesRequest, Delivery, ReceiptRef, UpdateMessageRequest};

use super::super::{
    Context,
    messages::{ReceiveOptions, receipt},
};

/// How long a message may take to become visible again, which it does later by itself.
const RELEASE_WITHIN: Duration = Duration::from_secs(5);
/// Why a message cannot be deleted.
const LOST: &str = "not deleted: its receipt is invalid, because its visibility timeout ended, \
                    or because it expired or was deleted";

/// The end of a message whose command ended.
pub(super) enum MessageEnd {
    Deleted,
    /// It was not deleted, and why.
    Kept(String),
}

/// A received message.
pub(super) struct HeldMessage {
    queue: String,
    receipt: ReceiptRef,
    visibility_timeout: Duration,
    /// When its visibility timeout is extended; none where its receipt is invalid.
    due: Option<Instant>,
}

impl HeldMessage {
    /// A message that was received just now.
    pub(super) fn new(options: &ReceiveOptions, delivery: &Delivery) -> Self {
        let visibility_timeout = options.visibility_timeout;
        let due = Some(Instant::now() + visibility_timeout / 3);
        let (queue, receipt) = (options.queue.clone(), receipt(delivery));
        Self { queue, receipt, visibility_timeout, due }
    }

    /// Waits until its visibility timeout is to be extended.
    pub(super) async fn until_due(&self) {
        match self.due {
            Some(due) => sleep_until(due).await,
            None => future::pending().await,
        }
    }

    /// Makes it invisible for its visibility timeout from now on; where that fails, soon again.
    pub(super) async fn extend(&mut self, context: &Context) {
        let timeout = self.visibility_timeout;
        self.due = match self.update(context, timeout).await {
            Ok(()) => Some(Instant::now() + timeout / 3),
            Err(status) if status.code() == Code::NotFound => None,
            Err(_) => Some(Instant::now() + timeout / 10),
        };
    }

    /// Makes it visible after a time, if that succeeds; else its visibility timeout ends by itself.
    pub(super) async fn retry_after(&mut self, context: &Context, after: Duration) {
        let _ = timeout(RELEASE_WITHIN, self.update(context, after)).await;
    }

    async fn update(&mut self, context: &Context, timeout: Duration) -> Result<(), Status> {
        let request = UpdateMessageRequest {
            queue: self.queue.clone(),
            receipt: Some(self.receipt.clone()),
            visibility_timeout: Some(proto_duration(timeout)),
            body: None,
        };
        let answer = context.session.queues().update_message(request).await?.into_inner();
        self.receipt.pop_receipt = answer.pop_receipt;
        Ok(())
    }

    /// Deletes it, if its receipt is valid.
    pub(super) async fn delete(&self, context: &Context) -> Result<MessageEnd, CliError> {
        let (mut retries, mut is_repeated) = (Retries::default(), false);
        loop {
            match self.try_delete(context).await {
                Ok(()) => return Ok(MessageEnd::Deleted),
                // An earlier try was executed, though its response did not arrive.
                Err(status) if status.code() == Code::NotFound && is_repeated => {
                    return Ok(MessageEnd::Deleted);
                }
                Err(status) if status.code() == Code::NotFound => {
                    return Ok(MessageEnd::Kept(LOST.to_owned()));
                }
                Err(status) if status.is_temporary() => retries.wait(status).await?,
                Err(status) => return Err(status.into()),
            }
            is_repeated = true;
        }
    }

    async fn try_delete(&self, context: &Context) -> Result<(), Status> {
        let (queue, receipts) = (self.queue.clone(), vec![self.receipt.clone()]);
        let request = DeleteMessagesRequest { queue, receipts };
        let answer = context.session.queues().delete_messages(request).await?.into_inner();
        match answer.results.into_iter().find_map(|result| result.error) {
            Some(error) => Err(status_of(&error.into())),
            None => Ok(()),
        }
    }
}
