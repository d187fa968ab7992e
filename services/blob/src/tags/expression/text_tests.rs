//! Tests of expressions on tags as texts: any expression that is written out is parsed as itself.

use proptest::prelude::*;

use super::*;

const COMPARATORS: [(Comparator, &str); 6] = [
    (Comparator::Equal, "="),
    (Comparator::NotEqual, "<>"),
    (Comparator::Greater, ">"),
    (Comparator::GreaterOrEqual, ">="),
    (Comparator::Less, "<"),
    (Comparator::LessOrEqual, "<="),
];

fn comparison(comparators: &'static [(Comparator, &str)]) -> impl Strategy<Value = TagComparison> {
    let comparator = prop::sample::select(comparators).prop_map(|(comparator, _)| comparator);
    let (key, value) = ("[a-zA-Z0-9 +./:=_-]{1,6}", "[a-zA-Z0-9 +./:=_$-]{0,6}");
    (key, comparator, value).prop_map(|(key, comparator, value)| TagComparison {
        key,
        comparator,
        value,
    })
}

fn condition() -> impl Strategy<Value = TagCondition> {
    let leaf = comparison(&COMPARATORS).prop_map(TagCondition::Compare);
    leaf.prop_recursive(4, 24, 4, |inner| {
        let parts = prop::collection::vec(inner, 2..4);
        (any::<bool>(), parts).prop_map(|(is_all, parts)| match is_all {
            true => TagCondition::All(parts),
            false => TagCondition::Any(parts),
        })
    })
}

/// The comparison with its tokens separated by `space`.
fn compared(comparison: &TagComparison, space: &str) -> String {
    let TagComparison { key, comparator, value } = comparison;
    let symbol = COMPARATORS.iter().find(|(it, _)| it == comparator).expect("listed").1;
    format!("\"{key}\"{space}{symbol}{space}'{value}'")
}

/// The condition with parentheses around every part that has parts.
fn written(condition: &TagCondition, space: &str, keywords: [&str; 2]) -> String {
    let (parts, keyword) = match condition {
        TagCondition::Compare(comparison) => return compared(comparison, space),
        TagCondition::All(parts) => (parts, keywords[0]),
        TagCondition::Any(parts) => (parts, keywords[1]),
    };
    let part = |part: &TagCondition| match part {
        TagCondition::Compare(comparison) => compared(comparison, space),
        _ => format!("({space}{}{space})", written(part, space, keywords)),
    };
    let parts: Vec<_> = parts.iter().map(part).collect();
    parts.join(&format!("{space}{keyword}{space}"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_condition_that_is_written_out_is_parsed_as_itself(
        condition in condition(),
        space in prop::sample::select(vec!["", " ", "\t", "\r\n  "]),
        keywords in prop::sample::select(vec![["AND", "OR"], ["and", "or"], ["aNd", "Or"]]),
    ) {
        let text = written(&condition, space, keywords);
        prop_assume!(text.len() <= EXPRESSION_BYTES_MAX);
        prop_assert_eq!(TagCondition::parse(&text), Ok(condition), "{}", text);
    }

    #[test]
    fn a_filter_that_is_written_out_is_parsed_as_itself(
        first in prop::collection::vec(comparison(&COMPARATORS[2..]), 0..3),
        container in prop::option::of("[a-z0-9$]{3,8}"),
        last in prop::collection::vec(comparison(&COMPARATORS[..1]), 1..3),
    ) {
        let named = container.iter().map(|container| format!("@container='{container}'"));
        let before = first.iter().map(|it| compared(it, " "));
        let parts: Vec<_> =
            before.chain(named).chain(last.iter().map(|it| compared(it, ""))).collect();
        let comparisons = [first, last].concat();
        let filter = TagFilter { container, comparisons };
        prop_assert_eq!(TagFilter::parse(&parts.join(" AND ")), Ok(filter));
    }

    #[test]
    fn comparators_agree_with_each_other_and_reject_an_absent_tag(
        key in "[a-z]{1,4}",
        found in "[a-c]{0,3}",
        value in "[a-c]{0,3}",
    ) {
        let tags = [(key.clone(), found)];
        let holds = |comparator| {
            let comparison = TagComparison { key: key.clone(), comparator, value: value.clone() };
            assert!(!comparison.holds(&[]), "there is no tag");
            comparison.holds(&tags)
        };
        let [equal, differs, greater, not_less, less, not_greater] =
            COMPARATORS.map(|(comparator, _)| holds(comparator));
        let order = [equal, greater, less].into_iter().filter(|it| *it).count();
        prop_assert_eq!(order, 1, "one of = > < is true");
        prop_assert_eq!(differs, !equal);
        prop_assert_eq!(not_less, greater || equal);
        prop_assert_eq!(not_greater, less || equal);
    }
}
