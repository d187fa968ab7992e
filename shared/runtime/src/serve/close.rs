//! The close of a connection: by its client, in a shutdown, by its age, or by eviction for another connection.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    time::Duration,
};

use hyper_util::server::graceful::GracefulConnection;
use tokio::time::sleep;
use tracing::debug;
use trestle_rpc::peer::Peer;

use super::{connection::Connection, tuning::PollCount};

/// How long an evicted connection may take to close in order. Short: it holds a descriptor beyond the limit.
const EVICTION_GRACE: Duration = Duration::from_millis(250);

/// How long a client without a call may take to acknowledge the close. Some never do.
const IDLE_GRACE: Duration = Duration::from_millis(250);

/// Why the server closes a connection.
#[derive(Debug, Clone, Copy)]
enum CloseReason {
    Shutdown,
    Age,
    Eviction,
}

impl Connection {
    /// Runs a connection until it closes: when it is stopped or old, closes it in order once `drained`,
    /// and cuts it after the grace.
    pub(super) async fn run_to_close<C>(
        &self,
        connection: C,
        polls: PollCount,
        age_max: Duration,
        drained: impl Future<Output = ()>,
    ) where
        C: GracefulConnection<Error = hyper::Error>,
    {
        let mut connection = pin!(connection);
        let reason = tokio::select! {
            ended = poll_fn(|cx| polls.poll(connection.as_mut(), cx)) => return log_end(ended),
            reason = self.close_reason(age_max, drained) => reason,
        };
        connection.as_mut().graceful_shutdown();
        let grace = match reason {
            // The listener bounds the shutdown itself, and counts the connections that it cuts.
            CloseReason::Shutdown => Duration::MAX,
            CloseReason::Age => self.bounds.age_grace,
            CloseReason::Eviction => EVICTION_GRACE,
        };
        let evicted = async {
            self.slot.evicted.cancelled().await;
            sleep(EVICTION_GRACE).await;
        };
        tokio::select! {
            ended = poll_fn(|cx| polls.poll(connection.as_mut(), cx)) => log_end(ended),
            () = self.cut.cancelled() => {}
            () = self.slot.calls.idle_for(IDLE_GRACE) => debug!(?reason, "idle connection cut"),
            () = evicted => debug!(?reason, "evicted connection cut"),
            () = sleep(grace) => debug!(?reason, "connection cut with calls in flight"),
        }
    }

    async fn close_reason(
        &self,
        age_max: Duration,
        drained: impl Future<Output = ()>,
    ) -> CloseReason {
        let announced = async {
            let reason = tokio::select! {
                () = self.stop.cancelled() => CloseReason::Shutdown,
                () = sleep(age_max) => CloseReason::Age,
            };
            drained.await;
            reason
        };
        let reason = self.slot.evicted.run_until_cancelled(announced).await;
        reason.unwrap_or(CloseReason::Eviction)
    }
}

fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        debug!(%error, "connection broken");
    }
}

/// An age between nine and eleven tenths of `age_max`, so that connections that were opened together
/// are not all closed together.
pub(super) fn jittered(age_max: Duration, peer: &Peer) -> Duration {
    age_max.mul_f64(0.9 + 0.2 * f64::from(peer.address.port() % 1024) / 1024.0)
}
