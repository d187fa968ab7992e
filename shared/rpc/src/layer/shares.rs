//! Shares in a pool of slots or of bytes: one type for every pool of a process.
//!
//! A holder is the account of a call once it is authenticated, and its peer before. What a holder may have falls with
//! the square of what remains free, so that one after the other takes less and less, and each that comes later finds a
//! part: alone a holder has up to three quarters of a pool, each of two that take turns four tenths, and of 1,024 slots
//! 20 holders that take all they can leave some. The peers of an account share what it may still take, so one machine
//! of a customer does not shut out the others. A call that was admitted continues: it keeps what it has.
//!
//! Holders are counted in constant memory. Holders with the same counter share a share, which the hash makes rare and
//! unpredictable.

use std::{
    hash::{BuildHasher as _, Hash, RandomState},
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use http::HeaderValue;
use trestle_kv::turns::Owner;

use super::{Request, admission::NO_WAIT};
use crate::peer::{Peer, PeerKey};
use crate::quota::CallMeter;
use trestle_model::fault::{Fault, Reason};

/// Counters of holders in a pool.
const COUNTERS: usize = 4096;
/// What a holder may have, as a multiple of the square of the share of the pool that then remains free. With 12 that is
/// three quarters where a quarter remains.
const FREE_SQUARED: u128 = 12;
/// How many times as much as its account may still take a peer may have of it.
const LEFT_FACTOR: usize = 3;
/// When a rejected client should retry.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(100);

/// One for all pools, so that the counter of a holder is computed once for a call.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// What takes from a pool, by the numbers of its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    whole: usize,
    /// Of the peer of an account.
    part: Option<usize>,
}

impl Holder {
    /// A peer.
    #[must_use]
    pub fn peer(peer: PeerKey) -> Self {
        Self { whole: hashed(("peer", peer)), part: None }
    }

    /// An account, from any peer.
    #[must_use]
    pub fn account_alone(name: &str) -> Self {
        Self { whole: hashed(("account", name)), part: None }
    }

    /// An account, called from a peer.
    #[must_use]
    pub fn account(name: &str, peer: PeerKey) -> Self {
        Self { whole: hashed(("account", name)), part: Some(hashed((name, peer))) }
    }

    /// Who takes turns in the store.
    #[must_use]
    pub fn owner(self) -> Owner {
        Owner::numbered(self.whole)
    }
}

fn hashed(value: impl Hash) -> usize {
    usize::try_from(HASHER.hash_one(value) % COUNTERS as u64).unwrap_or_default()
}

/// See the module.
#[derive(Debug)]
pub struct SharePool {
    /// What it has, as in `calls` and `bytes of messages`.
    what: &'static str,
    max: usize,
    used: AtomicUsize,
    wholes: HolderCounters,
    parts: HolderCounters,
}

/// What holders have.
#[derive(Debug)]
struct HolderCounters {
    by_number: Box<[AtomicUsize]>,
    /// Of a number beyond those; there is none.
    beyond: AtomicUsize,
}

impl Default for HolderCounters {
    fn default() -> Self {
        let by_number = (0..COUNTERS).map(|_| AtomicUsize::new(0)).collect();
        Self { by_number, beyond: AtomicUsize::new(0) }
    }
}

impl HolderCounters {
    fn get(&self, number: usize) -> &AtomicUsize {
        self.by_number.get(number).unwrap_or(&self.beyond)
    }
}

impl SharePool {
    /// A pool of so many of `what`.
    #[must_use]
    pub fn new(what: &'static str, max: usize) -> Arc<Self> {
        let (wholes, parts) = Default::default();
        Arc::new(Self { what, max, used: AtomicUsize::new(0), wholes, parts })
    }

    /// Takes a part.
    ///
    /// # Errors
    /// The pool has too little left, or the holder has its share.
    pub fn take(self: &Arc<Self>, holder: Holder, amount: usize) -> Result<Share, Fault> {
        self.add(holder, amount)?;
        Ok(self.share(holder, amount))
    }

    /// Takes a part that cannot be rejected, beyond its bound if need be: other parts are rejected meanwhile.
    pub fn overdraw(self: &Arc<Self>, holder: Holder, amount: usize) -> Share {
        self.used.fetch_add(amount, Relaxed);
        self.add_to(holder, amount);
        self.share(holder, amount)
    }

