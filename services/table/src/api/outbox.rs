//! Streams of answers made by a task of their own: bounded in memory, bounded in time without progress, and honest
//! about a defect in the task, which must not look like a good end.

use std::{future::Future, time::Duration};

use futures::{StreamExt as _, stream};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use trestle_service::{
    fault::{Fault, Reason},
    limits::STREAM_IDLE_MAX,
    propagation,
};

use super::Responses;

/// Messages that wait for the client.
const WAITING_MAX: usize = 2;

/// Where a task puts its messages.
pub(super) struct Outbox<T> {
    sender: mpsc::Sender<T>,
    idle_max: Duration,
}

impl<T> Outbox<T> {
    /// Waits until the client has room for the message.
    ///
    /// # Errors
    /// When the client does not read, or is gone; the task should end.
    pub(super) async fn send(&self, message: T) -> Result<(), Status> {
        let sent = self.sender.send_timeout(message, self.idle_max).await;
        sent.map_err(|_| idle("no answer was read", self.idle_max).into())
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// When the client is gone; the task should end.
    pub(super) async fn pause(&self, time: Duration) -> Result<(), Status> {
        match tokio::time::timeout(time, self.sender.closed()).await {
            Ok(()) => Err(Status::cancelled("the client is gone")),
            Err(_elapsed) => Ok(()),
        }
    }
}

/// The failure of a client that neither sends nor reads.
pub(super) fn idle(what: &str, waited: Duration) -> Fault {
    Fault::new(Reason::OperationTimedOut, format!("{what}: seconds=`{}`", waited.as_secs()))
}

/// What `produce` puts into its outbox, and at the end its failure, if it failed.
pub(super) fn responses<T, F>(produce: impl FnOnce(Outbox<T>) -> F) -> Responses<T>
where
    T: Send + 'static,
    F: Future<Output = Result<(), Status>> + Send + 'static,
{
    paced(STREAM_IDLE_MAX, produce)
}

fn paced<T, F>(idle_max: Duration, produce: impl FnOnce(Outbox<T>) -> F) -> Responses<T>
where
    T: Send + 'static,
    F: Future<Output = Result<(), Status>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let work = produce(Outbox { sender, idle_max });
    let task = tokio::spawn(propagation::carry(work));
    // The task ends before or with the last message, so waiting for it takes no time.
    let end = stream::once(failure(task)).filter_map(|failure| async { failure.map(Err) });
    Box::pin(ReceiverStream::new(receiver).map(Ok).chain(end))
}

async fn failure(task: JoinHandle<Result<(), Status>>) -> Option<Status> {
    match task.await {
        Ok(outcome) => outcome.err(),
        Err(_) => Some(Fault::new(Reason::InternalError, "the server failed").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn collect(mut responses: Responses<u32>) -> (Vec<u32>, Option<tonic::Code>) {
        let mut messages = Vec::new();
        while let Some(response) = responses.next().await {
            match response {
                Ok(message) => messages.push(message),
                Err(status) => return (messages, Some(status.code())),
            }
        }
        (messages, None)
    }

    #[tokio::test]
    async fn messages_arrive_in_order_and_a_good_end_is_an_end() {
        let responses = responses(|outbox| async move {
            for message in 0..10 {
                outbox.send(message).await?;
            }
            Ok(())
        });

        assert_eq!(collect(responses).await, ((0..10).collect(), None));
    }

    #[tokio::test]
    async fn a_failure_and_a_panic_come_after_what_was_sent() {
        let failing = responses(|outbox| async move {
            outbox.send(1).await?;
            Err(Status::aborted("stop"))
        });
        let panicking = responses(|outbox| async move {
            outbox.send(1).await?;
            panic!("a defect");
        });

        assert_eq!(collect(failing).await, (vec![1], Some(tonic::Code::Aborted)));
        assert_eq!(collect(panicking).await, (vec![1], Some(tonic::Code::Internal)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_let_go() {
        let unread = paced(Duration::from_secs(5), |outbox| async move {
            for message in 0.. {
                outbox.send(message).await?;
            }
            Ok(())
        });

        tokio::time::sleep(Duration::from_secs(6)).await;

        let (messages, code) = collect(unread).await;
        assert_eq!(messages.len(), WAITING_MAX);
        assert_eq!(code, Some(tonic::Code::DeadlineExceeded));
    }
}
