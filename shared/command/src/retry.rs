//! Which errors are retried, and when: only idempotent operations, even with an unknown outcome.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::errors::{self, CliError};

/// Most tries in a row without progress: about 40 s of waiting in all.
const RETRIES_MAX: usize = 12;
/// Jitter adds up to the same time again.
const WAIT_FIRST: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_millis(2500);

/// An error that may be temporary.
pub trait Temporary {
    /// Whether repeating may help.
    fn is_temporary(&self) -> bool;

    /// The shortest retry delay that the server requests.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

impl Temporary for Status {
    fn is_temporary(&self) -> bool {
        let is_busy = matches!(self.code(), Code::Unavailable | Code::ResourceExhausted);
        (is_busy && !errors::needs_an_operator(self)) || errors::is_transport(self)
    }

    fn retry_after(&self) -> Option<Duration> {
        errors::retry_after(&self.get_error_details())
    }
}

impl Temporary for CliError {
    fn is_temporary(&self) -> bool {
        matches!(self, Self::Call(status) if status.is_temporary())
    }

    fn retry_after(&self) -> Option<Duration> {
        if let Self::Call(status) = self { Temporary::retry_after(&**status) } else { None }
    }
}

/// The remaining tries of a repeatable operation, with exponential backoff and jitter.
pub struct Retries {
    waits: ExponentialBackoff,
    /// When no wait may end any more.
    until: Option<Instant>,
}

impl Default for Retries {
    /// All tries left.
    fn default() -> Self {
        let waits = ExponentialBuilder::new().with_min_delay(WAIT_FIRST).with_max_delay(WAIT_MAX);
        Self { waits: waits.with_max_times(RETRIES_MAX).with_jitter().build(), until: None }
    }
}

impl Retries {
    /// The same within a time, for an operation that made no progress yet: its user waits for the first answer.
    pub(crate) fn within(time: Duration) -> Self {
        Self { until: Instant::now().checked_add(time), ..Self::default() }
    }

    /// Waits before the next try; returns the error if it is final or no try is left.
    ///
    /// # Errors
    /// `failure`.
    pub async fn wait<E: Temporary>(&mut self, failure: E) -> Result<(), E> {
        match self.next(&failure) {
            Some(wait) => tokio::time::sleep(wait).await,
            None => return Err(failure),
        }
        Ok(())
    }

    fn next(&mut self, failure: &impl Temporary) -> Option<Duration> {
        if !failure.is_temporary() {
            return None;
        }
        let requested = failure.retry_after().unwrap_or_default().min(WAIT_MAX.saturating_mul(2));
        let wait = self.waits.next()?.max(requested);
        let is_in_time = |until: Instant| Instant::now() + wait <= until;
        self.until.is_none_or(is_in_time).then_some(wait)
    }
}

/// Makes a call, and retries temporary errors while a try is left.
///
/// # Errors
/// The last error of the call.
pub async fn repeated<T, E: Temporary>(
    mut call: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut retries = Retries::default();
    loop {
        match call().await {
            Ok(answer) => return Ok(answer),
            Err(failure) => retries.wait(failure).await?,
        }
    }
}

#[cfg(test)]
mod tests;