    /// What remains free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.max.saturating_sub(self.used.load(Relaxed))
    }

    /// Whether nothing is left.
    pub(super) fn is_used_up(&self) -> bool {
        self.used.load(Relaxed) >= self.max
    }

    /// The error where nothing is left.
    pub(super) fn used_up(&self) -> Fault {
        let message = format!("too many {} at a time: limit=`{}`", self.what, self.max);
        Fault::new(Reason::ServerBusy, message).retry_after(RETRY_AFTER)
    }

    fn share(self: &Arc<Self>, holder: Holder, amount: usize) -> Share {
        Share { pool: Arc::clone(self), holder, amount }
    }

    fn add(&self, holder: Holder, amount: usize) -> Result<(), Fault> {
        if amount == 0 {
            return Ok(());
        }
        let fits = |used: usize| used.checked_add(amount).filter(|used| *used <= self.max);
        let before = self.used.fetch_update(Relaxed, Relaxed, fits);
        let before = before.map_err(|_| self.used_up())?;
        let free = self.max.saturating_sub(before).saturating_sub(amount);
        self.count(holder, amount, free).inspect_err(|_| {
            self.used.fetch_sub(amount, Relaxed);
        })
    }

    /// Counts a part for its holder, of which so much remains free.
    fn count(&self, holder: Holder, amount: usize, free: usize) -> Result<(), Fault> {
        let (whole, part) = self.add_to(holder, amount);
        let most = self.most(free);
        let is_over = |held: usize, most: usize| held > 0 && held.saturating_add(amount) > most;
        let left = most.saturating_sub(whole.saturating_add(amount));
        // A peer that has nothing is not rejected for what the other peers of its account have.
        let is_first = holder.part.is_some() && part == 0;
        let most = if is_first { self.max - self.max / 4 } else { most };
        if is_over(whole, most) || is_over(part, left.saturating_mul(LEFT_FACTOR)) {
            self.remove_from(holder, amount);
            let (what, max) = (self.what, self.max);
            let message = format!(
                "too many {what} of one client or account at a time: held=`{whole}`, limit=`{max}`"
            );
            return Err(Fault::new(Reason::ServerBusy, message).retry_after(RETRY_AFTER));
        }
        Ok(())
    }

    /// What a holder may have where so much remains free.
    fn most(&self, free: usize) -> usize {
        let free = free as u128;
        let squared = free.saturating_mul(free).saturating_mul(FREE_SQUARED);
        let most = squared.checked_div(self.max as u128);
        most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX)
    }

    /// What the holder had before, as a whole and as a part.
    fn add_to(&self, holder: Holder, amount: usize) -> (usize, usize) {
        let add = |counter: &AtomicUsize| counter.fetch_add(amount, Relaxed);
        let part = holder.part.map_or(0, |number| add(self.parts.get(number)));
        (add(self.wholes.get(holder.whole)), part)
    }

    fn remove_from(&self, holder: Holder, amount: usize) {
        self.wholes.get(holder.whole).fetch_sub(amount, Relaxed);
        if let Some(number) = holder.part {
            self.parts.get(number).fetch_sub(amount, Relaxed);
        }
    }

    fn release(&self, holder: Holder, amount: usize) {
        self.used.fetch_sub(amount, Relaxed);
        self.remove_from(holder, amount);
    }
}

/// A part of a pool, returned to it when this is dropped.
#[derive(Debug)]
pub struct Share {
    pool: Arc<SharePool>,
    holder: Holder,
    amount: usize,
}

impl Share {
    /// How much it is.
    #[must_use]
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// Takes more from the pool, or returns some.
    ///
    /// # Errors
    /// As of [`SharePool::take`]; it has as much as before.
    pub fn resize(&mut self, amount: usize) -> Result<(), Fault> {
        match amount.checked_sub(self.amount) {
            Some(more) if more > 0 => self.pool.add(self.holder, more)?,
            _ => self.pool.release(self.holder, self.amount.saturating_sub(amount)),
        }
        self.amount = amount;
        Ok(())
    }

    /// Counts for another holder from now on.
    ///
    /// # Errors
    /// That one has its share.
    fn move_to(&mut self, holder: Holder) -> Result<(), Fault> {
        if holder != self.holder {
            // First: where the two have the same counter, the share would be rejected for itself.
            self.pool.remove_from(self.holder, self.amount);
            if let Err(fault) = self.pool.count(holder, self.amount, self.pool.free()) {
                self.pool.add_to(self.holder, self.amount);
                return Err(fault);
            }
            self.holder = holder;
        }
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.release(self.holder, self.amount);
    }
}

