//! Range, scope and residual of filters.

use super::*;

fn plan(text: &str) -> QueryPlan {
    QueryPlan::new(Filter::parse(text).unwrap().as_ref())
}

/// The range in short: `[a,b` starts with row b of a and `(a,b` after it; `a,*` is all of a.
fn range(plan: &QueryPlan) -> String {
    let Some(range) = &plan.range else {
        return "empty".to_owned();
    };
    let text = |bound: &KeyBound| {
        format!("{},{}", bound.partition_key, bound.row_key.as_deref().unwrap_or("*"))
    };
    let start = range.start.as_ref().map_or("..".to_owned(), |bound| {
        format!("{}{}", if bound.inclusive { "[" } else { "(" }, text(bound))
    });
    let end = range.end.as_ref().map_or("..".to_owned(), |bound| {
        format!("{}{}", text(bound), if bound.inclusive { "]" } else { ")" })
    });
    format!("{start} {end}")
}

/// Filter, scope, range, residual.
fn assert_plans(table: &[(&str, QueryScope, &str, &str)]) {
    for (text, scope, expected, residual) in table {
        let plan = plan(text);
        assert_eq!(range(&plan), *expected, "{text}");
        assert_eq!(plan.scope, *scope, "{text}");
        let found = plan.residual.as_ref().map(Filter::to_string).unwrap_or_default();
        assert_eq!(found, *residual, "{text}");
    }
}

#[test]
fn splits_a_filter_into_the_key_range_and_the_residual() {
    use QueryScope as S;
    assert_plans(&[
        ("", S::Table, ".. ..", ""),
        ("true", S::Table, ".. ..", ""),
        ("PartitionKey eq 'a' and RowKey eq 'b'", S::Point, "[a,b a,b]", ""),
        ("PartitionKey eq '' and RowKey eq ''", S::Point, "[, ,]", ""),
        ("PartitionKey eq 'a' and RowKey le ''", S::Point, "[a, a,]", ""),
        ("PartitionKey eq 'a' and RowKey gt 'b'", S::RowRange, "(a,b a,*]", ""),
        ("PartitionKey eq 'a' and RowKey lt 'b'", S::RowRange, "[a,* a,b)", ""),
        ("PartitionKey eq 'a' and RowKey ge ''", S::Partition, "[a,* a,*]", ""),
        ("RowKey ge 'b' and x eq 1 and PartitionKey eq 'a'", S::RowRange, "[a,b a,*]", "x eq 1"),
        ("PartitionKey eq 'a'", S::Partition, "[a,* a,*]", ""),
        ("PartitionKey eq ''", S::Partition, ".. ,*]", ""),
        ("PartitionKey ge 'a' and PartitionKey le 'a'", S::Partition, "[a,* a,*]", ""),
        ("PartitionKey gt 'a'", S::PartitionRange, "(a,* ..", ""),
        ("PartitionKey gt ''", S::PartitionRange, "(,* ..", ""),
        ("PartitionKey lt 'a'", S::PartitionRange, ".. a,*)", ""),
        ("'a' le PartitionKey and 'c' gt PartitionKey", S::PartitionRange, "[a,* c,*)", ""),
        ("PartitionKey ge ''", S::Table, ".. ..", ""),
        ("x eq 1", S::Table, ".. ..", "x eq 1"),
    ]);
}

