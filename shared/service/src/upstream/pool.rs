//! The connections to a role, and the calls that wait for one.
//!
//! A call takes the least loaded connection. While there is none, because the role restarts, calls
//! wait: so many, and so long after the last connection was lost. Later ones are refused at once,
//! so that a role that stays away costs nobody any time.

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

use super::link::Outgoing;

/// Longest time for one attempt to connect: resolving, handshakes, and the first answer.
pub(super) const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long a call waits for another connection when every one is full.
const GROW_WITHIN: Duration = Duration::from_millis(250);

/// One connection.
pub(super) struct Connection {
    pub(super) sender: SendRequest<Outgoing>,
    /// Calls on it.
    pub(super) calls: AtomicUsize,
    /// Most calls that the peer takes on it at a time.
    pub(super) calls_max: usize,
    /// Whether its process says that the service serves; one that shuts down does not, though it
    /// still takes calls.
    pub(super) is_serving: AtomicBool,
}

impl Connection {
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

/// A call's place on a connection, until it is dropped.
pub(super) struct Lease(Arc<Connection>);

impl Lease {
    fn of(connection: &Arc<Connection>) -> Self {
        connection.calls.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(connection))
    }

    /// What calls are sent with.
    pub(super) fn sender(&self) -> SendRequest<Outgoing> {
        self.0.sender.clone()
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

/// How long, and how many calls, wait for a role that is away.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) wait: Duration,
    pub(super) waiting_max: usize,
}

/// See the module.
pub(super) struct Pool {
    endpoint: String,
    patience: Patience,
    picture: watch::Sender<Picture>,
    waiting: Semaphore,
    /// Asks for one more connection.
    pub(super) grow: Notify,
}

/// What is known of the role at a moment.
#[derive(Default)]
struct Picture {
    connections: Vec<Arc<Connection>>,
    /// Since when there is no connection.
    away: Option<Instant>,
    /// Whether an attempt to connect has failed since then.
    has_failed: bool,
    /// Since when nothing serves; none where it does.
    idle: Option<Instant>,
    has_served: bool,
}

impl Picture {
    fn update(&mut self, now: Instant) {
        if self.connections.is_empty() {
            self.away.get_or_insert(now);
        } else {
            (self.away, self.has_failed) = (None, false);
        }
        if self.connections.iter().any(|connection| connection.is_serving()) {
            (self.idle, self.has_served) = (None, true);
        } else {
            self.idle.get_or_insert(now);
        }
    }

    /// The best connection: of a process that serves, with room, with the fewest calls.
    fn best(&self) -> Option<&Arc<Connection>> {
        let open = self.connections.iter().filter(|connection| connection.is_open());
        open.min_by_key(|connection| {
            let calls = connection.calls();
            (!connection.is_serving(), calls >= connection.calls_max, calls)
        })
    }

    /// Until when calls wait for a connection.
    fn patient_until(&self, wait: Duration, now: Instant) -> Instant {
        // Lost a moment ago, and not withdrawn yet: as if it were lost now.
        let away = self.away.unwrap_or(now);
        // A first attempt is always waited for: connections also end because of their age.
        let wait = if self.has_failed { wait } else { wait.max(CONNECT_WITHIN) };
        away + wait
    }
}

impl Pool {
    pub(super) fn new(endpoint: String, patience: Patience) -> Self {
        Self {
            endpoint,
            patience,
            picture: watch::Sender::new(Picture::default()),
            waiting: Semaphore::new(patience.waiting_max.min(Semaphore::MAX_PERMITS)),
            grow: Notify::new(),
        }
    }

    /// A place on the best connection, if there is one with room.
    pub(super) fn lease(&self) -> Option<Lease> {
        let lease = Lease::of(self.picture.borrow().best()?);
        if lease.is_full() {
            self.grow.notify_one();
            return None;
        }
        Some(lease)
    }

    /// The same, and waits for it as long as it makes sense; none where it does not.
    pub(super) async fn lease_soon(&self) -> Option<Lease> {
        let _place = self.waiting.try_acquire().ok()?;
        let mut pictures = self.picture.subscribe();
        let full_until = Instant::now() + GROW_WITHIN;
        loop {
            let now = Instant::now();
            let until = {
                let picture = pictures.borrow_and_update();
                match picture.best() {
                    Some(connection) => {
                        let lease = Lease::of(connection);
                        // In the end it waits for its turn on the connection.
                        if !lease.is_full() || now >= full_until {
                            return Some(lease);
                        }
                        self.grow.notify_one();
                        full_until
                    }
                    None => picture.patient_until(self.patience.wait, now),
                }
            };
            let is_over = timeout_at(until, pictures.changed()).await.is_err();
            if is_over && until != full_until {
                return None;
            }
        }
    }

    /// Starts the clock of the first connection.
    pub(super) fn begin(&self) {
        self.change(|_| {});
    }

    /// A connection can be used.
    pub(super) fn publish(&self, connection: &Arc<Connection>) {
        let was_away = self.picture.borrow().has_failed;
        self.change(|picture| picture.connections.push(Arc::clone(connection)));
        if was_away {
            info!(endpoint = self.endpoint, "role reached");
        }
    }

    /// A connection can be used no more.
    pub(super) fn withdraw(&self, connection: &Arc<Connection>) {
        self.change(|picture| {
            picture.connections.retain(|known| !Arc::ptr_eq(known, connection));
        });
    }

    /// A process says whether the service serves.
    pub(super) fn note(&self, connection: &Connection, is_serving: bool) {
        self.change(|_| connection.is_serving.store(is_serving, Ordering::Relaxed));
    }

    /// An attempt to connect failed.
    pub(super) fn failed(&self, problem: &str) {
        let mut is_new = false;
        self.change(|picture| {
            is_new = picture.connections.is_empty() && !picture.has_failed;
            picture.has_failed |= is_new;
        });
        if is_new {
            warn!(endpoint = self.endpoint, problem, "role cannot be reached");
        }
    }

    /// What is the matter with the role; nothing, while it serves or calls wait for it.
    pub(super) async fn problem(&self) -> Option<&'static str> {
        let mut pictures = self.picture.subscribe();
        let known = pictures.wait_for(|picture| picture.has_served || picture.has_failed);
        // Otherwise nothing is known yet, which the picture says too.
        drop(timeout(CONNECT_WITHIN, known).await);
        let picture = self.picture.borrow();
        let idle = picture.idle?;
        if !picture.has_served {
            return Some("not reached yet");
        }
        let is_restarting = idle.elapsed() < self.patience.wait;
        let problem = match picture.away {
            Some(_) => "its process cannot be reached",
            None => "its process does not serve",
        };
        (!is_restarting).then_some(problem)
    }

    fn change(&self, change: impl FnOnce(&mut Picture)) {
        self.picture.send_modify(|picture| {
            change(picture);
            picture.update(Instant::now());
        });
    }
}
