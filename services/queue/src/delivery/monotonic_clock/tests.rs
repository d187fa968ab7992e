//! Tests of the monotonic clock.

use std::time::Duration;

use proptest::prelude::*;
use trestle_service::clock::ManualClock;

use super::*;

fn at(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

#[test]
fn continues_from_its_last_value_when_the_system_clock_steps_back() {
    let manual = Arc::new(ManualClock::new(at(1_000_000)));
    let clock = MonotonicClock::new(manual.clone());

    manual.set(at(400_000));
    assert_eq!(clock.now(), at(1_000_000));
    manual.advance(Duration::from_millis(16));
    assert_eq!(clock.now(), at(1_150_000), "15 of 16 milliseconds passed");
    manual.set(at(1_300_000));
    assert!(clock.now() >= at(1_300_000));
}

#[test]
fn opening_a_queue_raises_the_clock_to_its_cursor() {
    let clock = MonotonicClock::new(Arc::new(ManualClock::new(at(100))));

    clock.raise(at(5000));
    assert_eq!(clock.now(), at(5000));
    clock.raise(at(50));
    assert_eq!(clock.now(), at(5000));
}

proptest! {
    #[test]
    fn it_never_goes_back_and_is_never_behind(times in proptest::collection::vec(0..10_000_u64, 1..50)) {
        let manual = Arc::new(ManualClock::new(at(5000)));
        let clock = MonotonicClock::new(manual.clone());
        let mut last = clock.now();
        for time in times {
            manual.set(at(time));
            let now = clock.now();
            prop_assert!(now >= last && now >= at(time));
            last = now;
        }
    }
}
