use super::*;

fn ticks(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

#[test]
fn versions_rise_past_the_writes_before_them_even_when_the_clock_steps_back() {
    let mut versions = Versions::after(ticks(10));
    let mut give = |now, writes| {
        let version = versions.next(ticks(now)).expect("in range");
        versions.leave_room(writes);
        version.ticks().get()
    };

    assert_eq!(give(1_000, 1), 1_000);
    assert_eq!(give(1_000, 100), 1_002);
    assert_eq!(give(5, 0), 1_103, "1,002 and a hundred more are in use");
    assert_eq!(give(5, 0), 1_104);
    assert_eq!(give(5_000, 0), 5_000);
}

#[test]
fn versions_end_with_the_calendar() {
    let mut versions = Versions::after(ticks(Ticks::MAX.get() - 1));

    assert_eq!(versions.next(ticks(0)).expect("the last").ticks(), Ticks::MAX);
    assert!(matches!(versions.next(ticks(0)), Err(CommitError::Rejected { .. })));
}
