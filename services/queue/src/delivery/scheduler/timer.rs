//! The timer that serves waiting consumers when a message becomes due.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use trestle_model::time::Ticks;

use super::{Scheduler, SchedulerState, until_next};

/// Longest sleep of the timer: the machine may be suspended meanwhile, which service time counts and a timer does not.
pub(super) const TIMER_MAX: Duration = Duration::from_secs(1);

impl Scheduler {
    /// Makes sure that the timer fires when the next message becomes due, if a consumer waits for it.
    pub(super) fn set_timer(self: &Arc<Self>, inner: &mut SchedulerState, now: Ticks) {
        if inner.waiters.is_empty() {
            return;
        }
        let next = Instant::now() + until_next(inner, now);
        match inner.timer_at {
            Some(at) if at <= next => {}
            Some(_) => {
                inner.timer_at = Some(next);
                self.timer.notify_one();
            }
            None => {
                inner.timer_at = Some(next);
                tokio::spawn(Arc::clone(self).run_timer());
            }
        }
    }

    /// Runs as long as a consumer waits.
    async fn run_timer(self: Arc<Self>) {
        loop {
            let must_load = {
                let now = self.now();
                let mut inner = self.lock();
                self.dispatch(&mut inner, now);
                if inner.waiters.is_empty() || inner.closed.is_some() {
                    inner.timer_at = None;
                    return;
                }
                inner.timer_at = Some(Instant::now() + until_next(&inner, now));
                inner.index.ends_before(now)
            };
            if must_load && let Err(error) = self.load().await {
                tracing::warn!(%error, "messages that are due cannot be read");
                tokio::time::sleep(TIMER_MAX).await;
            } else if !must_load {
                let at = self.lock().timer_at;
                let Some(at) = at else { continue };
                tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = self.timer.notified() => {}
                }
            }
        }
    }
}