#[test]
fn row_keys_narrow_the_first_and_last_partition() {
    use QueryScope::PartitionRange as Range;
    assert_plans(&[
        ("PartitionKey ge 'a' and RowKey ge 'b'", Range, "[a,b ..", "RowKey ge 'b'"),
        ("PartitionKey gt 'a' and RowKey ge 'b'", Range, "(a,* ..", "RowKey ge 'b'"),
        ("PartitionKey le 'c' and RowKey lt 'd'", Range, ".. c,d)", "RowKey lt 'd'"),
        ("PartitionKey lt 'c' and RowKey lt 'd'", Range, ".. c,*)", "RowKey lt 'd'"),
        (
            "PartitionKey ge 'a' and PartitionKey le 'c' and RowKey eq 'r'",
            Range,
            "[a,r c,r]",
            "RowKey eq 'r'",
        ),
        // No row of partition `a` is left, so it is not read at all.
        (
            "(PartitionKey eq 'a' and RowKey gt 'm' or PartitionKey gt 'a') and RowKey lt 'b'",
            Range,
            "(a,* ..",
            "RowKey lt 'b'",
        ),
        ("RowKey eq 'r'", QueryScope::Table, "[,r ..", "RowKey eq 'r'"),
        ("RowKey lt 'r'", QueryScope::Table, ".. ..", "RowKey lt 'r'"),
    ]);
}

#[test]
fn an_or_scans_the_hull_of_its_branches() {
    use QueryScope as S;
    assert_plans(&[
        (
            "PartitionKey eq 'a' and RowKey gt 'b' or PartitionKey gt 'a'",
            S::PartitionRange,
            "(a,b ..",
            "",
        ),
        (
            "PartitionKey gt 'a' or PartitionKey eq 'a' and RowKey ge 'b'",
            S::PartitionRange,
            "[a,b ..",
            "",
        ),
        (
            "PartitionKey eq 'a' or PartitionKey eq 'c'",
            S::PartitionRange,
            "[a,* c,*]",
            "PartitionKey eq 'a' or PartitionKey eq 'c'",
        ),
        (
            "PartitionKey eq 'a' and (RowKey eq 'd' or RowKey eq 'b')",
            S::RowRange,
            "[a,b a,d]",
            "RowKey eq 'd' or RowKey eq 'b'",
        ),
        ("PartitionKey lt 'b' or PartitionKey ge 'b'", S::Table, ".. ..", ""),
        ("PartitionKey le 'c' or PartitionKey lt 'b'", S::PartitionRange, ".. c,*]", ""),
        (
            "RowKey ge 'b' or PartitionKey eq 'a' and RowKey gt 'c'",
            S::Table,
            "[,b ..",
            "RowKey ge 'b' or PartitionKey eq 'a' and RowKey gt 'c'",
        ),
        ("PartitionKey eq 'a' or x eq 1", S::Table, ".. ..", "PartitionKey eq 'a' or x eq 1"),
        ("PartitionKey eq 'a' or false", S::Partition, "[a,* a,*]", ""),
        ("PartitionKey eq 'a' or true", S::Table, ".. ..", ""),
        (
            "PartitionKey eq 'a' and (x eq 1 or RowKey eq 'b')",
            S::Partition,
            "[a,* a,*]",
            "x eq 1 or RowKey eq 'b'",
        ),
    ]);
}

#[test]
fn an_or_branch_within_another_is_absorbed() {
    use QueryScope as S;
    assert_plans(&[
        (
            "PartitionKey eq 'a' and (RowKey ge 'b' or PartitionKey eq 'a' and RowKey gt 'c')",
            S::RowRange,
            "[a,b a,*]",
            "",
        ),
        (
            "PartitionKey eq 'a' and (PartitionKey eq '' and RowKey ge 'b' or RowKey ge 'b')",
            S::RowRange,
            "[a,b a,*]",
            "",
        ),
    ]);
}

#[test]
fn negation_is_pushed_into_keys_but_not_custom_properties() {
    use QueryScope as S;
    assert_plans(&[
        ("not (PartitionKey lt 'a')", S::PartitionRange, "[a,* ..", ""),
        ("not (PartitionKey ne 'a')", S::Partition, "[a,* a,*]", ""),
        ("not (PartitionKey ne 'a' or x gt 5)", S::Partition, "[a,* a,*]", "not (x gt 5)"),
        ("not (not (PartitionKey eq 'a'))", S::Partition, "[a,* a,*]", ""),
        (
            "not (PartitionKey lt 'a' and RowKey eq 'r')",
            S::Table,
            ".. ..",
            "PartitionKey ge 'a' or RowKey ne 'r'",
        ),
        ("PartitionKey ne 'a'", S::Table, ".. ..", "PartitionKey ne 'a'"),
        (
            "not (Timestamp lt datetime'2026-01-01T00:00:00Z')",
            S::Table,
            ".. ..",
            "Timestamp ge datetime'2026-01-01T00:00:00Z'",
        ),
    ]);
}

