//! Requests of one message that have not arrived completely: the deadline of each, and the share of each peer.

use std::{
    future::Future as _,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

use super::super::peer_counts::{CountedCall, PeerCounts};
use crate::{
    fault::{Fault, Reason},
    peer::PeerKey,
};

/// When a rejected client should retry.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Counts requests that are arriving. A peer that sends heads of requests and nothing behind them would otherwise hold
/// every slot of calls until their deadlines. Shares bind only while half of the bound is used, so that a single peer,
/// such as a gateway, is not slowed down.
#[derive(Debug)]
pub(super) struct Arrivals {
    all: AtomicUsize,
    by_peer: Arc<PeerCounts>,
    share: usize,
}

impl Arrivals {
    /// Of `calls_max` calls, half may be arriving without a check; beyond, a quarter for each peer.
    pub(super) fn new(calls_max: usize) -> Self {
        let share = (calls_max / 4).max(1);
        Self { all: AtomicUsize::new(0), by_peer: PeerCounts::new(), share }
    }

    /// Counts a request until the result is dropped.
    ///
    /// # Errors
    /// The peer has used up its share.
    pub(super) fn begin(self: &Arc<Self>, peer: PeerKey) -> Result<Arriving, Fault> {
        let (of_peer, count) = self.by_peer.begin(peer);
        let all = self.all.fetch_add(1, Ordering::Relaxed);
        let arriving = Arriving { arrivals: Arc::clone(self), _of_peer: of_peer };
        if all >= 2 * self.share && count >= self.share {
            let limit = self.share;
            let message = format!("too many requests of a client are incomplete: limit=`{limit}`");
            return Err(Fault::new(Reason::ServerBusy, message).retry_after(RETRY_AFTER));
        }
        Ok(arriving)
    }
}

/// A request that has not arrived completely.
#[derive(Debug)]
pub(super) struct Arriving {
    arrivals: Arc<Arrivals>,
    _of_peer: CountedCall,
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.arrivals.all.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The time by which a request must have arrived. The timer is armed only to wait.
pub(super) struct ArrivalDeadline {
    at: Instant,
    clock: Option<Pin<Box<Sleep>>>,
    _arriving: Arriving,
}

impl ArrivalDeadline {
    pub(super) fn new(within: Duration, arriving: Arriving) -> Self {
        Self { at: Instant::now() + within, clock: None, _arriving: arriving }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        self.clock.get_or_insert_with(|| Box::pin(sleep_until(at))).as_mut().poll(cx)
    }
}
