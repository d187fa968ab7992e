//! Intervals against a model: the set of the texts, or of the keys, that they contain.

use proptest::prelude::*;

use super::*;

/// Every text of up to two of these characters. The last two are in one order as UTF-8 and in the other as UTF-16.
fn texts() -> Vec<String> {
    let parts = ["", "a", "b", "\u{fffd}", "\u{10000}"];
    let mut texts: Vec<String> =
        parts.iter().flat_map(|a| parts.iter().map(move |b| format!("{a}{b}"))).collect();
    texts.sort();
    texts.dedup();
    texts
}

fn keys() -> Vec<(String, String)> {
    let texts = texts();
    let of = |partition: String| texts.iter().map(move |row| (partition.clone(), row.clone()));
    texts.clone().into_iter().flat_map(of).collect()
}

fn satisfies(operator: Operator, order: Ordering) -> bool {
    match operator {
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
    }
}

/// Whether a text is between the cuts.
fn has(interval: &TextInterval, text: &str) -> bool {
    interval.start <= Cut::before(text) && Cut::after(text) <= interval.end
}

/// Whether a key is between the cuts.
fn has_key(interval: &KeyInterval, (partition, row): &(String, String)) -> bool {
    let (before, after) =
        (KeyCut::new(partition, Cut::before(row)), KeyCut::new(partition, Cut::after(row)));
    interval.start <= before && interval.end.as_ref().is_none_or(|end| after <= *end)
}

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(texts())
}

fn cut() -> impl Strategy<Value = Cut> {
    prop_oneof![
        Just(Cut::First),
        text().prop_map(|text| Cut::before(&text)),
        text().prop_map(|text| Cut::after(&text)),
        Just(Cut::Last),
    ]
}

fn interval() -> impl Strategy<Value = TextInterval> {
    (cut(), cut()).prop_map(|(start, end)| TextInterval { start, end })
}

fn key_cut() -> impl Strategy<Value = KeyCut> {
    (text(), cut()).prop_map(|(partition, row)| KeyCut { partition, row })
}

fn key_interval() -> impl Strategy<Value = KeyInterval> {
    (key_cut(), prop::option::of(key_cut())).prop_map(|(start, end)| KeyInterval { start, end })
}

#[test]
fn the_empty_text_is_the_first_one() {
    assert_eq!(Cut::before(""), Cut::First);
    assert!(Cut::First < Cut::after(""));
    assert!(has(&TextInterval::ALL, ""));
    let none = TextInterval::of(Operator::Less, "").expect("an interval");
    assert!(none.is_empty(), "nothing is before it: {none:?}");
}

#[test]
fn a_comparison_is_the_interval_of_the_texts_that_satisfy_it() {
    for operator in Operator::ALL {
        for text in texts() {
            let Some(interval) = TextInterval::of(operator, &text) else {
                assert_eq!(operator, Operator::NotEqual);
                continue;
            };
            for other in texts() {
                let expected = satisfies(operator, compare_text(&other, &text));
                assert_eq!(has(&interval, &other), expected, "{other:?} {operator:?} {text:?}");
            }
        }
    }
}

#[test]
fn a_comparison_of_partition_keys_is_the_interval_of_their_keys() {
    let keys = keys();
    for operator in Operator::ALL {
        for text in texts() {
            let Some(interval) = KeyInterval::of(operator, &text) else {
                assert_eq!(operator, Operator::NotEqual);
                continue;
            };
            for key in &keys {
                let expected = satisfies(operator, compare_text(&key.0, &text));
                assert_eq!(has_key(&interval, key), expected, "{key:?} {operator:?} {text:?}");
            }
        }
    }
}

#[test]
fn a_grant_without_row_keys_has_whole_partitions() {
    let of = |start: [Option<&str>; 2], end: [Option<&str>; 2]| {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        KeyInterval::granted(&KeyRange {
            start_partition_key: owned(start[0]),
            start_row_key: owned(start[1]),
            end_partition_key: owned(end[0]),
            end_row_key: owned(end[1]),
        })
    };
    let key = |partition: &str, row: &str| (partition.to_owned(), row.to_owned());

    assert_eq!(of([None; 2], [None; 2]), KeyInterval::all());
    let partitions = of([Some("a"), None], [Some("b"), None]);
    assert!(has_key(&partitions, &key("a", "")) && has_key(&partitions, &key("b", "zz")));
    assert!(!has_key(&partitions, &key("", "z")) && !has_key(&partitions, &key("ba", "")));
    let rows = of([Some("a"), Some("m")], [Some("a"), Some("n")]);
    assert!(has_key(&rows, &key("a", "m")) && has_key(&rows, &key("a", "n")));
    assert!(!has_key(&rows, &key("a", "l")) && !has_key(&rows, &key("a", "na")));
    assert!(rows.one_partition().is_some() && partitions.one_partition().is_none());
}

