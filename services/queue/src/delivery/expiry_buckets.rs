//! When messages of a queue expire, as far as the process has found out.
//!
//! The order of delivery is cut into buckets, the last of which has no end, and of each it is known when the first
//! message in it expires, at the earliest. A bucket is looked at only when that has come, and is then cut into
//! small ones; whatever is written later tells the bucket that it comes to lie in. So finding what expired costs about
//! as much as there is of it, however deep the queue, and however long its messages are hidden or delayed.
//!
//! What is known may be too early, which costs a look, but never too late: a write tells it once the store has it, so a
//! look that did not meet it began before, and what is told during a look stays.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use trestle_service::clock::Ticks;

use crate::keys::Slot;

/// Messages of a bucket when it is made.
pub(crate) const BUCKET_MESSAGES: usize = 256;
/// Most buckets of a queue: some 2 MiB. When there are more, each two become one.
const BUCKETS_MAX: usize = 65_536;

/// A message where it stands since a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// Where it can be received.
    pub(crate) slot: Slot,
    /// When it expires; never if none.
    pub(crate) expires_at: Option<Ticks>,
}

/// What is known of a queue, for those who write into it and the one who sweeps it.
#[derive(Debug, Default)]
pub(crate) struct SharedExpiryBuckets(Mutex<ExpiryBuckets>);

impl SharedExpiryBuckets {
    /// Reads or tells; quickly, since writers wait.
    pub(crate) fn with<T>(&self, tell: impl FnOnce(&mut ExpiryBuckets) -> T) -> T {
        tell(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ExpiryBuckets {
    /// The first expiration of each bucket by its first slot. One ends where the next begins; the first begins
    /// before every message.
    buckets: BTreeMap<Slot, Ticks>,
}

impl Default for ExpiryBuckets {
    /// Nothing is known: all of it is due.
    fn default() -> Self {
        Self { buckets: BTreeMap::from([(Slot::FIRST, DUE)]) }
    }
}

/// Before every time: a bucket that was not looked at.
const DUE: Ticks = Slot::FIRST.visible_at;

impl ExpiryBuckets {
    /// A message stands there since a write that the store has.
    pub(crate) fn note(&mut self, entry: &IndexEntry) {
        if let Some(expires_at) = entry.expires_at {
            self.lower(entry.slot, expires_at);
        }
    }

    /// The bucket from there on is due, since a look at it was not finished.
    pub(crate) fn leave(&mut self, from: Slot) {
        self.lower(from, DUE);
    }

    fn lower(&mut self, slot: Slot, expires_at: Ticks) {
        if let Some((_, earliest)) = self.buckets.range_mut(..=slot).next_back() {
            *earliest = expires_at.min(*earliest);
        }
    }

    /// Nothing lies before `slot` any more.
    pub(crate) fn begin_at(&mut self, slot: Slot) {
        let first = self.buckets.range(..=slot).next_back().map(|(first, _)| *first);
        let Some(first) = first.filter(|first| *first != Slot::FIRST) else { return };
        self.buckets = self.buckets.split_off(&first);
        let earliest = self.buckets.remove(&first);
        self.buckets.extend(earliest.map(|earliest| (Slot::FIRST, earliest)));
    }

    /// The buckets in which something may have expired, each with the slot where it ends, none for the last; what
    /// expired first comes first.
    pub(crate) fn due(&self, now: Ticks) -> Vec<(Slot, Option<Slot>)> {
        let ends = self.buckets.keys().skip(1).copied().map(Some).chain([None]);
        let due = self.buckets.iter().zip(ends).filter(|((_, earliest), _)| **earliest <= now);
        let mut due: Vec<_> = due.map(|((first, at), end)| (*at, *first, end)).collect();
        due.sort_unstable_by_key(|(at, first, _)| (*at, *first));
        due.into_iter().map(|(_, first, end)| (first, end)).collect()
    }

    /// A look at the bucket that begins at `first` begins: it knows only what is told from here on.
    pub(crate) fn look(&mut self, first: Slot) {
        if let Some(earliest) = self.buckets.get_mut(&first) {
            *earliest = Ticks::MAX;
        }
    }

    /// The look has come from the beginning of a bucket to `next` and found that nothing between them expires before
    /// `earliest`: a bucket of its own is looked at from there on.
    pub(crate) fn cut(&mut self, first: Slot, next: Slot, earliest: Ticks) {
        let Some(known) = self.buckets.get_mut(&first) else { return };
        // What was told during the look may lie on either side.
        let told = *known;
        *known = told.min(earliest);
        self.buckets.entry(next).and_modify(|known| *known = told.min(*known)).or_insert(told);
    }

    /// The look found nothing in the bucket: it belongs to the one before.
    pub(crate) fn join(&mut self, first: Slot) {
        if first != Slot::FIRST
            && let Some(told) = self.buckets.remove(&first)
        {
            self.lower(first, told);
        }
    }

    /// The look at the last of a bucket is over.
    pub(crate) fn finish(&mut self, first: Slot, earliest: Ticks) {
        self.lower(first, earliest);
        if self.buckets.len() > BUCKETS_MAX {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let all: Vec<_> = std::mem::take(&mut self.buckets).into_iter().collect();
        for pair in all.chunks(2) {
            let earliest = pair.iter().map(|(_, earliest)| *earliest).min();
            let first = pair.first().map(|(first, _)| *first);
            self.buckets.extend(first.zip(earliest));
        }
    }
}

#[cfg(test)]
mod tests;
