//! Tests of etags of any version: the text matches its version and no other.

use proptest::prelude::*;

use super::*;

fn etag() -> impl Strategy<Value = ETag> {
    (0..=Ticks::MAX.get()).prop_map(|ticks| ETag(Ticks::new(ticks).expect("in range")))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn an_etag_comes_back_from_its_text_with_and_without_quotes(etag in etag()) {
        let quoted = etag.quoted();
        for text in [quoted.as_str(), quoted.trim_matches('"')] {
            let pattern = ETagPattern::parse(text);
            prop_assert_eq!(pattern, Some(ETagPattern::One(etag)));
            prop_assert_eq!(pattern.map(|it| it.to_string()), Some(quoted.clone()));
        }
    }

    #[test]
    fn an_etag_of_one_version_does_not_match_another(etag in etag(), ticks in 1_u64..1000) {
        let other = ETag(etag.0.plus(ticks));
        prop_assume!(other != etag);
        let pattern = ETagPattern::parse(&etag.quoted()).expect("an etag");
        prop_assert!(etag.matches(&pattern) && !other.matches(&pattern));
    }

    #[test]
    fn a_text_with_one_more_or_one_other_character_is_no_text_of_the_etag(
        etag in etag(),
        at in 0_usize..20,
        character in prop::sample::select(vec!['"', '0', 'x', '+', ' ', 'A', 'a', '*']),
    ) {
        let quoted = etag.quoted();
        let mut changed: Vec<char> = quoted.chars().collect();
        changed.insert(at.min(changed.len()), character);
        let changed: String = changed.into_iter().collect();
        prop_assert_ne!(ETagPattern::parse(&changed), Some(ETagPattern::One(etag)), "{}", changed);
    }
}