/// Who a call counts for, in its extensions, with the slots that it has. Clones share them.
#[derive(Debug, Clone)]
pub struct CallHolder(Arc<HeldCall>);

#[derive(Debug)]
struct HeldCall {
    shares: Mutex<CallShares>,
    /// Where its bytes count, once it is authenticated, if its account has a limit of them.
    meter: OnceLock<CallMeter>,
}

#[derive(Debug)]
struct CallShares {
    peer: PeerKey,
    holder: Holder,
    slots: Vec<CallSlot>,
    /// Of what it has in memory.
    held: Vec<Share>,
}

#[derive(Debug)]
struct CallSlot {
    share: Share,
    /// Where a call that may wait takes one if its holder has its share of those; then it may not wait.
    otherwise: Option<Arc<SharePool>>,
}

impl CallHolder {
    /// That of a request: its peer, if no layer before has put one on it.
    #[must_use]
    pub fn of(extensions: &http::Extensions) -> Self {
        let by_peer = || Self::new(Peer::key_of(extensions));
        extensions.get::<Self>().cloned().unwrap_or_else(by_peer)
    }

    fn new(peer: PeerKey) -> Self {
        let (holder, slots) = (Holder::peer(peer), Vec::new());
        let shares = Mutex::new(CallShares { peer, holder, slots, held: Vec::new() });
        Self(Arc::new(HeldCall { shares, meter: OnceLock::new() }))
    }

    /// The account of a request is known: the call and its slots count for it from now on.
    ///
    /// # Errors
    /// The account, or its peer in it, has its share of one of them.
    pub fn authenticated(request: &mut Request, account: &str) -> Result<(), Fault> {
        let call = Self::of(request.extensions());
        let mut shares = call.lock();
        let holder = Holder::account(account, shares.peer);
        shares.holder = holder;
        for slot in &mut shares.slots {
            if let Err(fault) = slot.share.move_to(holder) {
                slot.share = slot.otherwise.take().ok_or(fault)?.take(holder, 1)?;
                request.headers_mut().insert(NO_WAIT, HeaderValue::from_static("1"));
            }
        }
        Ok(())
    }

    /// Has the bytes of a request and its response count for the quota of an account.
    pub fn measure(request: &Request, meter: CallMeter) {
        // A call is authenticated once.
        Self::of(request.extensions()).0.meter.get_or_init(|| meter);
    }

    /// Where its bytes count; none where they have no limit.
    #[must_use]
    pub fn meter(&self) -> Option<&CallMeter> {
        self.0.meter.get()
    }

    /// What the call counts for.
    #[must_use]
    pub fn holder(&self) -> Holder {
        self.lock().holder
    }

    /// Takes a slot for the call.
    ///
    /// # Errors
    /// As of [`SharePool::take`].
    pub(super) fn take_slot(&self, pool: &Arc<SharePool>) -> Result<(), Fault> {
        let mut shares = self.lock();
        let share = pool.take(shares.holder, 1)?;
        shares.slots.push(CallSlot { share, otherwise: None });
        Ok(())
    }

    /// Takes a slot for a call that may wait, or one of `calls` if there is none. Returns whether it may wait.
    ///
    /// # Errors
    /// There is neither.
    pub(super) fn take_waiting_slot(
        &self,
        waiting: &Arc<SharePool>,
        calls: &Arc<SharePool>,
    ) -> Result<bool, Fault> {
        let mut shares = self.lock();
        let slot = match waiting.take(shares.holder, 1) {
            Ok(share) => CallSlot { share, otherwise: Some(Arc::clone(calls)) },
            Err(_) => CallSlot { share: calls.take(shares.holder, 1)?, otherwise: None },
        };
        let may_wait = slot.otherwise.is_some();
        shares.slots.push(slot);
        Ok(may_wait)
    }

    /// Keeps a share until the call has ended.
    pub(super) fn keep(&self, share: Share) {
        self.lock().held.push(share);
    }

    /// Returns the slots of the call.
    pub(super) fn release_slots(&self) {
        let slots = std::mem::take(&mut self.lock().slots);
        drop(slots);
    }

    fn lock(&self) -> MutexGuard<'_, CallShares> {
        self.0.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
