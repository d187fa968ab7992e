//! GOAWAY drain: when a connection over HTTP/2 may be closed, so that no call fails.
//!
//! HTTP/2 closes a connection in order: a first GOAWAY announces it, and requests that the client sent before it read
//! the frame still receive responses. Most clients fail no call. Clients on hyper, tonic among them, do: they fail the
//! calls that they are about to send when the frame arrives, and the first call after it while others are in flight, as
//! `CANCELLED` or `INTERNAL`, and no server can prevent it. Such a client must have no call in flight at that moment.
//! So its calls are rejected first, as `UNAVAILABLE`, and GOAWAY is sent once the calls in flight have responses and
//! every caller was rejected and backs off.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, header::USER_AGENT};
use tokio::{
    sync::Notify,
    time::{Instant, timeout, timeout_at},
};
use trestle_model::fault::{Fault, Reason};

/// Part of the user agent of clients that fail calls at GOAWAY.
const FAILS_CALLS: &str = "tonic/";
/// How long no call may have been in flight. Longer than a response and the next call take, also
/// where a busy machine delays the caller.
const IDLE: Duration = Duration::from_millis(200);
/// How long to wait for that; longer calls are not waited for.
const IDLE_WITHIN: Duration = Duration::from_secs(1);
/// When a rejected client should retry: by then its connection is closed.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The calls of a connection. Clones share them.
#[derive(Clone, Default)]
pub(super) struct GoawayDrain(Arc<ConnectionCalls>);

#[derive(Default)]
struct ConnectionCalls {
    in_flight: AtomicUsize,
    is_draining: AtomicBool,
    /// Whether the client fails calls at GOAWAY, by the user agent of its first call.
    fails_calls: OnceLock<bool>,
    /// When the last response ended, if there was one.
    responded: Mutex<Option<Instant>>,
    /// Notified when one of the above changes while draining.
    changed: Notify,
}

/// A call in flight, until it is dropped.
pub(super) struct CallInFlight(GoawayDrain);

impl GoawayDrain {
    /// Admits a call with these headers.
    ///
    /// # Errors
    /// The rejection, while the connection of a client that fails calls drains. The call was not executed.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<CallInFlight, Fault> {
        let fails_calls = *self.0.fails_calls.get_or_init(|| fails_calls(headers));
        let is_rejected = || fails_calls && self.0.is_draining.load(Ordering::SeqCst);
        // Not counted: a rejected client backs off.
        if is_rejected() {
            self.responded();
            return Err(rejection());
        }
        // Counted before the second check: the drain reads the count after it has set the flag.
        self.0.in_flight.fetch_add(1, Ordering::SeqCst);
        let call = CallInFlight(self.clone());
        if is_rejected() { Err(rejection()) } else { Ok(call) }
    }

    /// Whether no call is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.0.in_flight.load(Ordering::SeqCst) == 0
    }

    /// How long ago the last response ended; none if there was none.
    pub(super) fn since_response(&self) -> Option<Duration> {
        let responded = self.0.responded.lock().unwrap_or_else(PoisonError::into_inner);
        responded.map(|responded| responded.elapsed())
    }

    fn responded(&self) {
        let mut responded = self.0.responded.lock().unwrap_or_else(PoisonError::into_inner);
        *responded = Some(Instant::now());
    }

    /// Waits until no call has been in flight for `within`.
    pub(super) async fn idle_for(&self, within: Duration) {
        let mut since = Instant::now();
        while since.elapsed() < within {
            tokio::time::sleep(within / 10).await;
            if !self.is_idle() {
                since = Instant::now();
            }
        }
    }

    /// Waits until GOAWAY may be sent; rejects calls of clients that fail them from now on.
    pub(super) async fn drain(&self) {
        self.0.is_draining.store(true, Ordering::SeqCst);
        let until = Instant::now() + IDLE_WITHIN;
        loop {
            let changed = self.0.changed.notified();
            // Before the first call it is unknown; one of such a client may be on its way.
            if self.0.fails_calls.get() == Some(&false) {
                return;
            }
            let is_over = if self.is_idle() {
                timeout(IDLE, changed).await.is_err()
            } else {
                timeout_at(until, changed).await.is_err()
            };
            if is_over || Instant::now() >= until {
                return;
            }
        }
    }
}

impl Drop for CallInFlight {
    fn drop(&mut self) {
        let state = &self.0.0;
        self.0.responded();
        state.in_flight.fetch_sub(1, Ordering::SeqCst);
        if state.is_draining.load(Ordering::SeqCst) {
            state.changed.notify_one();
        }
    }
}

fn rejection() -> Fault {
    let message = "the server closes this connection; nothing was done";
    Fault::new(Reason::ServerUnavailable, message).retry_after(RETRY_AFTER)
}

fn fails_calls(headers: &HeaderMap) -> bool {
    let name = headers.get(USER_AGENT).and_then(|name| name.to_str().ok());
    name.is_some_and(|name| name.contains(FAILS_CALLS))
}
