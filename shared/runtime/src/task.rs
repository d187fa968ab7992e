//! A named loop in the background: the one form of all such work.
//!
//! Each tick does one bounded step and returns whether more remains. Between ticks the loop waits,
//! with jitter so that many processes do not act in step, or until it is woken. A failed tick is
//! logged, counted, and tried again after the wait.

use std::{error::Error, future::Future, pin::Pin, sync::Arc, time::Duration};

use opentelemetry::{KeyValue, metrics::Counter};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use trestle_rpc::semconv;

/// Why a tick failed.
pub type TickError = Box<dyn Error + Send + Sync>;

type Tick =
    Box<dyn FnMut() -> Pin<Box<dyn Future<Output = Result<bool, TickError>> + Send>> + Send>;

/// A loop before its start.
pub struct Task {
    name: &'static str,
    every: Duration,
    wake: Arc<Notify>,
    rest_factor: u32,
    tick: Tick,
    failures: Option<Counter<u64>>,
}

impl Task {
    /// Calls `tick` about `every` so often. It returns whether the next step should follow at once.
    pub fn new<F, A>(name: &'static str, every: Duration, mut tick: F) -> Self
    where
        F: FnMut() -> A + Send + 'static,
        A: Future<Output = Result<bool, TickError>> + Send + 'static,
    {
        Self {
            name,
            every,
            wake: Arc::new(Notify::new()),
            rest_factor: 0,
            tick: Box::new(move || Box::pin(tick())),
            failures: None,
        }
    }

    /// Waits at least `factor` times as long as the last step took, unless it is woken, so that the loop uses a bounded
    /// part of the time.
    #[must_use]
    pub fn resting(self, factor: u32) -> Self {
        Self { rest_factor: factor, ..self }
    }

    /// Counts failed ticks on `failures`, from zero: the first increase is visible too.
    #[must_use]
    pub fn counting(mut self, failures: &Counter<u64>) -> Self {
        failures.add(0, &[self.label()]);
        self.failures = Some(failures.clone());
        self
    }

    fn label(&self) -> KeyValue {
        KeyValue::new(semconv::TASK_NAME, self.name)
    }

    /// The name, for logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Ends the current wait, or skips the next one.
    #[must_use]
    pub fn waker(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Runs until `stop`, at the latest to the end of a tick. `random` yields numbers from 0 up to
    /// 1 for the jitter.
    pub async fn run(mut self, stop: CancellationToken, random: fn() -> f64) {
        while !stop.is_cancelled() {
            let began = Instant::now();
            match (self.tick)().await {
                Ok(true) => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Ok(false) => {}
                Err(error) => self.failed(&error),
            }
            let rest = began.elapsed().saturating_mul(self.rest_factor);
            let wait = self.every.mul_f64(0.75 + 0.5 * random().clamp(0.0, 1.0)).max(rest);
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.wake.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        debug!(task = self.name, "background loop ended");
    }

    fn failed(&self, error: &TickError) {
        warn!(task = self.name, %error, "background step failed");
        if let Some(failures) = &self.failures {
            failures.add(1, &[self.label()]);
        }
    }
}
