//! The slots of the messages of a queue in the order of delivery, as far as they are in memory.
//!
//! The index holds the first slots of a queue, up to a frontier; the slots behind it are read from the store when they
//! are needed. The index is a hint: it may contain a slot whose message is removed, so a consumer that claims a slot
//! reads the store before it delivers. The reverse must not happen: a message before the frontier that is not in the
//! index would never be delivered. Two rules prevent it: a process that writes a state inserts its slot after the
//! write, also when the caller is cancelled; and while the store is read, every insertion is stored, whatever its slot.

use std::collections::{BTreeMap, BTreeSet};

use trestle_model::time::Ticks;

use crate::slot::{Cursor, Slot};

/// Most slots in memory for one queue: some 4 MiB.
const SLOTS_MAX: usize = 65_536;
/// How many slots remain when the index is full.
const SLOTS_KEPT: usize = 49_152;

/// The slots of a queue. See the module.
#[derive(Debug)]
pub(crate) struct Index {
    /// Slots that can be claimed.
    free: BTreeSet<Slot>,
    /// Slots claimed by a consumer that reads the store.
    claimed: BTreeSet<Slot>,
    /// The index is complete before it; complete as a whole where none.
    frontier: Option<Slot>,
    /// Whether the store is being read behind the frontier.
    is_loading: bool,
    /// Writes in flight: the lowest slot and sequence that each may leave.
    writing: BTreeMap<u64, Slot>,
    next_write: u64,
    /// No message has a lower sequence.
    lowest_sequence: u64,
    /// Messages that were removed since the last checkpoint.
    removed: usize,
}

impl Index {
    /// An empty index that stores only where the queue begins.
    pub(crate) fn new(cursor: Cursor) -> Self {
        Self {
            free: BTreeSet::new(),
            claimed: BTreeSet::new(),
            frontier: Some(cursor.slot),
            is_loading: false,
            writing: BTreeMap::new(),
            next_write: 0,
            lowest_sequence: cursor.sequence,
            removed: 0,
        }
    }

    /// Adds a slot that a write has just filled.
    pub(crate) fn insert(&mut self, slot: Slot) {
        if self.is_loading || self.frontier.is_none_or(|frontier| slot < frontier) {
            self.free.insert(slot);
            self.trim();
        }
    }

