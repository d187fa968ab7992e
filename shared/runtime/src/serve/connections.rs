//! The connections of some listeners: together at most a number, of which every peer has a share.
//!
//! An evicted connection is closed, with a short time for the calls in flight. It counts until it is closed,
//! so these are bounded, and so are their descriptors.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use opentelemetry::{KeyValue, metrics::Meter};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use trestle_rpc::log_rate::LogRate;
use trestle_rpc::semconv;

use super::{
    goaway::GoawayDrain,
    peer_shares::{AtLimit, MemberId, PeerShares},
};

/// The share of the connections that may perform a handshake at a time: it costs memory before the client is
/// authenticated.
const HANDSHAKES_SHARE: usize = 8;
const HANDSHAKES_MIN: usize = 16;
/// How often a connection that waits for a handshake retries: a younger one may be old enough by now for eviction.
const HANDSHAKE_RETRY: Duration = Duration::from_millis(100);
/// Most evicted connections that are not closed, beside the limit. Half of them may have been evicted for
/// connections of the same peer, so that no peer can exhaust them for others.
pub(super) const EVICTED_MAX: usize = 64;
const EVICTED_BY_OWN_MAX: usize = EVICTED_MAX / 2;

/// See the module. Clones share the connections.
#[derive(Clone)]
pub struct Connections {
    table: Arc<ConnectionTable>,
    /// The listener that this handle admits for, as the metric labels it.
    listener: Arc<str>,
}

struct ConnectionTable {
    connections_max: usize,
    open: Mutex<PeerShares<LiveConnection>>,
    /// Evicted connections that are not closed.
    evicted: AtomicUsize,
    /// How many were rejected, by listener.
    rejected: Mutex<BTreeMap<Arc<str>, u64>>,
    handshakes: Mutex<PeerShares<CancellationToken>>,
    handshake_ended: Notify,
    rejections: LogRate,
}

/// What an eviction needs of a connection, and its listener.
#[derive(Clone)]
struct LiveConnection {
    calls: GoawayDrain,
    evicted: CancellationToken,
    listener: Arc<str>,
}

impl Connections {
    /// Most descriptors that connections may have open beside one for each: of evicted connections.
    pub const EVICTED_MAX: usize = EVICTED_MAX;

    /// At most this many at a time.
    #[must_use]
    pub fn at_most(connections_max: usize) -> Self {
        let table = Arc::new(ConnectionTable {
            connections_max,
            open: Mutex::new(PeerShares::new(connections_max)),
            evicted: AtomicUsize::new(0),
            rejected: Mutex::default(),
            handshakes: Mutex::new(PeerShares::new(
                (connections_max / HANDSHAKES_SHARE).max(HANDSHAKES_MIN),
            )),
            handshake_ended: Notify::new(),
            rejections: LogRate::default(),
        });
        Self { table, listener: Arc::from("") }
    }

    /// The same connections, for another listener.
    #[must_use]
    pub fn of_listener(&self, listener: &str) -> Self {
        Self { listener: Arc::from(listener), ..self.clone() }
    }

