//! When messages of a queue expire, as far as the process has found out.
//!
//! The order of delivery is cut into stretches, the last of which has no end, and of each it is known when the first
//! message in it expires, at the earliest. A stretch is looked at only when that has come, and is then cut into
//! small ones; whatever is written later tells the stretch that it comes to lie in. So finding what expired costs about
//! as much as there is of it, however deep the queue, and however long its messages are hidden or delayed.
//!
//! What is known may be too early, which costs a look, but never too late: a write tells it once the store has it, so a
//! look that did not meet it began before, and what is told during a look stays.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use trestle_service::clock::Ticks;

use crate::keys::Place;

/// Messages of a stretch when it is made.
pub(crate) const STRETCH: usize = 256;
/// Most stretches of a queue: some 2 MiB. When there are more, each two become one.
const STRETCHES_MAX: usize = 65_536;

/// A message where it stands since a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Where it can be received.
    pub(crate) place: Place,
    /// When it expires; never if none.
    pub(crate) expires_at: Option<Ticks>,
}

/// What is known of a queue, for those who write into it and the one who sweeps it.
#[derive(Debug, Default)]
pub(crate) struct Shared(Mutex<Expiries>);

impl Shared {
    /// Reads or tells; quickly, since writers wait.
    pub(crate) fn with<T>(&self, tell: impl FnOnce(&mut Expiries) -> T) -> T {
        tell(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Expiries {
    /// The first expiration of each stretch by its first place. One ends where the next begins; the first begins
    /// before every message.
    stretches: BTreeMap<Place, Ticks>,
}

impl Default for Expiries {
    /// Nothing is known: all of it is due.
    fn default() -> Self {
        Self { stretches: BTreeMap::from([(Place::FIRST, DUE)]) }
    }
}

/// Before every time: a stretch that was not looked at.
const DUE: Ticks = Place::FIRST.visible_at;

impl Expiries {
    /// A message stands there since a write that the store has.
    pub(crate) fn note(&mut self, standing: &Standing) {
        if let Some(expires_at) = standing.expires_at {
            self.lower(standing.place, expires_at);
        }
    }

    /// The stretch from there on is due, since a look at it was not finished.
    pub(crate) fn leave(&mut self, from: Place) {
        self.lower(from, DUE);
    }

    fn lower(&mut self, place: Place, expires_at: Ticks) {
        if let Some((_, earliest)) = self.stretches.range_mut(..=place).next_back() {
            *earliest = expires_at.min(*earliest);
        }
    }

    /// Nothing lies before `place` any more.
    pub(crate) fn begin_at(&mut self, place: Place) {
        let first = self.stretches.range(..=place).next_back().map(|(first, _)| *first);
        let Some(first) = first.filter(|first| *first != Place::FIRST) else { return };
        self.stretches = self.stretches.split_off(&first);
        let earliest = self.stretches.remove(&first);
        self.stretches.extend(earliest.map(|earliest| (Place::FIRST, earliest)));
    }

    /// The stretches in which something may have expired, each with the place where it ends, none for the last; what
    /// expired first comes first.
    pub(crate) fn due(&self, now: Ticks) -> Vec<(Place, Option<Place>)> {
        let ends = self.stretches.keys().skip(1).copied().map(Some).chain([None]);
        let due = self.stretches.iter().zip(ends).filter(|((_, earliest), _)| **earliest <= now);
        let mut due: Vec<_> = due.map(|((first, at), end)| (*at, *first, end)).collect();
        due.sort_unstable_by_key(|(at, first, _)| (*at, *first));
        due.into_iter().map(|(_, first, end)| (first, end)).collect()
    }

    /// A look at the stretch that begins at `first` begins: it knows only what is told from here on.
    pub(crate) fn look(&mut self, first: Place) {
        if let Some(earliest) = self.stretches.get_mut(&first) {
            *earliest = Ticks::MAX;
        }
    }

    /// The look has come from the beginning of a stretch to `next` and found that nothing between them expires before
    /// `earliest`: a stretch of its own is looked at from there on.
    pub(crate) fn cut(&mut self, first: Place, next: Place, earliest: Ticks) {
        let Some(known) = self.stretches.get_mut(&first) else { return };
        // What was told during the look may lie on either side.
        let told = *known;
        *known = told.min(earliest);
        self.stretches.entry(next).and_modify(|known| *known = told.min(*known)).or_insert(told);
    }

    /// The look found nothing in the stretch: it belongs to the one before.
    pub(crate) fn join(&mut self, first: Place) {
        if first != Place::FIRST
            && let Some(told) = self.stretches.remove(&first)
        {
            self.lower(first, told);
        }
    }

    /// The look at the last of a stretch is over.
    pub(crate) fn finish(&mut self, first: Place, earliest: Ticks) {
        self.lower(first, earliest);
        if self.stretches.len() > STRETCHES_MAX {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let all: Vec<_> = std::mem::take(&mut self.stretches).into_iter().collect();
        for pair in all.chunks(2) {
            let earliest = pair.iter().map(|(_, earliest)| *earliest).min();
            let first = pair.first().map(|(first, _)| *first);
            self.stretches.extend(first.zip(earliest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: u64) -> Ticks {
        Ticks::new(ticks).expect("in range")
    }

    fn place(ticks: u64) -> Place {
        Place { visible_at: at(ticks), sequence: 0 }
    }

    fn standing(ticks: u64, expires_at: u64) -> Standing {
        Standing { place: place(ticks), expires_at: Some(at(expires_at)) }
    }

    /// Stretches from 0, 10 and 20 on, which expire from 100, 50 and 70 on.
    fn known() -> Expiries {
        let mut known = Expiries::default();
        assert_eq!(known.due(at(0)), [(Place::FIRST, None)], "nothing is known");
        known.look(Place::FIRST);
        known.cut(Place::FIRST, place(10), at(100));
        known.cut(place(10), place(20), at(50));
        known.finish(place(20), at(70));
        known
    }

    #[test]
    fn only_what_has_expired_is_looked_at() {
        let mut known = known();

        assert_eq!(known.due(at(49)), []);
        assert_eq!(known.due(at(50)), [(place(10), Some(place(20)))]);
        let second = (place(10), Some(place(20)));
        let all = [second, (place(20), None), (Place::FIRST, Some(place(10)))];
        assert_eq!(known.due(at(100)), all);

        known.look(place(10));
        known.finish(place(10), at(60));
        assert_eq!(known.due(at(59)), []);
        known.look(place(20));
        known.finish(place(20), Ticks::MAX);
        assert_eq!(known.due(at(99)), [second]);
    }

    #[test]
    fn what_is_written_is_told_to_the_stretch_that_it_lies_in() {
        let mut known = known();

        known.note(&standing(15, 30));
        known.note(&standing(12, 40));
        known.note(&standing(900, 45));
        known.note(&Standing { place: place(1), expires_at: None });

        assert_eq!(known.due(at(29)), []);
        assert_eq!(known.due(at(30)), [(place(10), Some(place(20)))]);
        assert_eq!(known.due(at(45)), [(place(10), Some(place(20))), (place(20), None)]);
    }

    #[test]
    fn what_is_told_during_a_look_is_not_forgotten() {
        let mut known = known();
        known.look(place(20));
        known.note(&standing(35, 60));
        known.cut(place(20), place(30), at(80));
        known.note(&standing(36, 65));
        known.finish(place(30), Ticks::MAX);

        let both = [(place(20), Some(place(30))), (place(30), None)];
        assert_eq!(known.due(at(60))[1..], both, "it may lie on either side of the cut");
        known.look(place(30));
        known.finish(place(30), at(65));
        assert_eq!(known.due(at(64)).len(), 2);
    }

    #[test]
    fn an_empty_stretch_joins_the_one_before() {
        let mut known = known();
        known.look(place(20));
        known.note(&standing(25, 90));

        known.join(place(20));
        known.look(Place::FIRST);
        known.join(Place::FIRST);

        assert_eq!(known.due(at(50)), [(place(10), None)]);
        known.look(place(10));
        assert_eq!(known.due(at(1000)), [], "{known:?}");
        known.note(&standing(25, 90));
        assert_eq!(known.due(at(90)), [(place(10), None)]);
    }

    #[test]
    fn a_look_that_is_left_goes_on_where_it_was() {
        let mut known = known();
        known.look(place(20));
        known.cut(place(20), place(30), at(80));

        known.leave(place(30));

        assert_eq!(known.due(at(0)), [(place(30), None)]);
    }

    #[test]
    fn stretches_go_when_the_queue_has_passed_them() {
        let mut known = known();

        known.begin_at(place(15));
        let rest = [(Place::FIRST, Some(place(20))), (place(20), None)];
        assert_eq!(known.due(at(100)), rest, "the queue has come half-way into the second");
        known.begin_at(place(40));
        assert_eq!(known.due(at(100)), [(Place::FIRST, None)]);
        known.note(&standing(1, 10));
        assert_eq!(known.due(at(10)), [(Place::FIRST, None)]);
    }

    #[test]
    fn there_are_never_too_many() {
        let mut known = Expiries::default();
        known.look(Place::FIRST);
        let mut first = Place::FIRST;
        for end in 1..=200_000 {
            known.cut(first, place(end), at(end));
            first = place(end);
            if end % 100 == 0 {
                known.finish(first, Ticks::MAX);
                assert!(known.stretches.len() <= STRETCHES_MAX);
            }
        }

        let mut due = known.due(at(150_000));
        due.sort();
        let (first, last) = (due.first().expect("due"), due.last().expect("due"));
        assert_eq!(first.0, Place::FIRST);
        assert!(last.1 >= Some(place(150_000)) && last.0 <= place(150_000), "{last:?}");
        assert!(due.iter().zip(due.iter().skip(1)).all(|(a, b)| a.1 == Some(b.0)), "without a gap");
    }
}
