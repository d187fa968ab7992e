use super::*;

#[test]
fn unix_times_convert_both_ways_at_the_edges_of_the_calendar() {
    for (seconds, nanos) in [(-62_135_596_800, 0), (0, 100), (253_402_300_799, 999_999_900)] {
        let ticks = Ticks::from_unix(seconds, nanos).expect("in range");
        assert_eq!(ticks.to_unix(), (seconds, nanos));
    }
    assert_eq!(Ticks::from_unix(253_402_300_799, 999_999_900), Some(Ticks::MAX));
    assert_eq!(Ticks::from_unix(253_402_300_800, 0), None, "year 10000");
    assert_eq!(Ticks::from_unix(-62_135_596_801, 0), None, "year 0");
    assert_eq!(Ticks::from_unix(0, 50), None, "between two ticks");
    assert_eq!(Ticks::from_unix(0, -100), None, "negative nanoseconds");
}
