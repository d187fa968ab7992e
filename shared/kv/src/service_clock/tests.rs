//! Tests of service time: a model of the machine's clocks, and the rules that hold whatever they do.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use proptest::prelude::*;

use super::*;
use trestle_model::time::ManualClock;

const SECOND: u64 = 10_000_000;
const HOUR: u64 = 3600 * SECOND;

fn at(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

fn start() -> Ticks {
    at(639_000_000_000_000_000)
}

fn hours(hours: u64) -> Duration {
    Duration::from_secs(3600 * hours)
}

fn clocks() -> (Arc<ManualClock>, ServiceClock) {
    let manual = Arc::new(ManualClock::new(start()));
    let clock = ServiceClock::after(Ticks::MIN, None, Arc::clone(&manual) as _);
    (manual, clock)
}

/// A restart of the process, with the newest version that was given before.
fn restart(manual: &Arc<ManualClock>, clock: &ServiceClock) -> ServiceClock {
    ServiceClock::after(clock.now(), clock.checkpoint(), Arc::clone(manual) as _)
}

#[test]
fn agrees_with_a_wall_clock_that_does_not_step() {
    let (manual, clock) = clocks();
    for _ in 0..100 {
        manual.advance(Duration::from_micros(777));
        assert_eq!(clock.now(), manual.now());
    }
    assert_eq!(clock.offset_ms(), 0);
}

/// Clocks whose reader is stopped after each of its first readings of the wall clock.
struct StoppedReader {
    clocks: ManualClock,
    stops: AtomicU64,
}

impl Clock for StoppedReader {
    fn now(&self) -> Ticks {
        let now = self.clocks.now();
        let left = self.stops.load(SeqCst);
        if left > 0 {
            self.stops.store(left - 1, SeqCst);
            self.clocks.advance(Duration::from_millis(100 * left));
        }
        now
    }

    fn elapsed(&self) -> Duration {
        self.clocks.elapsed()
    }

    fn boot_id(&self) -> Option<u128> {
        self.clocks.boot_id()
    }
}

#[test]
fn a_start_that_is_stopped_between_the_two_clocks_is_not_behind() {
    for (stops, behind_ms) in [(1, 0), (7, 0), (1000, 90_100)] {
        let clocks = ManualClock::new(start());
        let reader = Arc::new(StoppedReader { clocks, stops: stops.into() });
        let clock = ServiceClock::after(Ticks::MIN, None, Arc::clone(&reader) as _);
        reader.stops.store(0, SeqCst);
        let behind = reader.now().since(clock.now());
        assert!(behind <= Duration::from_millis(behind_ms), "{stops}: {behind:?}");
    }
}

#[test]
fn an_hour_back_for_a_second_and_forward_again_leaves_no_error() {
    for step in [-3600, 3600] {
        let (manual, clock) = clocks();
        let before = clock.now();
        let stepped = before.get().cast_signed() + step * SECOND.cast_signed();
        manual.set(at(stepped.cast_unsigned()));
        for _ in 0..100 {
            manual.advance(Duration::from_millis(10));
            clock.now();
        }
        manual.set(before.after(Duration::from_secs(1)));
        let error = clock.now().get().abs_diff(manual.now().get());
        assert!(error <= SECOND / 20, "{error} ticks");
        manual.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), manual.now());
    }
}

#[test]
fn an_hour_of_error_that_remains_is_corrected_after_twenty() {
    for forward in [true, false] {
        let (manual, clock) = clocks();
        let now = manual.now();
        manual.set(if forward { now.after(hours(1)) } else { now.before(hours(1)) });
        manual.advance(hours(19));
        assert_ne!(clock.now(), manual.now(), "{forward}");
        manual.advance(hours(1));
        assert_eq!(clock.now(), manual.now(), "{forward}");
    }
}

#[test]
fn frequent_readings_slew_as_much_as_rare_ones() {
    let (manual, clock) = clocks();
    manual.set(manual.now().after(hours(1)));
    for _ in 0..200 {
        manual.advance(Duration::from_nanos(700));
        clock.now();
    }
    assert_eq!(clock.now(), start().plus(7 * 200 + 7 * 200 / 20));
}

#[test]
fn restart_within_a_boot_counts_the_time_that_elapsed_however_the_wall_clock_was_set() {
    for step in [-2 * HOUR.cast_signed(), 0, 2 * HOUR.cast_signed()] {
        let (manual, clock) = clocks();
        manual.advance(hours(1));
        let restarted = {
            let (floor, checkpoint) = (clock.now().plus(SECOND), clock.checkpoint());
            manual.advance(hours(1));
            manual.set(at((manual.now().get().cast_signed() + step).cast_unsigned()));
            ServiceClock::after(floor, checkpoint, Arc::clone(&manual) as _)
        };
        assert_eq!(restarted.now(), start().after(hours(2)), "{step}");
    }
}

