//! When messages of a queue expire, as far as the sweeper has found out.
//!
//! What lies some time in the past of the order of delivery only becomes less: every write leaves its messages at the
//! present or later. Such places are known in stretches, each with the time of the first expiration in it, and a
//! stretch is looked at again only when that has come. What lies behind the stretches, the rest, is looked at as a
//! whole when the first of it expires. So finding what expired costs about as much as there is of it, however deep the
//! queue.

use std::collections::BTreeMap;

use trestle_service::clock::Ticks;

use crate::keys::Place;

/// Messages of a stretch when it is made.
pub(crate) const STRETCH: usize = 256;
/// Most stretches of a queue: some 2 MiB. When there are more, each two become one.
const STRETCHES_MAX: usize = 65_536;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Expiries {
    /// The first expiration of each stretch by its first place. One ends where the next begins, the last at `end`.
    stretches: BTreeMap<Place, Ticks>,
    /// Where the rest begins; where the queue does if none.
    end: Option<Place>,
    /// The first expiration of the rest, at the earliest; not known if none.
    rest: Option<Ticks>,
    /// The first expiration of what was written since the last look at the rest began.
    noted: Option<Ticks>,
    /// How far a look at the rest has come that is not over, and the first expiration of what it passed.
    look: Option<(Place, Ticks)>,
}

impl Expiries {
    /// Something was written, or is about to be, that expires then.
    pub(crate) fn note(&mut self, expires_at: Ticks) {
        self.noted = Some(self.noted.map_or(expires_at, |noted| noted.min(expires_at)));
    }

    /// Nothing lies before `place` any more.
    pub(crate) fn begin_at(&mut self, place: Place) {
        // The stretch that the place lies in stays, if it is there.
        let first = self.stretches.range(..=place).next_back().map(|(first, _)| *first);
        if let Some(first) = first {
            self.stretches = self.stretches.split_off(&first);
        }
        if self.end.is_none_or(|end| end <= place) {
            self.stretches.clear();
            self.end = Some(place);
            self.look = self.look.map(|(looked_to, earliest)| (looked_to.max(place), earliest));
        }
    }

    /// The stretches in which something has expired, each with the place where it ends; what expired first comes first.
    pub(crate) fn due(&self, now: Ticks) -> Vec<(Place, Place)> {
        let ends = self.stretches.keys().skip(1).copied().chain(self.end);
        let due = self.stretches.iter().zip(ends).filter(|((_, earliest), _)| **earliest <= now);
        let mut due: Vec<_> = due.map(|((first, at), end)| (*at, *first, end)).collect();
        due.sort_unstable();
        due.into_iter().map(|(_, first, end)| (first, end)).collect()
    }

    /// A stretch was looked at, and what had expired there removed: when the next of it expires, [`Ticks::MAX`] if
    /// nothing does.
    pub(crate) fn looked_at(&mut self, first: Place, earliest: Ticks) {
        if let Some(known) = self.stretches.get_mut(&first) {
            *known = earliest;
        }
    }

    /// Whether something of the rest may have expired, or a look at it is not over.
    pub(crate) fn is_rest_due(&self, now: Ticks) -> bool {
        let first = self.rest.into_iter().chain(self.noted).min();
        self.look.is_some() || self.rest.is_none() || first.is_none_or(|first| first <= now)
    }

    /// Where to look in the rest: at its beginning, or where the last look was left.
    pub(crate) fn look(&mut self) -> Place {
        let start = self.end.unwrap_or(Place::FIRST);
        // What was noted may not be in the store yet: it is due once more at its time.
        let noted = &mut self.noted;
        let (place, _) =
            self.look.get_or_insert_with(|| (start, noted.take().unwrap_or(Ticks::MAX)));
        *place
    }

    /// The look at the rest has come as far as `to`, and this is the first expiration of what it passed since it was
    /// asked where it is. What is `settled` is a stretch from here on: nothing will be written there any more.
    pub(crate) fn passed(&mut self, to: Place, earliest: Ticks, is_settled: bool) {
        let end = self.end.unwrap_or(Place::FIRST);
        let Some((place, first)) = &mut self.look else { return };
        // A stretch begins where the last one ends.
        let is_next = *place == end;
        *place = to;
        if !is_settled || !is_next {
            *first = (*first).min(earliest);
            return;
        }
        self.end = Some(to);
        // What never expires needs only one stretch.
        let last = self.stretches.last_key_value().map(|(_, earliest)| *earliest);
        if last != Some(Ticks::MAX) || earliest != Ticks::MAX {
            self.stretches.insert(end, earliest);
        }
        if self.stretches.len() > STRETCHES_MAX {
            self.halve();
        }
    }