    /// Reports how many are open and how many were rejected whenever metrics are collected, of each of these
    /// listeners.
    pub fn observe(&self, meter: &Meter, listeners: Vec<String>) {
        self.observe_rejected(meter, listeners.clone());
        let (metric, table) = (semconv::CONNECTIONS, Arc::downgrade(&self.table));
        let gauge = meter.u64_observable_gauge(metric.name).with_unit(metric.unit);
        let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
            let Some(table) = table.upgrade() else { return };
            for listener in &listeners {
                let open = lock(&table.open).count(|live| *live.listener == **listener);
                let label = KeyValue::new(semconv::LISTENER, listener.clone());
                observer.observe(u64::try_from(open).unwrap_or(u64::MAX), &[label]);
            }
        });
        let _ = gauge.build();
    }

    fn observe_rejected(&self, meter: &Meter, listeners: Vec<String>) {
        let (metric, table) = (semconv::REJECTED_CONNECTIONS, Arc::downgrade(&self.table));
        let counter = meter.u64_observable_counter(metric.name).with_unit(metric.unit);
        let counter = counter.with_description(metric.help).with_callback(move |observer| {
            let Some(table) = table.upgrade() else { return };
            for listener in &listeners {
                let rejected = lock(&table.rejected).get(listener.as_str()).copied();
                let label = KeyValue::new(semconv::LISTENER, listener.clone());
                observer.observe(rejected.unwrap_or_default(), &[label]);
            }
        });
        let _ = counter.build();
    }

    /// How many are open.
    #[must_use]
    pub fn open(&self) -> usize {
        lock(&self.table.open).len() + self.table.evicted.load(Ordering::Relaxed)
    }

    /// Whether none was opened or had a call for so long.
    #[must_use]
    pub fn idle_for(&self, within: Duration) -> bool {
        lock(&self.table.open).all(|since, live| {
            let is_unused = live.calls.since_response().is_none_or(|since| since >= within);
            since.elapsed() >= within && live.calls.is_idle() && is_unused
        })
    }

    /// Admits a connection. At the limit one of the greediest peer is closed for it, if that has more.
    pub(super) fn admit(&self, peer: IpAddr) -> Option<ConnectionSlot> {
        let live = LiveConnection {
            calls: GoawayDrain::default(),
            evicted: CancellationToken::new(),
            listener: Arc::clone(&self.listener),
        };
        let now = Instant::now();
        let mut open = lock(&self.table.open);
        if open.is_full() {
            let made_room = self.evict(&mut open, peer, now);
            if made_room.is_err() {
                *lock(&self.table.rejected).entry(Arc::clone(&self.listener)).or_default() += 1;
            }
            self.log(peer, made_room.is_ok());
            made_room.ok()?;
        }
        let member = open.add(peer.into(), now, live.clone());
        drop(open);
        let LiveConnection { calls, evicted, .. } = live;
        Some(ConnectionSlot { connections: self.clone(), peer, member, calls, evicted })
    }

    fn evict(
        &self,
        open: &mut PeerShares<LiveConnection>,
        peer: IpAddr,
        now: Instant,
    ) -> Result<(), AtLimit> {
        let member = open.evictable(peer.into(), now, |live| live.calls.is_idle())?;
        let evicted_max = if member.is_of(peer.into()) { EVICTED_BY_OWN_MAX } else { EVICTED_MAX };
        if self.table.evicted.load(Ordering::Relaxed) >= evicted_max {
            return Err(AtLimit);
        }
        let live = open.remove(member).ok_or(AtLimit)?;
        self.table.evicted.fetch_add(1, Ordering::Relaxed);
        live.evicted.cancel();
        Ok(())
    }

    fn log(&self, peer: IpAddr, is_admitted: bool) {
        let (connections_max, listener) = (self.table.connections_max, &*self.listener);
        if self.table.rejections.may_log((), Instant::now()).is_some() {
            warn!(
                connections_max, listener, %peer, is_admitted,
                "connection limit reached: a connection was closed or rejected; not logged again within 10 s"
            );
        } else {
            debug!(connections_max, listener, %peer, is_admitted, "connection limit reached");
        }
    }
}

/// The slot of an open connection, until it is dropped.
pub(super) struct ConnectionSlot {
    connections: Connections,
    peer: IpAddr,
    member: MemberId,
    /// Its calls.
    pub(super) calls: GoawayDrain,
    /// Cancelled when it is evicted for another connection.
    pub(super) evicted: CancellationToken,
}

impl ConnectionSlot {
    /// The handshake is finished, and the protocol detected.
    pub(super) fn opened(&self) {
        lock(&self.connections.table.open).opened(self.member);
    }

    /// Waits for the right to perform a TLS handshake. At the limit the oldest of the greediest peer is evicted.
    pub(super) async fn handshake(&self) -> HandshakeSlot {
        loop {
            let ended = self.connections.table.handshake_ended.notified();
            if let Some(slot) = self.try_handshake() {
                return slot;
            }
            let _ = tokio::time::timeout(HANDSHAKE_RETRY, ended).await;
        }
    }

    fn try_handshake(&self) -> Option<HandshakeSlot> {
        let (now, peer) = (Instant::now(), self.peer.into());
        let mut handshakes = lock(&self.connections.table.handshakes);
        if handshakes.is_full() {
            let member = handshakes.evictable(peer, now, |_| false).ok()?;
            handshakes.remove(member)?.cancel();
        }
        let evicted = CancellationToken::new();
        let member = handshakes.add(peer, now, evicted.clone());
        Some(HandshakeSlot { connections: self.connections.clone(), member, evicted })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let shared = &self.connections.table;
        if lock(&shared.open).remove(self.member).is_none() {
            shared.evicted.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The right to perform a handshake, until it is dropped.
pub(super) struct HandshakeSlot {
    connections: Connections,
    member: MemberId,
    /// Cancelled when it is evicted for another handshake.
    pub(super) evicted: CancellationToken,
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        let shared = &self.connections.table;
        if lock(&shared.handshakes).remove(self.member).is_some() {
            shared.handshake_ended.notify_one();
        }
    }
}

fn lock<T>(members: &Mutex<T>) -> MutexGuard<'_, T> {
    members.lock().unwrap_or_else(PoisonError::into_inner)
}
