//! When a connection over HTTP/2 may be told to end, so that no call is lost on the way.
//!
//! HTTP/2 ends a connection in order: a first GOAWAY says that it ends, and what the client sent
//! before it read that is still answered. Most clients lose nothing by it. Clients on hyper, of
//! which tonic is the one that calls this server, do: what they are about to send when the frame
//! arrives, and the first call after it while others are under way, they fail themselves, as
//! `CANCELLED` or `INTERNAL`, and no server can help it. Such a client has to be quiet at that
//! moment. So it is refused first, as `UNAVAILABLE`, and told to end once what was taken before is
//! answered and everybody who might call has been refused and pauses.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, header::USER_AGENT};
use tokio::{
    sync::Notify,
    time::{Instant, timeout, timeout_at},
};
use trestle_service::fault::{Fault, Reason};

/// What the name of a client has in it that loses calls.
const LOSES_CALLS: &str = "tonic/";
/// How long no call may have been under way. Longer than an answer and the next call take, where a
/// busy machine keeps the caller waiting for a processor too.
const QUIET: Duration = Duration::from_millis(200);
/// How long to wait for that: calls that last longer are not waited for.
const QUIET_WITHIN: Duration = Duration::from_secs(1);
/// When a refused client should come back: by then its connection has ended, and it knows.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The calls of a connection. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Traffic(Arc<State>);

#[derive(Default)]
struct State {
    /// Calls that were taken and are not answered yet.
    under_way: AtomicUsize,
    is_leaving: AtomicBool,
    /// Whether its client loses calls, as its first call tells.
    loses_calls: OnceLock<bool>,
    /// Something of the above has changed, while leaving.
    changed: Notify,
}

/// A call that was taken, until it is dropped.
pub(super) struct UnderWay(Traffic);

impl Traffic {
    /// Takes a call with these headers.
    ///
    /// # Errors
    /// The refusal, of a client that is about to be told to go. Nothing was done.
    pub(super) fn take(&self, headers: &HeaderMap) -> Result<UnderWay, Fault> {
        let loses_calls = *self.0.loses_calls.get_or_init(|| loses_calls(headers));
        let is_refused = || loses_calls && self.0.is_leaving.load(Ordering::SeqCst);
        // Not counted: who is refused pauses.
        if is_refused() {
            return Err(refusal());
        }
        // Counted before looking again: whoever leaves looks at the count after saying so.
        self.0.under_way.fetch_add(1, Ordering::SeqCst);
        let call = UnderWay(self.clone());
        if is_refused() { Err(refusal()) } else { Ok(call) }
    }

    /// Waits until the connection may be told to end; refuses calls from now on where that is what
    /// it takes.
    pub(super) async fn settle(&self) {
        self.0.is_leaving.store(true, Ordering::SeqCst);
        let until = Instant::now() + QUIET_WITHIN;
        loop {
            let changed = self.0.changed.notified();
            // Where nobody has called yet, the first call may be on its way, of such a client.
            if self.0.loses_calls.get() == Some(&false) {
                return;
            }
            let is_idle = self.0.under_way.load(Ordering::SeqCst) == 0;
            let is_over = if is_idle {
                timeout(QUIET, changed).await.is_err()
            } else {
                timeout_at(until, changed).await.is_err()
            };
            if is_over || Instant::now() >= until {
                return;
            }
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let state = &self.0.0;
        state.under_way.fetch_sub(1, Ordering::SeqCst);
        if state.is_leaving.load(Ordering::SeqCst) {
            state.changed.notify_one();
        }
    }
}

fn refusal() -> Fault {
    let message = "the server ends this connection; nothing was done";
    Fault::new(Reason::ServerUnavailable, message).retry_after(RETRY_AFTER)
}

fn loses_calls(headers: &HeaderMap) -> bool {
    let name = headers.get(USER_AGENT).and_then(|name| name.to_str().ok());
    name.is_some_and(|name| name.contains(LOSES_CALLS))
}
