//! Bounds of bytes, tokens and depth: at the bound a filter is parsed, past it rejected.

use trestle_model::limits;

use super::*;

#[test]
fn a_filter_has_bounded_bytes() {
    let filter = |bytes: usize| format!("a eq '{}'", "x".repeat(bytes - 7));
    let longest = filter(limits::FILTER_BYTES_MAX);
    assert_eq!(longest.len(), limits::FILTER_BYTES_MAX);
    plain(&longest);

    let (position, message) = plain_error(&filter(limits::FILTER_BYTES_MAX + 1));

    assert_eq!(position, limits::FILTER_BYTES_MAX);
    assert!(message.contains("Filter is too long: bytes=`32769`, max=`32768`"), "{message}");
    // The text in the error is cut off.
    let error = parse::<Plain>(&filter(limits::FILTER_BYTES_MAX + 1)).unwrap_err();
    assert!(error.to_string().len() < 1_000, "{}", error.to_string().len());
}

/// Fills a filter up to the bound of bytes: `open` and `close` around `inner` as often as they fit.
fn filled(open: &str, inner: &str, close: &str) -> String {
    let count = (limits::FILTER_BYTES_MAX - inner.len()) / (open.len() + close.len());
    format!("{}{inner}{}", open.repeat(count), close.repeat(count))
}

#[test]
fn parentheses_nots_and_one_operator_fill_a_filter_up_to_its_bytes() {
    for (open, close) in
        [("(", ")"), ("not (", ")"), ("not (not(", "))"), ("a or (", ")"), ("(", ") or a")]
    {
        for operator in ["or", "and"] {
            let filter = filled(&open.replace("or", operator), "a", &close.replace("or", operator));
            let tree = plain(&filter);
            assert!(filter.len() > limits::FILTER_BYTES_MAX - 16, "{}", filter.len());
            let mut comparisons = 0;
            tree.for_each_comparison(&mut |_| comparisons += 1);
            assert_eq!(comparisons, filter.matches('a').count() - filter.matches("and").count());
            let depth = tree.to_string().matches('(').count();
            assert!(depth <= 1, "the tree is flat: {depth}");
        }
    }
    let chain = vec!["a"; limits::FILTER_BYTES_MAX / 5].join(" or ");
    let Expr::Or(parts) = plain(&chain) else { panic!("a list") };
    assert_eq!(parts.len(), limits::FILTER_BYTES_MAX / 5);
    assert_eq!(plain("not (not (not (a)))"), plain("not a"));
}

#[test]
fn conditions_remain_in_the_order_of_the_text_however_they_are_grouped() {
    let expected = plain("a or b or c or d or e");
    for text in [
        "(((a or b) or c) or d) or e",
        "a or (b or (c or (d or e)))",
        "(a or (b or c)) or (d or e)",
        "not (not (a or b)) or (c or d) or (e)",
    ] {
        assert_eq!(plain(text), expected, "{text}");
    }
}

#[test]
fn operators_in_other_operators_are_bounded() {
    let max = limits::FILTER_NESTING_MAX;
    for (open, close) in [("not (a or ", ")"), ("a or b and (", ")")] {
        let filter = |pairs: usize| format!("{}c{}", open.repeat(pairs), close.repeat(pairs));
        let deepest = plain(&filter(max / 2 - 1));
        assert_eq!(plain(&deepest.to_string()), deepest);
        for pairs in [max / 2 + 1, limits::FILTER_BYTES_MAX / 14] {
            let (position, message) = plain_error(&filter(pairs));
            assert!(message.contains("nested too deeply: max=`250`"), "{open}: {message}");
            assert!(position <= filter(pairs).len());
        }
    }
    // Side by side is not nested.
    plain(&vec!["(not (a) or not b)"; 1000].join(" and "));
}

#[test]
fn an_unclosed_group_is_rejected_at_any_depth() {
    for text in ["(".repeat(limits::FILTER_BYTES_MAX), "not (".repeat(6000)] {
        let (_, message) = plain_error(&text);
        assert!(message.contains("found the end of the filter"), "{message}");
    }
}
