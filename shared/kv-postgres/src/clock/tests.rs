use trestle_model::time::ManualClock;

use super::*;

const NOW: Ticks = match Ticks::new(639_000_000_000_000_000) {
    Some(now) => now,
    None => Ticks::MIN,
};

/// The clock of a server whose floor says nothing.
fn read(now: Ticks) -> ServerTime {
    ServerTime { now, floor: Ticks::MIN }
}

fn store(floor: Ticks) -> StoreRow {
    StoreRow { floor, checkpoint: None }
}

#[test]
fn versions_start_after_the_floor_which_is_waited_for_if_it_is_near() {
    let second = Duration::from_secs(1);
    let wait = |floor| wait_for_floor(&store(floor), NOW);
    assert_eq!([wait(NOW), wait(NOW.after(10 * second))], [None; 2]);
    assert_eq!(wait(NOW.after(second / 2)), Some(second / 2));
    for (floor, first) in [
        (Ticks::MIN, NOW),
        (NOW.before(second), NOW),
        (NOW.after(second), NOW.after(second)),
        (NOW.after(10 * second), NOW.after(10 * second)),
    ] {
        let clock = EngineClock::open(&store(floor), NOW, None);
        assert_eq!(clock.versions().versions.newest(), first, "{floor:?}");
    }
    let given = Arc::new(ManualClock::new(NOW));
    let clock = EngineClock::open(&store(NOW.after(second)), NOW, Some(given));
    assert_eq!(clock.versions().versions.newest(), NOW.after(second), "a clock of tests stands");
}

#[test]
fn the_time_of_a_transaction_is_that_of_the_server_and_steps_are_followed_slowly() {
    let clock = EngineClock::open(&store(Ticks::MIN), NOW, None);
    let later = NOW.after(Duration::from_millis(500));
    assert_eq!(clock.time_of(read(later)), later);

    let hour = Duration::from_secs(3_600);
    let ahead = clock.time_of(read(later.after(hour)));
    assert!(ahead < later.after(Duration::from_secs(60)), "{ahead:?}");
    let back = clock.time_of(read(NOW.before(hour)));
    assert!(back >= NOW, "{back:?}");
}

#[test]
fn the_time_of_a_process_that_stood_still_is_that_of_the_others_at_once() {
    let clock = EngineClock::open(&store(Ticks::MIN), NOW, None);
    let (hour, second) = (Duration::from_secs(3_600), Duration::from_secs(1));
    // The others went on for an hour, by the clock of the server.
    let later = NOW.after(hour);
    let time = clock.time_of(ServerTime { now: later, floor: later.after(second / 2) });
    assert_eq!(time, later);
    assert!(clock.now() >= later.before(second), "{:?}", clock.now());

    // The clock of the server stepped, which they do not follow.
    let stepped = clock.time_of(ServerTime { now: later.after(hour), floor: later.after(second) });
    assert!(stepped < later.after(60 * second), "{stepped:?}");
}

#[test]
fn the_estimate_is_never_ahead_of_the_server_for_long() {
    let server = ServerClock { offset: AtomicI64::new(offset(NOW)) };
    let before = server.now();
    assert!(before >= NOW);

    for _ in 0..200 {
        server.measure(NOW.before(Duration::from_secs(1)));
    }
    assert!(server.now() < NOW, "{:?}", server.now());
    let ahead = NOW.after(Duration::from_secs(9));
    server.measure(ahead);
    assert!(server.now() >= ahead);
}

#[test]
fn a_floor_is_stored_once_versions_pass_it() {
    let clock = EngineClock::open(&store(Ticks::MIN), NOW, Some(Arc::new(ManualClock::new(NOW))));
    clock.versions().raise(NOW);

    let new = clock.new_floor().unwrap().floor;
    assert_eq!(new, NOW.plus(LEAD));
    assert!(clock.new_floor().is_some(), "until it is stored");
    clock.stored(new);
    assert!(clock.new_floor().is_none());
    clock.versions().raise(NOW.before(Duration::from_secs(1)));
    assert_eq!(clock.versions().versions.newest(), NOW, "versions never fall");
}

#[test]
fn one_group_raises_the_floor_before_versions_pass_it_and_the_others_need_not() {
    let at = |time| {
        let clock =
            EngineClock::open(&store(Ticks::MIN), NOW, Some(Arc::new(ManualClock::new(time))));
        clock.versions().raise(time);
        clock.stored(NOW.plus(LEAD));
        clock
    };
    assert!(at(NOW.plus(LEAD / 2)).new_floor().is_none(), "it is far");

    let clock = at(NOW.plus(LEAD / 2 + 1));
    let early = clock.new_floor().unwrap().floor;
    assert!(clock.new_floor().is_none(), "another group raises it");
    // That one is not stored in time.
    clock.versions().raise(NOW.plus(LEAD + 2));
    assert!(clock.new_floor().is_some() && clock.new_floor().is_some());

    clock.stored(early);
    assert!(clock.new_floor().is_some(), "half a lead before the next");
    assert!(clock.new_floor().is_none());
}
