//! Which messages of a queue are where in the order of delivery, as far as is known in memory.
//!
//! The index holds the first places of a queue, up to a frontier; what lies behind is read from the store when it is
//! needed. It is a hint: a place may be in it whose message is gone, and who takes a place asks the store before he
//! believes it. What must not happen is the reverse, a message before the frontier that the index does not know, since
//! nobody would deliver it. Two rules keep it out: whoever writes a state inserts its place after the write, also when
//! its caller has gone; and while the store is read, every insertion is kept, wherever it lies.

use std::collections::{BTreeMap, BTreeSet};

use trestle_service::clock::Ticks;

use crate::keys::{Cursor, Place};

/// Most places in memory for one queue: some 4 MiB.
const PLACES_MAX: usize = 65_536;
/// How many are kept when there are too many.
const PLACES_KEPT: usize = 49_152;

/// The places of a queue. See the module.
#[derive(Debug)]
pub(crate) struct Index {
    /// Free to be taken.
    free: BTreeSet<Place>,
    /// Taken by somebody who is asking the store.
    taken: BTreeSet<Place>,
    /// Everything before it is known; everything at all where none.
    frontier: Option<Place>,
    /// Whether the store is being read behind the frontier.
    is_loading: bool,
    /// Writes under way: the lowest place and sequence that each may leave.
    writing: BTreeMap<u64, Place>,
    next_write: u64,
    /// No message has a lower sequence.
    lowest_sequence: u64,
    /// Messages that went away since the cursor was last noted.
    gone: usize,
}

impl Index {
    /// Knows nothing but where the queue begins.
    pub(crate) fn new(cursor: Cursor) -> Self {
        Self {
            free: BTreeSet::new(),
            taken: BTreeSet::new(),
            frontier: Some(cursor.place),
            is_loading: false,
            writing: BTreeMap::new(),
            next_write: 0,
            lowest_sequence: cursor.sequence,
            gone: 0,
        }
    }

    /// Adds a place that a write has just filled.
    pub(crate) fn insert(&mut self, place: Place) {
        if self.is_loading || self.frontier.is_none_or(|frontier| place < frontier) {
            self.free.insert(place);
            self.trim();
        }
    }

    /// Removes a place that a write has just emptied.
    pub(crate) fn remove(&mut self, place: Place) {
        self.gone += 1;
        self.free.remove(&place);
    }

    /// Takes up to `max` places that are due, in order.
    pub(crate) fn take(&mut self, max: usize, now: Ticks) -> Vec<Place> {
        let mut places = Vec::new();
        while places.len() < max {
            let Some(first) = self.free.first().copied().filter(|p| p.visible_at <= now) else {
                break;
            };
            self.free.remove(&first);
            self.taken.insert(first);
            places.push(first);
        }
        places
    }

    /// Frees places that were taken.
    pub(crate) fn give_back(&mut self, places: &[Place]) {
        for place in places {
            if self.taken.remove(place) {
                self.insert(*place);
            }
        }
    }

    /// Forgets places that were taken and are no more.
    pub(crate) fn drop_taken(&mut self, places: &[Place]) {
        self.gone += places.len();
        for place in places {
            self.taken.remove(place);
        }
    }

    /// Up to `max` free places that are due, after `after`, in order; nothing is taken.
    pub(crate) fn look(&self, after: Option<Place>, max: usize, now: Ticks) -> Vec<Place> {
        let start = after.map_or(Place::FIRST, Place::next);
        self.free.range(start..).take_while(|p| p.visible_at <= now).take(max).copied().collect()
    }

    /// Whether a place is due.
    pub(crate) fn has_due(&self, now: Ticks) -> bool {
        self.free.first().is_some_and(|place| place.visible_at <= now)
    }

    /// Whether a message that is due may lie behind the frontier.
    pub(crate) fn ends_before(&self, now: Ticks) -> bool {
        self.frontier.is_some_and(|frontier| frontier.visible_at <= now)
    }

    /// When there may be something new to take: a place becomes due, or the frontier is reached.
    pub(crate) fn next_event(&self) -> Option<Ticks> {
        let first = self.free.first().map(|place| place.visible_at);
        let frontier = self.frontier.map(|frontier| frontier.visible_at);
        first.into_iter().chain(frontier).min()
    }

    /// Where to read on in the store; none if everything is known.
    pub(crate) fn begin_load(&mut self) -> Option<Place> {
        self.is_loading = self.frontier.is_some();
        self.frontier
    }

