//! How slowly the messages of an upload may arrive: an upload holds memory and a slot, also while nothing arrives.

#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::{Stream, TryStreamExt as _};
use tokio::time::{Instant, timeout};
use tonic::Status;
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::{UPLOAD_GRACE, UPLOAD_IDLE_MAX, UPLOAD_RATE_MIN};

use super::failed;

/// The time that an upload waited for its client. What the server needs to store the data is not in it.
#[derive(Debug, Default)]
pub(super) struct UploadPace {
    waited: Duration,
}

impl UploadPace {
    /// The next message, or none at the end. `received` is the length of the data so far, in bytes.
    ///
    /// # Errors
    /// [`Reason::OperationTimedOut`] where the client sends nothing for too long, or too little on the whole; that of
    /// the stream.
    pub(super) async fn next<M>(
        &mut self,
        messages: &mut (impl Stream<Item = Result<M, Status>> + Unpin),
        received: u64,
    ) -> Result<Option<M>, Status> {
        let left = allowance(received).saturating_sub(self.waited);
        let began = Instant::now();
        let message = timeout(left.min(UPLOAD_IDLE_MAX), messages.try_next()).await;
        self.waited += began.elapsed();
        message.map_err(|_| match left > UPLOAD_IDLE_MAX {
            true => failed(late("the upload sent no data in time".to_owned())),
            false => failed(late(format!(
                "the upload must send at least {UPLOAD_RATE_MIN} bytes a second: bytes=`{received}`, \
                 seconds=`{}`",
                self.waited.as_secs()
            ))),
        })?
    }
}

/// How long an upload may wait for its client in all, with so many bytes received.
fn allowance(received: u64) -> Duration {
    UPLOAD_GRACE.saturating_add(Duration::from_secs(received / UPLOAD_RATE_MIN))
}

fn late(message: String) -> Fault {
    Fault::new(Reason::OperationTimedOut, message)
}
