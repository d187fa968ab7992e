//! The connections to a role, and the calls that wait for one.
//!
//! A call uses the least loaded connection. Without a connection, because the role restarts, calls wait:
//! a bounded number, for a bounded time after the last connection was closed. Later calls are rejected at
//! once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::client::conn::http2::SendRequest;
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::{Instant, timeout, timeout_at},
};
use tracing::{info, warn};

use super::outgoing_body::OutgoingBody;

/// Longest time for one attempt to connect: resolving, handshakes, and the first response.
pub(super) const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long a call waits for another connection when every one is full.
const GROW_WITHIN: Duration = Duration::from_millis(250);

/// One connection.
pub(super) struct UpstreamConnection {
    pub(super) sender: SendRequest<OutgoingBody>,
    /// Calls on it.
    pub(super) calls: AtomicUsize,
    /// Most calls that the peer accepts on it at a time.
    pub(super) calls_max: usize,
    /// Closed once nothing sends its calls any more.
    pub(super) end: watch::Receiver<()>,
    /// Whether its process reports the service as SERVING; one that shuts down does not, though it still
    /// accepts calls.
    pub(super) is_serving: AtomicBool,
    /// Whether its process reports the limitation that is watched.
    pub(super) is_limited: AtomicBool,
}

impl UpstreamConnection {
    fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    fn is_serving(&self) -> bool {
        self.is_serving.load(Ordering::Relaxed)
    }
}

/// Counts a call on a connection, until it is dropped.
pub(super) struct Lease(Arc<UpstreamConnection>);