    /// Adds the places that were read from the frontier on; `more` says whether there may be more behind.
    pub(crate) fn end_load(&mut self, places: &[Place], more: bool) {
        self.is_loading = false;
        let frontier = places.last().map(|last| last.next());
        if !more {
            self.frontier = None;
        } else if frontier.is_some() {
            self.frontier = frontier;
        }
        self.free.extend(places.iter().filter(|place| !self.taken.contains(place)));
        if let Some(frontier) = self.frontier {
            self.free.split_off(&frontier);
        }
        self.trim();
    }

    /// The load failed: nothing is known about what lies behind the frontier.
    pub(crate) fn abort_load(&mut self) {
        if std::mem::take(&mut self.is_loading)
            && let Some(frontier) = self.frontier
        {
            self.free.split_off(&frontier);
        }
    }

    /// Notes a write under way that may leave messages at `lowest` or later.
    pub(crate) fn begin_write(&mut self, lowest: Place) -> u64 {
        self.next_write += 1;
        self.writing.insert(self.next_write, lowest);
        self.next_write
    }

    /// The write is over, and what it left was inserted.
    pub(crate) fn end_write(&mut self, number: u64) {
        self.writing.remove(&number);
    }

    /// How far the queue has come: nothing lies before, now or later.
    pub(crate) fn cursor(&self, now: Ticks) -> Cursor {
        let writing = self.writing.values().min().copied();
        let firsts = [self.free.first().copied(), self.taken.first().copied(), self.frontier];
        let latest = Place { visible_at: now, sequence: 0 };
        let place = firsts.into_iter().flatten().chain(writing).min();
        Cursor {
            place: place.map_or(latest, |place| place.min(latest)),
            sequence: self.lowest_sequence,
        }
    }

    /// How many messages went away since the cursor was last asked for by [`Self::take_progress`].
    pub(crate) fn gone(&self) -> usize {
        self.gone
    }

    /// The cursor, if a message went away since this was last asked.
    pub(crate) fn take_progress(&mut self, now: Ticks) -> Option<Cursor> {
        (std::mem::take(&mut self.gone) > 0).then(|| self.cursor(now))
    }

    /// The sequence from which to look for the oldest message, and one that no message can be below whose write is
    /// not over, given the next sequence that a write can get.
    pub(crate) fn oldest_range(&self, next_sequence: u64) -> (u64, u64) {
        let writing = self.writing.values().map(|place| place.sequence).min();
        (self.lowest_sequence, writing.map_or(next_sequence, |s| s.min(next_sequence)))
    }

    /// Notes that no message has a lower sequence.
    pub(crate) fn raise_lowest_sequence(&mut self, sequence: u64) {
        self.lowest_sequence = self.lowest_sequence.max(sequence);
    }

