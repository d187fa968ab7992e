//! Tests of the names of past states for any time: they come back, and sort as the times do.

use proptest::prelude::*;

use super::*;

fn time() -> impl Strategy<Value = Ticks> {
    (0..=Ticks::MAX.get()).prop_map(|ticks| Ticks::new(ticks).expect("in range"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_time_has_one_name_and_comes_back(at in time()) {
        let text = name(at);
        prop_assert_eq!(text.len(), 28);
        prop_assert_eq!(parse(&text), Some(at), "{}", text);
    }

    #[test]
    fn names_sort_as_times(one in time(), other in time(), ticks in 0_u64..20_000_000) {
        for other in [other, one.plus(ticks)] {
            prop_assert_eq!(name(one).cmp(&name(other)), one.cmp(&other));
        }
    }

    #[test]
    fn a_text_that_is_accepted_is_the_name_of_its_time(
        day in "(0001|2019|9999)-[01][0-9]-[0-3][0-9]",
        time in "[Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9][.,][0-9]{6,8}(Z|z|\\+00:00)",
    ) {
        let text = day + &time;
        if let Some(at) = parse(&text) {
            prop_assert_eq!(name(at), text);
        }
    }
}