#[test]
fn restart_after_another_boot_takes_the_wall_clock_but_never_goes_back() {
    let (manual, clock) = clocks();
    manual.advance(hours(10));
    let (floor, checkpoint) = (clock.now(), clock.checkpoint());
    manual.reboot();
    manual.set(floor.after(hours(5)));
    let later = ServiceClock::after(floor, checkpoint, Arc::clone(&manual) as _);
    assert_eq!(later.now(), floor.after(hours(5)), "it was down for five hours");
    // More has elapsed in this boot than in the one of the checkpoint: only the id distinguishes them.
    manual.advance(hours(11));
    manual.set(floor.before(hours(5)));
    let back = ServiceClock::after(floor, checkpoint, Arc::clone(&manual) as _);
    assert_eq!(back.now(), floor);
    manual.advance(hours(100));
    assert_eq!(back.now(), manual.now(), "and comes back to it");
}

#[test]
fn restart_within_a_boot_is_not_ahead_of_what_elapsed_whatever_the_floor_is() {
    let (manual, clock) = clocks();
    let checkpoint = clock.checkpoint();
    manual.advance(Duration::from_millis(900));
    let floor = start().plus(SECOND);
    let restarted = ServiceClock::after(floor, checkpoint, Arc::clone(&manual) as _);
    assert_eq!(restarted.now(), clock.now());
}

#[test]
fn restart_is_at_most_a_twentieth_behind_what_was_given_after_the_note() {
    let (manual, clock) = clocks();
    manual.set(manual.now().after(hours(100)));
    let checkpoint = clock.checkpoint();
    // It slews forward.
    manual.advance(Duration::from_millis(900));
    let newest = clock.now();
    let restarted = ServiceClock::after(newest, checkpoint, Arc::clone(&manual) as _);
    let behind = newest.since(restarted.now());
    assert!(behind <= Duration::from_millis(900) / 20, "{behind:?}");
}

#[test]
fn distance_is_reported_once_and_not_at_its_edge() {
    let ms = |ms: i64| ms * PER_MS;
    let mut distance = Distance::Near;
    let mut reported = Vec::new();
    for offset in [0, 1_999, 2_001, 5_000, 1_500, 2_500, -2_500, -900, 1_500, -1_900] {
        let next = distance.after(ms(offset));
        if next != distance {
            reported.push((offset, next));
        }
        distance = next;
    }
    assert_eq!(reported, [(2_001, Distance::Far), (-900, Distance::Near)]);
}

/// What happens to a machine.
#[derive(Debug, Clone)]
enum Event {
    Pass(u64),
    Step(i64),
    Restart,
    Reboot,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..=2 * HOUR).prop_map(Event::Pass),
        3 => (0..=100_u64).prop_map(Event::Pass),
        3 => (-24 * HOUR.cast_signed()..=24 * HOUR.cast_signed()).prop_map(Event::Step),
        1 => Just(Event::Restart),
        1 => Just(Event::Reboot),
    ]
}

proptest! {
    #[test]
    fn service_time_rises_at_a_bounded_rate_and_converges(events in prop::collection::vec(event(), 1..80)) {
        let (manual, mut clock) = clocks();
        let mut last = clock.now();
        for event in events {
            let mut elapsed = Some(0);
            match event {
                Event::Pass(ticks) => {
                    manual.advance(Duration::from_nanos(ticks * 100));
                    elapsed = Some(ticks);
                }
                Event::Step(by) => {
                    let wall = manual.now().get().cast_signed() + by;
                    manual.set(at(wall.cast_unsigned()));
                }
                Event::Restart => clock = restart(&manual, &clock),
                Event::Reboot => {
                    manual.reboot();
                    clock = restart(&manual, &clock);
                    elapsed = None;
                    prop_assert!(clock.now() >= manual.now());
                }
            }
            let now = clock.now();
            prop_assert!(now >= last, "back from {last:?} to {now:?}");
            if let Some(elapsed) = elapsed {
                let error = (now.get() - last.get()).abs_diff(elapsed);
                prop_assert!(error <= elapsed / SLEW_SHARE + 1, "{error} of {elapsed}");
            }
            prop_assert_eq!(clock.offset_ms(), (now.get().cast_signed() - manual.now().get().cast_signed()) / PER_MS);
            last = now;
        }
        let error = last.get().abs_diff(manual.now().get());
        manual.advance(Duration::from_nanos(100 * SLEW_SHARE * (error + 1)));
        prop_assert_eq!(clock.now(), manual.now());
    }
}