    fn trim(&mut self) {
        if self.is_loading || self.free.len() <= PLACES_MAX {
            return;
        }
        if let Some(first_left_out) = self.free.iter().nth(PLACES_KEPT).copied() {
            self.free.split_off(&first_left_out);
            self.frontier = Some(first_left_out);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ticks: u64) -> Ticks {
        Ticks::new(ticks).expect("in range")
    }

    fn place(ticks: u64, sequence: u64) -> Place {
        Place { visible_at: at(ticks), sequence }
    }

    /// An index that has read an empty store.
    fn complete() -> Index {
        let mut index = Index::new(Cursor::START);
        index.begin_load();
        index.end_load(&[], false);
        index
    }

    #[test]
    fn places_are_taken_in_order_and_only_when_due() {
        let mut index = complete();
        for (ticks, sequence) in [(5, 1), (3, 2), (3, 1), (9, 3)] {
            index.insert(place(ticks, sequence));
        }

        assert_eq!(index.take(2, at(5)), [place(3, 1), place(3, 2)]);
        assert_eq!(index.take(9, at(5)), [place(5, 1)]);
        assert_eq!(index.take(9, at(5)), []);
        assert_eq!(index.next_event(), Some(at(9)));

        index.give_back(&[place(3, 2)]);
        assert_eq!(index.take(9, at(9)), [place(3, 2), place(9, 3)]);
    }

    #[test]
    fn what_is_inserted_while_the_store_is_read_is_not_lost() {
        let mut index = Index::new(Cursor::START);
        index.insert(place(1, 1));
        assert_eq!(index.look(None, 9, at(9)), [], "the store will tell");

        assert_eq!(index.begin_load(), Some(Place::FIRST));
        index.insert(place(4, 4));
        index.insert(place(8, 8));
        index.end_load(&[place(1, 1), place(5, 5)], true);

        assert_eq!(index.look(None, 9, at(9)), [place(1, 1), place(4, 4), place(5, 5)]);
        assert_eq!(index.begin_load(), Some(place(5, 6)));
        index.end_load(&[place(8, 8)], false);
        assert_eq!(index.look(Some(place(4, 4)), 9, at(9)), [place(5, 5), place(8, 8)]);
        assert_eq!(index.begin_load(), None);
    }

    #[test]
    fn a_failed_load_leaves_the_frontier_where_it_was() {
        let mut index = Index::new(Cursor::START);
        index.begin_load();
        index.insert(place(4, 4));

        index.abort_load();

        assert!(!index.has_due(at(9)));
        assert!(index.ends_before(at(9)));
    }

    #[test]
    fn too_many_places_move_the_frontier_back() {
        let mut index = complete();
        let count = u64::try_from(PLACES_MAX).expect("fits") + 1;
        for sequence in 0..count {
            index.insert(place(1, sequence));
        }

        assert_eq!(index.free.len(), PLACES_KEPT);
        let kept = u64::try_from(PLACES_KEPT).expect("fits");
        assert_eq!(index.begin_load(), Some(place(1, kept)));
    }

    #[test]
    fn the_cursor_stays_before_everything_that_is_there_or_may_come() {
        let mut index = complete();
        assert_eq!(index.cursor(at(50)).place, place(50, 0));

        let write = index.begin_write(place(40, 7));
        assert_eq!(index.cursor(at(50)).place, place(40, 7));
        index.insert(place(45, 7));
        index.end_write(write);
        assert_eq!(index.cursor(at(50)).place, place(45, 7));
        index.take(1, at(50));
        assert_eq!(index.cursor(at(50)).place, place(45, 7), "taken, not gone");
        index.drop_taken(&[place(45, 7)]);
        assert_eq!(index.cursor(at(50)).place, place(50, 0));
        index.insert(place(90, 8));
        assert_eq!(index.cursor(at(50)).place, place(50, 0), "a later one hides nothing");
    }

    #[test]
    fn an_index_that_read_nothing_keeps_its_cursor() {
        let cursor = Cursor { place: place(30, 3), sequence: 2 };
        assert_eq!(Index::new(cursor).cursor(at(50)), cursor);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Write(u64),
        Take(usize),
        Delete,
        BeginLoad,
        EndLoad(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..30_u64).prop_map(Step::Write),
            2 => (1..4_usize).prop_map(Step::Take),
            1 => Just(Step::Delete),
            2 => Just(Step::BeginLoad),
            3 => (0..5_usize).prop_map(Step::EndLoad),
        ]
    }

    proptest! {
        /// Whatever the order of writes and reads, nothing that is stored before the frontier is unknown.
        #[test]
        fn no_stored_message_before_the_frontier_is_unknown(
            steps in proptest::collection::vec(step(), 1..60),
        ) {
            let (mut index, mut stored) = (Index::new(Cursor::START), BTreeSet::new());
            let mut taken = Vec::new();
            let mut reading: Option<(Place, BTreeSet<Place>)> = None;
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Write(ticks) => {
                        let new = place(ticks, u64::try_from(number).expect("fits"));
                        stored.insert(new);
                        index.insert(new);
                    }
                    Step::Take(max) => taken.extend(index.take(max, at(15))),
                    Step::Delete => {
                        for place in taken.drain(..) {
                            stored.remove(&place);
                            index.drop_taken(&[place]);
                        }
                    }
                    Step::BeginLoad if reading.is_none() => {
                        let start = index.begin_load();
                        reading = start.map(|start| (start, stored.clone()));
                    }
                    Step::BeginLoad => {}
                    Step::EndLoad(rows) => {
                        if let Some((start, seen)) = reading.take() {
                            let all: Vec<_> = seen.range(start..).copied().collect();
                            let page: Vec<_> = all.iter().take(rows).copied().collect();
                            let more = page.len() < all.len();
                            index.end_load(&page, more);
                        }
                    }
                }
                for place in &stored {
                    let known = index.free.contains(place) || index.taken.contains(place);
                    let behind = index.frontier.is_some_and(|frontier| *place >= frontier);
                    prop_assert!(known || behind, "{place:?} after step {number}");
                }
            }
        }
    }
}
