//! When messages of a queue expire, as far as the process has scanned them.
//!
//! The order of delivery is cut into buckets, the last of which has no end, and of each the earliest expiration is
//! kept. A bucket is scanned only when that has passed, and is then split into small ones; each later write lowers the
//! expiration of the bucket in which its message lies. So finding expired messages costs about as much as their number,
//! however deep the queue, and however long its messages are invisible.
//!
//! An expiration may be too early, which costs a scan, but never too late: a write lowers it once it is committed, so a
//! scan that did not read its message began before, and an expiration that is lowered during a scan remains.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use trestle_model::time::Ticks;

use crate::slot::Slot;

/// Messages of a bucket when it is made.
pub(crate) const BUCKET_MESSAGES: usize = 256;
/// Most buckets of a queue: some 2 MiB. Beyond that, neighbouring buckets are merged in pairs.
const BUCKETS_MAX: usize = 65_536;

/// An entry of the index: a message in its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// Its slot.
    pub(crate) slot: Slot,
    /// When it expires; never if none.
    pub(crate) expires_at: Option<Ticks>,
}

/// The buckets of a queue, for those that write into it and for the sweeper.
#[derive(Debug, Default)]
pub(crate) struct SharedExpiryBuckets(Mutex<ExpiryBuckets>);

impl SharedExpiryBuckets {
    /// Reads or changes them; quickly, since writers wait.
    pub(crate) fn with<T>(&self, use_buckets: impl FnOnce(&mut ExpiryBuckets) -> T) -> T {
        use_buckets(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Everything is due: another process may have written.
    pub(crate) fn reset(&self) {
        self.with(|buckets| *buckets = ExpiryBuckets::default());
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
    /// One bucket, which was not scanned yet.
    fn default() -> Self {
        Self { buckets: BTreeMap::from([(Slot::FIRST, DUE)]) }
    }
}

/// Before every time: the expiration of a bucket that was not scanned.
const DUE: Ticks = Slot::FIRST.visible_at;

impl ExpiryBuckets {
    /// A commit wrote a message.
    pub(crate) fn record(&mut self, entry: &IndexEntry) {
        if let Some(expires_at) = entry.expires_at {
            self.lower(entry.slot, expires_at);
        }
    }

    /// A scan was not finished: the bucket is due from there on.
    pub(crate) fn abandon_scan(&mut self, from: Slot) {
        self.lower(from, DUE);
    }

    fn lower(&mut self, slot: Slot, expires_at: Ticks) {
        if let Some((_, earliest)) = self.buckets.range_mut(..=slot).next_back() {
            *earliest = expires_at.min(*earliest);
        }
    }

    /// No message is stored before `slot` any more.
    pub(crate) fn begin_at(&mut self, slot: Slot) {
        let first = self.buckets.range(..=slot).next_back().map(|(first, _)| *first);
        let Some(first) = first.filter(|first| *first != Slot::FIRST) else { return };
        self.buckets = self.buckets.split_off(&first);
        let earliest = self.buckets.remove(&first);
        self.buckets.extend(earliest.map(|earliest| (Slot::FIRST, earliest)));
    }

    /// Whether messages may have expired.
    pub(crate) fn is_due(&self, now: Ticks) -> bool {
        self.buckets.values().any(|earliest| *earliest <= now)
    }

    /// The buckets in which messages may have expired, each with the slot where it ends, none for the last; the
    /// earliest expiration first.
    pub(crate) fn due(&self, now: Ticks) -> Vec<(Slot, Option<Slot>)> {
        let ends = self.buckets.keys().skip(1).copied().map(Some).chain([None]);
        let due = self.buckets.iter().zip(ends).filter(|((_, earliest), _)| **earliest <= now);
        let mut due: Vec<_> = due.map(|((first, at), end)| (*at, *first, end)).collect();
        due.sort_unstable_by_key(|(at, first, _)| (*at, *first));
        due.into_iter().map(|(_, first, end)| (first, end)).collect()
    }

    /// A scan of the bucket that begins at `first` begins: its expiration is that of messages written from here on.
    pub(crate) fn begin_scan(&mut self, first: Slot) {
        if let Some(earliest) = self.buckets.get_mut(&first) {
            *earliest = Ticks::MAX;
        }
    }

    /// The scan went from the beginning of a bucket to `next`, and no message between them expires before `earliest`:
    /// the scan continues there in a bucket of its own.
    pub(crate) fn cut(&mut self, first: Slot, next: Slot, earliest: Ticks) {
        let Some(current) = self.buckets.get_mut(&first) else { return };
        // A message written during the scan may be on either side.
        let written = *current;
        *current = written.min(earliest);
        let later = self.buckets.entry(next);
        later.and_modify(|current| *current = written.min(*current)).or_insert(written);
    }

    /// The scan found no message in the bucket: it is merged with the one before.
    pub(crate) fn join(&mut self, first: Slot) {
        if first != Slot::FIRST
            && let Some(written) = self.buckets.remove(&first)
        {
            self.lower(first, written);
        }
    }

    /// The scan of the last part of a bucket has finished.
    pub(crate) fn end_scan(&mut self, first: Slot, earliest: Ticks) {
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
