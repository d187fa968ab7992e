//! Response streams produced by a task of their own: bounded in memory, and a panic of the task ends the stream with
//! an error. A client that does not read blocks the task until the listener, which disconnects slow clients, drops the
//! stream.

use crate::status::{DOMAIN, IntoStatus as _};
use std::{future::Future, pin::Pin, time::Duration};

use futures::{Stream, StreamExt as _, stream};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::propagation;
use trestle_model::fault::{Fault, Reason};

/// The responses of a call.
pub type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Messages that are buffered for the client.
const BUFFERED_MAX: usize = 2;

/// Sends the messages of a task.
pub struct ResponseSender<T> {
    sender: mpsc::Sender<T>,
}

impl<T> ResponseSender<T> {
    /// Sends a message, once the channel has room for it.
    ///
    /// # Errors
    /// When the client has disconnected; the task should end.
    pub async fn send(&self, message: T) -> Result<(), Status> {
        let sent = self.sender.send(message).await;
        sent.map_err(|_| Status::cancelled("the client has disconnected"))
    }

    /// The result of a future.
    ///
    /// # Errors
    /// When the client has disconnected before; the task should end.
    pub async fn unless_closed<R>(&self, future: impl Future<Output = R>) -> Result<R, Status> {
        tokio::select! {
            result = future => Ok(result),
            () = self.sender.closed() => Err(Status::cancelled("the client has disconnected")),
        }
    }

    /// Sleeps.
    ///
    /// # Errors
    /// When the client has disconnected; the task should end.
    pub async fn pause(&self, time: Duration) -> Result<(), Status> {
        match tokio::time::timeout(time, self.sender.closed()).await {
            Ok(()) => Err(Status::cancelled("the client has disconnected")),
            Err(_elapsed) => Ok(()),
        }
    }
}

/// The messages that `produce` sends, then its error, if it failed.
pub fn spawn<T, F>(produce: impl FnOnce(ResponseSender<T>) -> F) -> ResponseStream<T>
where
    T: Send + 'static,
    F: Future<Output = Result<(), Status>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(BUFFERED_MAX);
    let work = produce(ResponseSender { sender });
    let task = tokio::spawn(propagation::carry(work));
    // The task ends before or with the last message, so waiting for it takes no time.
    let end = stream::once(error(task)).filter_map(|error| async { error.map(Err) });
    Box::pin(ReceiverStream::new(receiver).map(Ok).chain(end))
}

async fn error(task: JoinHandle<Result<(), Status>>) -> Option<Status> {
    match task.await {
        Ok(outcome) => outcome.err(),
        Err(_) => Some(Fault::new(Reason::InternalError, "the server failed").into_status(DOMAIN)),
    }
}

#[cfg(test)]
mod tests;