impl Lease {
    fn of(connection: &Arc<UpstreamConnection>) -> Self {
        connection.calls.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(connection))
    }

    /// Sends calls.
    pub(super) fn sender(&self) -> SendRequest<OutgoingBody> {
        self.0.sender.clone()
    }

    /// Waits until nothing sends the calls of the connection any more.
    pub(super) async fn ended(&self) {
        let mut end = self.0.end.clone();
        while end.changed().await.is_ok() {}
    }

    fn is_full(&self) -> bool {
        self.0.calls() > self.0.calls_max
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long, and how many calls, wait for an unreachable role.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitLimits {
    pub(super) wait: Duration,
    pub(super) waiting_max: usize,
}

/// See the module.
pub(super) struct Pool {
    endpoint: String,
    limits: WaitLimits,
    state: watch::Sender<RoleState>,
    waiting: Semaphore,
    /// Requests one more connection.
    pub(super) grow: Notify,
}

/// The state of the role.
#[derive(Default)]
struct RoleState {
    connections: Vec<Arc<UpstreamConnection>>,
    /// Since when no connection is open.
    disconnected_since: Option<Instant>,
    /// Whether an attempt to connect has failed since then.
    has_failed: bool,
    /// Since when nothing serves; none where it does.
    idle: Option<Instant>,
    has_served: bool,
}

impl RoleState {
    fn update(&mut self, now: Instant) {
        if self.connections.is_empty() {
            self.disconnected_since.get_or_insert(now);
        } else {
            (self.disconnected_since, self.has_failed) = (None, false);
        }
        if self.connections.iter().any(|connection| connection.is_serving()) {
            (self.idle, self.has_served) = (None, true);
        } else {
            self.idle.get_or_insert(now);
        }
    }

    /// The best connection: of a process that serves, with room, with the fewest calls.
    fn best(&self) -> Option<&Arc<UpstreamConnection>> {
        let open = self.connections.iter().filter(|connection| connection.is_open());
        open.min_by_key(|connection| {
            let calls = connection.calls();
            (!connection.is_serving(), calls >= connection.calls_max, calls)
        })
    }

    /// Until when calls wait for a connection.
    fn wait_until(&self, wait: Duration, now: Instant) -> Instant {
        // Closed, and not withdrawn yet: the time of its close is now.
        let disconnected_since = self.disconnected_since.unwrap_or(now);
        // A first attempt is always waited for: connections also end because of their age.
        let wait = if self.has_failed { wait } else { wait.max(CONNECT_WITHIN) };
        disconnected_since + wait
    }
}

impl Pool {
    pub(super) fn new(endpoint: String, limits: WaitLimits) -> Self {
        Self {
            endpoint,
            limits,
            state: watch::Sender::new(RoleState::default()),
            waiting: Semaphore::new(limits.waiting_max.min(Semaphore::MAX_PERMITS)),
            grow: Notify::new(),
        }
    }

    /// A lease of the best connection, if one has room.
    pub(super) fn lease(&self) -> Option<Lease> {
        let lease = Lease::of(self.state.borrow().best()?);
        if lease.is_full() {
            self.grow.notify_one();
            return None;
        }
        Some(lease)
    }

    /// Waits for a lease within the limits.
    pub(super) async fn lease_soon(&self) -> Option<Lease> {
        let _slot = self.waiting.try_acquire().ok()?;
        let mut states = self.state.subscribe();
        let full_until = Instant::now() + GROW_WITHIN;
        loop {
            let now = Instant::now();
            let until = {
                let state = states.borrow_and_update();
                match state.best() {
                    Some(connection) => {
                        let lease = Lease::of(connection);
                        // At last it waits in the queue of the connection.
                        if !lease.is_full() || now >= full_until {
                            return Some(lease);
                        }
                        self.grow.notify_one();
                        full_until
                    }
                    None => state.wait_until(self.limits.wait, now),
                }
            };
            let is_over = timeout_at(until, states.changed()).await.is_err();
            if is_over && until != full_until {
                return None;
            }
        }
    }

    /// Starts the time of the first connection.
    pub(super) fn begin(&self) {
        self.change(|_| {});
    }

    /// Makes a connection available.
    pub(super) fn publish(&self, connection: &Arc<UpstreamConnection>) {
        let had_failed = self.state.borrow().has_failed;
        self.change(|state| state.connections.push(Arc::clone(connection)));
        if had_failed {
            info!(endpoint = self.endpoint, "role connected");
        }
    }

    /// Makes a connection unavailable.
    pub(super) fn withdraw(&self, connection: &Arc<UpstreamConnection>) {
        self.change(|state| {
            state.connections.retain(|open| !Arc::ptr_eq(open, connection));
        });
    }

    /// A process reported whether the service serves.
    pub(super) fn set_serving(&self, connection: &UpstreamConnection, is_serving: bool) {
        self.change(|_| connection.is_serving.store(is_serving, Ordering::Relaxed));
    }

    /// A process reported whether it is limited.
    pub(super) fn set_limited(&self, connection: &UpstreamConnection, is_limited: bool) {
        self.change(|_| connection.is_limited.store(is_limited, Ordering::Relaxed));
    }

    /// Whether any of the connected processes is limited.
    pub(super) fn is_limited(&self) -> bool {
        let state = self.state.borrow();
        state.connections.iter().any(|connection| connection.is_limited.load(Ordering::Relaxed))
    }

    /// Whether any of the connected processes serves.
    pub(super) fn is_serving(&self) -> bool {
        self.state.borrow().connections.iter().any(|connection| connection.is_serving())
    }

    /// An attempt to connect failed.
    pub(super) fn failed(&self, problem: &str) {
        let mut is_new = false;
        self.change(|state| {
            is_new = state.connections.is_empty() && !state.has_failed;
            state.has_failed |= is_new;
        });
        if is_new {
            warn!(endpoint = self.endpoint, problem, "role is unreachable");
        }
    }

    /// The problem of the role; none, while it serves or calls wait for it.
    pub(super) async fn problem(&self) -> Option<&'static str> {
        let mut states = self.state.subscribe();
        let decided = states.wait_for(|state| state.has_served || state.has_failed);
        // Otherwise the role was not connected yet, by the state.
        drop(timeout(CONNECT_WITHIN, decided).await);
        let state = self.state.borrow();
        let idle = state.idle?;
        if !state.has_served {
            return Some("not connected yet");
        }
        let is_restarting = idle.elapsed() < self.limits.wait;
        let problem = match state.disconnected_since {
            Some(_) => "its process is unreachable",
            None => "its process does not serve",
        };
        (!is_restarting).then_some(problem)
    }

    fn change(&self, change: impl FnOnce(&mut RoleState)) {
        self.state.send_modify(|state| {
            change(state);
            state.update(Instant::now());
        });
    }
}

#[cfg(test)]
mod tests;
