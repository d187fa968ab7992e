//! Streams of answers made by a task of their own: bounded in memory, and honest about a defect in the task, which must
//! not look like a good end. A client that does not read holds the task up until the listener, which knows of such
//! clients, drops the stream.

use std::{future::Future, time::Duration};

use futures::{StreamExt as _, stream};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use trestle_service::{
    fault::{Fault, Reason},
    propagation,
};

use super::Responses;

/// Messages that wait for the client.
const WAITING_MAX: usize = 2;

/// Where a task puts its messages.
pub(super) struct Outbox<T> {
    sender: mpsc::Sender<T>,
}

impl<T> Outbox<T> {
    /// Waits until the client has room for the message.
    ///
    /// # Errors
    /// When the client is gone; the task should end.
    pub(super) async fn send(&self, message: T) -> Result<(), Status> {
        let sent = self.sender.send(message).await;
        sent.map_err(|_| Status::cancelled("nobody reads the answers any more"))
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

/// What `produce` puts into its outbox, and at the end its failure, if it failed.
pub(super) fn responses<T, F>(produce: impl FnOnce(Outbox<T>) -> F) -> Responses<T>
where
    T: Send + 'static,
    F: Future<Output = Result<(), Status>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let work = produce(Outbox { sender });
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

    #[tokio::test]
    async fn a_task_waits_for_its_client_and_ends_with_it() {
        let (told, ended) = tokio::sync::oneshot::channel();
        let mut unread = responses(|outbox| async move {
            let mut sent = 0;
            while outbox.send(sent).await.is_ok() {
                sent += 1;
            }
            told.send(sent).expect("the test listens");
            Ok(())
        });

        let first = unread.next().await;
        drop(unread);
        let sent = tokio::time::timeout(Duration::from_secs(10), ended).await;

        assert!(matches!(first, Some(Ok(0))));
        let sent = usize::try_from(sent.expect("it goes on").expect("it tells")).expect("few");
        assert!((WAITING_MAX..=WAITING_MAX + 1).contains(&sent), "{sent}");
    }
}