    /// Removes a slot that a write has just emptied.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.removed += 1;
        self.free.remove(&slot);
    }

    /// Claims up to `max` slots that are due, in order.
    pub(crate) fn claim(&mut self, max: usize, now: Ticks) -> Vec<Slot> {
        let mut slots = Vec::new();
        while slots.len() < max {
            let Some(first) = self.free.first().copied().filter(|p| p.visible_at <= now) else {
                break;
            };
            self.free.remove(&first);
            self.claimed.insert(first);
            slots.push(first);
        }
        slots
    }

    /// Releases claimed slots.
    pub(crate) fn give_back(&mut self, slots: &[Slot]) {
        for slot in slots {
            if self.claimed.remove(slot) {
                self.insert(*slot);
            }
        }
    }

    /// Removes claimed slots that are empty.
    pub(crate) fn drop_claimed(&mut self, slots: &[Slot]) {
        self.removed += slots.len();
        for slot in slots {
            self.claimed.remove(slot);
        }
    }

    /// Up to `max` free slots that are due, after `after`, in order; none is claimed.
    pub(crate) fn look(&self, after: Option<Slot>, max: usize, now: Ticks) -> Vec<Slot> {
        let start = after.map_or(Slot::FIRST, Slot::next);
        self.free.range(start..).take_while(|p| p.visible_at <= now).take(max).copied().collect()
    }

    /// Whether a slot is due.
    pub(crate) fn has_due(&self, now: Ticks) -> bool {
        self.free.first().is_some_and(|slot| slot.visible_at <= now)
    }

    /// Whether a message that is due may lie behind the frontier.
    pub(crate) fn ends_before(&self, now: Ticks) -> bool {
        self.frontier.is_some_and(|frontier| frontier.visible_at <= now)
    }

    /// When there may be a new slot to claim: a slot becomes due, or the frontier is reached.
    pub(crate) fn next_event(&self) -> Option<Ticks> {
        let first = self.free.first().map(|slot| slot.visible_at);
        let frontier = self.frontier.map(|frontier| frontier.visible_at);
        first.into_iter().chain(frontier).min()
    }

    /// Where to continue reading the store; none if the index is complete.
    pub(crate) fn begin_load(&mut self) -> Option<Slot> {
        self.is_loading = self.frontier.is_some();
        self.frontier
    }

    /// Adds the slots that were read from the frontier on; `more` is true if more may follow.
    pub(crate) fn end_load(&mut self, slots: &[Slot], more: bool) {
        self.is_loading = false;
        let frontier = slots.last().map(|last| last.next());
        if !more {
            self.frontier = None;
        } else if frontier.is_some() {
            self.frontier = frontier;
        }
        self.free.extend(slots.iter().filter(|slot| !self.claimed.contains(slot)));
        if let Some(frontier) = self.frontier {
            self.free.split_off(&frontier);
        }
        self.trim();
    }

    /// The load failed: the slots behind the frontier remain unknown.
    pub(crate) fn abort_load(&mut self) {
        if std::mem::take(&mut self.is_loading)
            && let Some(frontier) = self.frontier
        {
            self.free.split_off(&frontier);
        }
    }

    /// Registers a write in flight that may leave messages at `lowest` or later.
    pub(crate) fn begin_write(&mut self, lowest: Slot) -> u64 {
        self.next_write += 1;
        self.writing.insert(self.next_write, lowest);
        self.next_write
    }

    /// The write has finished, and the slots that it filled were inserted.
    pub(crate) fn end_write(&mut self, number: u64) {
        self.writing.remove(&number);
    }

    /// The cursor of the queue: no message is stored before it, now or later.
    pub(crate) fn cursor(&self, now: Ticks) -> Cursor {
        let writing = self.writing.values().min().copied();
        let firsts = [self.free.first().copied(), self.claimed.first().copied(), self.frontier];
        let latest = Slot { visible_at: now, sequence: 0 };
        let slot = firsts.into_iter().flatten().chain(writing).min();
        Cursor {
            slot: slot.map_or(latest, |slot| slot.min(latest)),
            sequence: self.lowest_sequence,
        }
    }

    /// How many messages were removed since the last call of [`Self::take_checkpoint`].
    pub(crate) fn removed(&self) -> usize {
        self.removed
    }

    /// The cursor, if a message was removed since the last call.
    pub(crate) fn take_checkpoint(&mut self, now: Ticks) -> Option<Cursor> {
        (std::mem::take(&mut self.removed) > 0).then(|| self.cursor(now))
    }

    /// The sequence from which to search for the oldest message, and a lower bound of the sequences of unfinished
    /// writes, given the next sequence that a write can get.
    pub(crate) fn oldest_range(&self, next_sequence: u64) -> (u64, u64) {
        let writing = self.writing.values().map(|slot| slot.sequence).min();
        (self.lowest_sequence, writing.map_or(next_sequence, |s| s.min(next_sequence)))
    }

    /// Stores that no message has a lower sequence.
    pub(crate) fn raise_lowest_sequence(&mut self, sequence: u64) {
        self.lowest_sequence = self.lowest_sequence.max(sequence);
    }

    fn trim(&mut self) {
        if self.is_loading || self.free.len() <= SLOTS_MAX {
            return;
        }
        if let Some(first_left_out) = self.free.iter().nth(SLOTS_KEPT).copied() {
            self.free.split_off(&first_left_out);
            self.frontier = Some(first_left_out);
        }
    }
}

#[cfg(test)]
mod tests;
