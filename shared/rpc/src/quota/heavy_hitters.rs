//! The keys that are used most, in a fixed amount of memory: Space-Saving, over a sliding window.

use std::{cmp::Reverse, sync::Mutex, time::Duration};

use super::{lock, nanos};

/// Keys that share a lock. A key belongs to one such set.
const SET_SLOTS: usize = 8;
/// Sets; a power of two.
const SETS: usize = 128;

/// Most keys that are tracked, in 120 KiB and their names. A key with more than an eighth of the use
/// of its set is always among them.
pub const KEYS_MAX: usize = SETS * SET_SLOTS;

/// The time that use is counted over.
pub const WINDOW: Duration = Duration::from_secs(10);

/// Parts that a window is divided into; a power of two.
const PARTS: u64 = 1 << 10;

/// Tokens after which a key gets its name: most keys are cold, and allocate no name.
const NAMED_FROM: u64 = 4;

/// The keys that are used most, each with a name `N`. Keys are hashes, well spread over 64 bits.
pub struct HeavyHitters<N> {
    sets: Box<[Mutex<[CounterSlot<N>; SET_SLOTS]>]>,
}

/// A use of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// This many tokens were used.
    Used(u64),
    /// Some were rejected.
    Rejected,
}

/// A key that is used heavily.
#[derive(Debug, Clone, PartialEq)]
pub struct HeavyHitter<N> {
    /// The name of the key.
    pub name: N,
    /// Tokens a second, over the window. Never an overestimate; an underestimate for a key that
    /// became hot recently.
    pub per_second: f64,
    /// How often it was rejected in the window.
    pub rejected: u64,
}

#[derive(Debug)]
struct CounterSlot<N> {
    key: u64,
    /// The number of the window that the counts are of.
    window: u64,
    /// The tokens of this key, and those of the keys that it evicted: a key has to be used as much
    /// as those to keep.
    rank: Count,
    /// The tokens since the key is tracked.
    admitted: Count,
    rejected: Count,
    name: Option<N>,
}

/// Counts of the present window and of the one before.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    now: u64,
    before: u64,
}

/// A point in time as windows see it.
#[derive(Debug, Clone, Copy)]
struct Moment {
    /// The number of the present window.
    window: u64,
    /// The remainder of the window, in parts of [`PARTS`].
    left: u64,
}

impl Moment {
    fn new(now: Duration) -> Self {
        let (now, window) = (nanos(now), nanos(WINDOW));
        // Not in 128 bits: this is computed for every use.
        Self { window: now / window, left: PARTS - now % window / (window / PARTS) }
    }
}

impl Count {
    fn add(&mut self, count: u64) {
        self.now = self.now.saturating_add(count);
    }

    /// What was counted in the last [`WINDOW`], as if the uses of the window before were spread
    /// evenly.
    fn recent(self, moment: Moment) -> u64 {
        self.now.saturating_add(self.before.saturating_mul(moment.left) / PARTS)
    }

    fn roll(&mut self, windows: u64) {
        let before = if windows == 1 { self.now } else { 0 };
        *self = Self { now: 0, before };
    }
}

impl<N> CounterSlot<N> {
    fn new() -> Self {
        let none = Count::default();
        Self { key: 0, window: 0, rank: none, admitted: none, rejected: none, name: None }
    }

    /// Advances the counts to the present window.
    fn roll(&mut self, moment: Moment) {
        let windows = moment.window.saturating_sub(self.window);
        if windows > 0 {
            self.window = moment.window;
            for count in [&mut self.rank, &mut self.admitted, &mut self.rejected] {
                count.roll(windows);
            }
        }
    }
}

impl<N> CounterSlot<N> {
    fn add(&mut self, usage: Usage, name: impl FnOnce() -> N) {
        match usage {
            Usage::Used(tokens) => {
                self.rank.add(tokens);
                self.admitted.add(tokens);
            }
            Usage::Rejected => {
                self.rank.add(1);
                self.rejected.add(1);
            }
        }
        let uses = self.admitted.now.saturating_add(self.rejected.now);
        if self.name.is_none() && uses >= NAMED_FROM {
            self.name = Some(name());
        }
    }
}

impl<N> Default for HeavyHitters<N> {
    fn default() -> Self {
        let set = || Mutex::new(std::array::from_fn(|_| CounterSlot::new()));
        Self { sets: (0..SETS).map(|_| set()).collect() }
    }
}

impl<N: Clone> HeavyHitters<N> {
    /// Records a use of a key. `name` is called only for keys that are used repeatedly.
    pub fn record(&self, key: u64, usage: Usage, now: Duration, name: impl FnOnce() -> N) {
        // The remainder is below the number of sets, which is not zero.
        let index = usize::try_from(key % SETS as u64).unwrap_or_default();
        let Some(set) = self.sets.get(index) else { return };
        let moment = Moment::new(now);
        let mut set = lock(set);
        if let Some(slot) = set.iter_mut().find(|slot| slot.key == key) {
            slot.roll(moment);
            return slot.add(usage, name);
        }
        set.iter_mut().for_each(|slot| slot.roll(moment));
        if let Some(slot) = set.iter_mut().min_by_key(|slot| slot.rank.recent(moment)) {
            *slot =
                CounterSlot { key, window: moment.window, rank: slot.rank, ..CounterSlot::new() };
            slot.add(usage, name);
        }
    }