    /// The whole rest was looked at.
    pub(crate) fn finish(&mut self) {
        self.rest = self.look.take().map(|(_, earliest)| earliest);
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

    /// Stretches from 0, 10 and 20 on, which expire from 100, 50 and 70 on; the rest begins at 30 and expires at 90.
    fn known() -> Expiries {
        let mut known = Expiries::default();
        assert_eq!(known.look(), Place::FIRST);
        for (to, earliest) in [(10, 100), (20, 50), (30, 70)] {
            known.passed(place(to), at(earliest), true);
        }
        known.passed(place(40), at(90), false);
        known.finish();
        known
    }

    #[test]
    fn only_what_has_expired_is_looked_at() {
        let mut known = known();

        assert_eq!((known.due(at(49)), known.is_rest_due(at(49))), (Vec::new(), false));
        assert_eq!(known.due(at(50)), [(place(10), place(20))]);
        let all = [(place(10), place(20)), (place(20), place(30)), (Place::FIRST, place(10))];
        assert_eq!(known.due(at(100)), all);
        assert!(!known.is_rest_due(at(89)) && known.is_rest_due(at(90)));
        assert_eq!(known.look(), place(30));

        known.looked_at(place(10), at(60));
        known.looked_at(place(20), Ticks::MAX);
        assert_eq!(known.due(at(59)), []);
        assert_eq!(known.due(at(99)), [(place(10), place(20))]);
    }

    #[test]
    fn what_is_written_makes_the_rest_due() {
        assert!(Expiries::default().is_rest_due(at(0)), "nothing is known of it");
        let mut known = known();

        known.note(at(40));
        assert!(!known.is_rest_due(at(39)) && known.is_rest_due(at(40)));

        // The look may have come before the write: it is due once more, and then no longer.
        for expected in [true, false] {
            assert_eq!(known.look(), place(30));
            known.finish();
            assert_eq!(known.is_rest_due(at(40)), expected);
        }
    }

    #[test]
    fn a_look_goes_on_where_it_was_left_and_settles_nothing_behind_a_gap() {
        let mut known = known();
        known.look();
        known.passed(place(35), Ticks::MAX, false);
        known.note(at(60));
        assert!(known.is_rest_due(at(0)), "it is not over");

        assert_eq!(known.look(), place(35));
        known.passed(place(50), at(80), true);
        known.finish();

        assert_eq!(known.look(), place(30), "all of it is the rest");
        assert!(known.is_rest_due(at(60)), "{known:?}");
        assert_eq!(known.due(at(80)).len(), 2, "{known:?}");
    }

    #[test]
    fn stretches_go_when_the_queue_has_passed_them() {
        let mut known = known();

        known.begin_at(place(15));
        let rest = [(place(10), place(20)), (place(20), place(30))];
        assert_eq!(known.due(at(100)), rest, "the queue has come half-way into the second");
        known.look();
        known.begin_at(place(40));
        assert_eq!(known.due(at(100)), []);
        assert_eq!(known.look(), place(40));
        known.passed(place(50), at(70), true);
        assert_eq!(known.due(at(70)), [(place(40), place(50))]);
    }

    #[test]
    fn what_never_expires_is_one_stretch_and_there_are_never_too_many() {
        let mut known = Expiries::default();
        known.look();
        for end in 1..=1000 {
            known.passed(place(end), Ticks::MAX, true);
        }
        assert_eq!(known.stretches.len(), 1);

        for end in 1001..=200_000 {
            known.passed(place(end), at(end), true);
            assert!(known.stretches.len() <= STRETCHES_MAX);
        }

        let mut due = known.due(at(150_000));
        due.sort();
        let (first, last) = (due.first().expect("due"), due.last().expect("due"));
        assert!(first.0 <= place(1001) && last.1 >= place(150_000), "{first:?} to {last:?}");
        assert!(last.0 <= place(150_000), "not much more: {last:?}");
        assert!(due.iter().zip(due.iter().skip(1)).all(|(a, b)| a.1 == b.0), "without a gap");
    }
}