proptest! {
    #[test]
    fn operations_on_intervals_are_those_on_sets(a in interval(), b in interval()) {
        let (both, hull) = (a.clone().intersection(b.clone()), a.clone().hull(b.clone()));
        let is_union = a.touches(&b) && !a.is_empty() && !b.is_empty();
        for text in texts() {
            let (in_a, in_b) = (has(&a, &text), has(&b, &text));
            prop_assert_eq!(has(&both, &text), in_a && in_b, "{:?}", text);
            prop_assert!(has(&hull, &text) || !(in_a || in_b), "{:?}", text);
            prop_assert!(!is_union || has(&hull, &text) == (in_a || in_b), "{:?}", text);
            prop_assert!(!a.contains(&b) || in_a || !in_b, "{:?}", text);
            prop_assert!(!a.is_empty() || !in_a, "{:?}", text);
        }
        prop_assert!(hull.contains(&a) && hull.contains(&b));
        prop_assert!(a.contains(&both) && b.contains(&both));
    }

    #[test]
    fn operations_on_intervals_of_keys_are_those_on_sets(a in key_interval(), b in key_interval()) {
        let (both, hull) = (a.clone().intersection(b.clone()), a.clone().hull(b.clone()));
        let is_union = a.touches(&b) && !a.is_empty() && !b.is_empty();
        for key in keys() {
            let (in_a, in_b) = (has_key(&a, &key), has_key(&b, &key));
            prop_assert_eq!(has_key(&both, &key), in_a && in_b, "{:?}", key);
            prop_assert!(has_key(&hull, &key) || !(in_a || in_b), "{:?}", key);
            prop_assert!(!is_union || has_key(&hull, &key) == (in_a || in_b), "{:?}", key);
            prop_assert!(!a.contains(&b) || in_a || !in_b, "{:?}", key);
            prop_assert!(!a.is_empty() || !in_a, "{:?}", key);
        }
        prop_assert!(hull.contains(&a) && hull.contains(&b));
    }

    /// What is scanned for a range of row keys has every such key, and no key outside the interval.
    #[test]
    fn rows_shrink_an_interval_and_lose_no_key(keys_in in key_interval(), rows in interval()) {
        let shrunk = keys_in.clone().with_rows(&rows);
        for key in keys() {
            let is_in = has_key(&keys_in, &key);
            if is_in && has(&rows, &key.1) && !rows.is_empty() {
                prop_assert!(has_key(&shrunk, &key), "lost: {:?} of {:?}", key, shrunk);
            }
            prop_assert!(is_in || !has_key(&shrunk, &key), "added: {:?} by {:?}", key, shrunk);
            // The first and the last partition are left out where none of their rows can match.
            let is_first = key.0 == keys_in.start.partition;
            let is_past = keys_in.start.row >= rows.end || rows.is_empty();
            prop_assert!(!(is_first && is_past && has_key(&shrunk, &key)), "first: {:?}", key);
            let end = keys_in.end.as_ref().filter(|end| end.partition == key.0);
            let is_ahead = end.is_some_and(|end| end.row <= rows.start);
            prop_assert!(!(is_ahead && has_key(&shrunk, &key)), "last: {:?}", key);
        }
    }

    /// The ends of what is scanned are keys with such rows: nothing is read in vain before the first or behind the
    /// last partition.
    #[test]
    fn an_interval_of_one_partition_shrinks_to_its_rows(partition in text(), rows in interval()) {
        let one = KeyInterval::of(Operator::Equal, &partition).expect("an interval");
        let shrunk = one.with_rows(&rows);
        for key in keys() {
            let expected = key.0 == partition && has(&rows, &key.1);
            prop_assert_eq!(has_key(&shrunk, &key), expected, "{:?} of {:?}", key, shrunk);
        }
        if !shrunk.is_empty() {
            let (found, within) = shrunk.one_partition().expect("one partition");
            prop_assert_eq!((found, &within), (partition.as_str(), &rows));
        }
    }

    #[test]
    fn an_interval_of_every_partition_has_the_keys_of_each(any in key_interval()) {
        let later = texts().into_iter().filter(|partition| !partition.is_empty());
        let mut keys = later.map(|partition| (partition, String::new()));
        prop_assert!(!any.has_every_partition() || keys.all(|key| has_key(&any, &key)), "{:?}", any);
        let whole = KeyInterval { end: None, ..any };
        let starts_early = whole.start < KeyCut::new("", Cut::Last);
        prop_assert_eq!(whole.has_every_partition(), starts_early, "{:?}", whole);
    }
}
