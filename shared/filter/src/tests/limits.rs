//! Bounds of bytes, tokens and depth: at the bound a filter is parsed, past it rejected.

use trestle_service::limits;

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

#[test]
fn a_filter_has_bounded_tokens() {
    let filter = |comparisons: usize| vec!["a eq 1"; comparisons].join(" or ");
    // Three tokens each, and one between them: 999.
    plain(&format!("not {}", filter(250)));
    let (_, message) = plain_error(&format!("({})", filter(250)));
    assert!(message.contains("Filter has too many parts: max=`1000`"), "{message}");
}

#[test]
fn a_filter_has_bounded_depth() {
    let max = limits::FILTER_DEPTH_MAX;
    // The `not` of the last one is a level of its own.
    for (open, close, end) in [("(", ")", 1), ("not (", ")", 5), ("not a or (", ")", 5)] {
        let filter = |depth| format!("{}a eq 1{}", open.repeat(depth), close.repeat(depth));
        plain(&filter(max));
        let (position, message) = plain_error(&filter(max + 1));
        assert!(message.contains("nested too deeply: max=`100`"), "{open}: {message}");
        assert_eq!(position, open.len() * max + end, "{open}");
    }
    // Levels that are closed do not count.
    plain(&vec!["(a eq 1)"; 120].join(" and "));
    plain(&vec!["not a eq 1"; 120].join(" and "));
}

#[test]
fn the_deepest_tree_is_written_and_dropped_without_recursion_errors() {
    let max = limits::FILTER_DEPTH_MAX;
    let text = format!("{}a eq 1{}", "not (".repeat(max), ")".repeat(max));
    let tree = plain(&text);
    assert_eq!(tree.to_string(), text);
    let mut comparisons = 0;
    tree.for_each_comparison(&mut |_| comparisons += 1);
    assert_eq!(comparisons, 1);
}