#[test]
fn contradictions_have_no_range() {
    for text in [
        "PartitionKey eq 'a' and PartitionKey eq 'b'",
        "PartitionKey gt 'b' and PartitionKey lt 'a' and x eq 1",
        "PartitionKey eq 'a' and RowKey gt 'b' and RowKey le 'b'",
        "PartitionKey eq 'a' and RowKey lt ''",
        "PartitionKey lt ''",
        "RowKey gt 'b' and RowKey lt 'b'",
        "false",
        "not (true) or x eq 1 and false",
        "PartitionKey eq 5",
        "PartitionKey lt 5L",
        "Timestamp eq 'x'",
        "x eq 1 and (PartitionKey eq 'a' and PartitionKey eq 'b' or RowKey lt '')",
    ] {
        assert_plans(&[(text, QueryScope::Point, "empty", "")]);
    }
    assert_plans(&[("PartitionKey gt 5 and RowKey ne true", QueryScope::Table, ".. ..", "")]);
}

#[test]
fn keys_are_ordered_by_utf16_code_unit() {
    // U+10000 sorts before U+FFFF.
    assert_plans(&[
        (
            "PartitionKey ge '\u{10000}' and PartitionKey le '\u{FFFF}'",
            QueryScope::PartitionRange,
            "[\u{10000},* \u{FFFF},*]",
            "",
        ),
        (
            "PartitionKey eq 'a' and RowKey ge '\u{10000}' and RowKey le '\u{FFFF}'",
            QueryScope::RowRange,
            "[a,\u{10000} a,\u{FFFF}]",
            "",
        ),
        (
            "PartitionKey gt '\u{FFFF}' and PartitionKey lt '\u{10000}'",
            QueryScope::Point,
            "empty",
            "",
        ),
    ]);
}

#[test]
fn reports_the_point_and_the_filter_properties() {
    let point = plan("PartitionKey eq 'a' and RowKey eq '' and z gt 1 and b eq 2 and z lt 5");

    assert_eq!(point.point(), Some(("a", "")));
    assert_eq!(point.filter_properties(), ["b", "z"]);
    assert_eq!(plan("PartitionKey eq 'a'").point(), None);
    assert_eq!(plan("false").point(), None);
    assert!(plan("").filter_properties().is_empty());
}

#[test]
fn advice_names_the_cause_of_an_expensive_query() {
    let table = [
        ("", "no condition is on PartitionKey"),
        ("x eq 1", "`x` is not part of the key"),
        ("x eq 1 and y eq 2", "`x`, `y` are not part of the key"),
        ("PartitionKey ne 'a'", "`ne` on PartitionKey or RowKey"),
        ("PartitionKey ne 'a'", "rule out no partition"),
        ("PartitionKey eq 'a' or PartitionKey eq 'b'", "run one query for each partition"),
        ("PartitionKey ge 'a' and RowKey eq 'b'", "RowKey narrows what is read only where"),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", "contradict each other"),
    ];

    for (text, expected) in table {
        let advice = plan(text).advice(true);
        assert!(advice.iter().any(|advice| advice.contains(expected)), "{text}: {advice:?}");
    }
    assert!(plan("PartitionKey eq 'a' and RowKey eq 'b'").advice(true).is_empty());
    let without_selection = plan("PartitionKey eq 'a' and RowKey gt 'b'").advice(false);
    assert_eq!(without_selection.len(), 1, "{without_selection:?}");
    assert!(without_selection[0].contains("select those that you use"));
}
