//! Tests of the module.

use std::{cell::Cell, collections::BTreeSet};

use super::*;

struct Known {
    keys: BTreeSet<String>,
    queries: Cell<usize>,
}

impl KeySource for Known {
    async fn first_from(&self, text: &str) -> Result<Option<String>, CliError> {
        self.queries.set(self.queries.get() + 1);
        Ok(self.keys.range(text.to_owned()..).next().cloned())
    }
}

/// Bounds for a table with these keys, and how many keys lie in each range.
async fn divided(keys: impl IntoIterator<Item = String>) -> (Vec<String>, Vec<usize>) {
    let known = Known { keys: keys.into_iter().collect(), queries: Cell::new(0) };
    let bounds = bounds(&known).await.unwrap();
    assert!(known.queries.get() <= QUERIES_MAX, "{}", known.queries.get());
    assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
    let mut counts = vec![0; bounds.len() + 1];
    for key in &known.keys {
        counts[bounds.partition_point(|bound| bound <= key)] += 1;
    }
    (bounds, counts)
}

#[tokio::test]
async fn keys_of_every_usual_kind_are_divided_into_nonempty_ranges() {
    let hex = (0..4096).map(|n| format!("{:08x}", n * 1_048_573_u32));
    let numbered = (0..5000).map(|n| format!("customer-{n:06}"));
    let days = (1..=365).map(|n| format!("2026-{:02}-{:02}", n % 12 + 1, n % 28 + 1));
    let words = ["ant", "Bee", "cat", "dog", "eel", "fox"].map(str::to_owned);
    for (counts, least) in [
        (divided(hex).await.1, 8),
        (divided(numbered).await.1, 5),
        (divided(days).await.1, 4),
        (divided(words).await.1, 6),
    ] {
        assert!(counts.len() >= least && counts.iter().all(|count| *count > 0), "{counts:?}");
    }
}

#[tokio::test]
async fn an_indivisible_table_is_one_range() {
    for keys in [vec!["p"], vec![""], vec!["it's"], vec!["é1", "é2"]] {
        let (bounds, counts) = divided(keys.into_iter().map(str::to_owned)).await;
        assert_eq!((bounds.len(), counts.len()), (0, 1));
    }
}

#[tokio::test]
async fn keys_with_other_characters_fall_between_the_bounds() {
    let keys = ["", " a", "a", "a b", "a'", "a/", "b~", "c", "d", "é", "\u{1F600}"];
    let (bounds, counts) = divided(keys.into_iter().map(str::to_owned)).await;
    assert_eq!(bounds, ["b", "c", "d"]);
    assert_eq!(counts.iter().sum::<usize>(), keys.len());
}