    /// The keys that were used most in the last [`WINDOW`], at most `count`, of those that pass
    /// `filter`.
    #[must_use]
    pub fn hottest(
        &self,
        count: usize,
        now: Duration,
        filter: impl Fn(&N) -> bool,
    ) -> Vec<HeavyHitter<N>> {
        let moment = Moment::new(now);
        let mut found = Vec::new();
        for set in &self.sets {
            let mut set = lock(set);
            for slot in set.iter_mut() {
                slot.roll(moment);
                let (admitted, rejected) =
                    (slot.admitted.recent(moment), slot.rejected.recent(moment));
                let Some(name) = slot.name.as_ref().filter(|name| filter(name)) else { continue };
                if admitted + rejected > 0 {
                    found.push((admitted, rejected, name.clone()));
                }
            }
        }
        found.sort_by_key(|(admitted, rejected, _)| Reverse((*admitted, *rejected)));
        found.truncate(count);
        let key = |(admitted, rejected, name)| HeavyHitter {
            name,
            per_second: per_second(admitted),
            rejected,
        };
        found.into_iter().map(key).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn per_second(tokens: u64) -> f64 {
    tokens as f64 / WINDOW.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher as _, RandomState};

    use super::*;

    fn second(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn record(
        hitters: &HeavyHitters<String>,
        hasher: &RandomState,
        name: &str,
        tokens: u64,
        now: Duration,
    ) {
        hitters.record(hasher.hash_one(name), Usage::Used(tokens), now, || name.to_owned());
    }

    fn names(keys: &[HeavyHitter<String>]) -> Vec<&str> {
        keys.iter().map(|key| key.name.as_str()).collect()
    }

    #[test]
    fn finds_the_hottest_keys_among_many_cold_ones() {
        let (hitters, hasher) = (HeavyHitters::default(), RandomState::new());
        for round in 0..10_000_u32 {
            let now = Duration::from_micros(500) * round;
            record(&hitters, &hasher, "hottest", 3, now);
            record(&hitters, &hasher, "hot", 1, now);
            for cold in 0..20 {
                record(&hitters, &hasher, &format!("cold {round} {cold}"), 1, now);
            }
        }

        let found = hitters.hottest(2, second(5), |_| true);

        assert_eq!(names(&found), ["hottest", "hot"]);
        let rates: Vec<f64> = found.iter().map(|key| key.per_second).collect();
        assert_eq!(rates, [3_000.0, 1_000.0], "30,000 and 10,000 within ten seconds");
    }

    #[test]
    fn rates_decay_within_two_windows() {
        let (hitters, hasher) = (HeavyHitters::default(), RandomState::new());
        record(&hitters, &hasher, "old", 1000, second(9));

        let rate = |now| hitters.hottest(1, now, |_| true).first().map(|key| key.per_second);

        assert_eq!(rate(second(9)), Some(100.0));
        assert_eq!(rate(second(15)), Some(50.0));
        assert_eq!(rate(second(20)), None);
        record(&hitters, &hasher, "new", 10, second(21));
        assert_eq!(names(&hitters.hottest(5, second(21), |_| true)), ["new"]);
    }

    #[test]
    fn counts_rejected_operations_and_filters_by_name() {
        let (hitters, hasher) = (HeavyHitters::default(), RandomState::new());
        record(&hitters, &hasher, "mine", 10, second(1));
        record(&hitters, &hasher, "theirs", 20, second(1));
        for _ in 0..7 {
            let key = hasher.hash_one("mine");
            hitters.record(key, Usage::Rejected, second(1), || "mine".to_owned());
        }

        let found = hitters.hottest(10, second(1), |name| name == "mine");

        let mine = HeavyHitter { name: "mine".to_owned(), per_second: 1.0, rejected: 7 };
        assert_eq!(found, [mine]);
    }

    #[test]
    fn a_million_cold_keys_get_no_names() {
        let (hitters, hasher) = (HeavyHitters::default(), RandomState::new());
        for key in 0..1_000_000_u32 {
            let named = || panic!("a cold key was named");
            hitters.record(hasher.hash_one(key), Usage::Used(1), second(1), named);
        }

        assert_eq!(hitters.hottest(10, second(1), |_: &String| true), []);
        let slots = SETS * size_of::<Mutex<[CounterSlot<String>; SET_SLOTS]>>();
        assert!(slots <= 128 * 1024, "{slots} bytes");
    }

    #[test]
    fn a_rate_is_never_above_the_use() {
        // Nine keys of one set, which holds eight: each evicts another one.
        let hitters = HeavyHitters::default();
        for round in 0..100_u64 {
            for key in 1..=9_u64 {
                let name = || key.to_string();
                hitters.record(key * SETS as u64, Usage::Used(8), second(round % 10), name);
            }
        }

        for key in hitters.hottest(9, second(9), |_| true) {
            assert!(key.per_second <= 80.0, "{key:?}");
        }
    }
}
