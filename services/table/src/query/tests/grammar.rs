//! The grammar, and its syntax errors.

use trestle_model::fault::{Fault, Reason};
use trestle_model::limits;
use trestle_model::time::Ticks;

use super::*;

/// Position and text of the error.
fn reject(text: &str) -> (usize, String) {
    let error = Filter::parse(text).expect_err(text);
    (error.position, error.message)
}

#[test]
fn filters_have_a_canonical_text() {
    let table = [
        ("PartitionKey eq 'a'", "PartitionKey eq 'a'"),
        ("  a  ne\t'it''s'  ", "a ne 'it''s'"),
        ("a eq ''", "a eq ''"),
        ("a eq ''''", "a eq ''''"),
        ("a gt -12", "a gt -12"),
        ("a ge 12L", "a ge 12L"),
        ("a lt 007", "a lt 7"),
        ("a le 1.50", "a le 1.5"),
        ("a eq -0.0", "a eq -0.0"),
        ("a eq 4.0", "a eq 4.0"),
        ("a eq 1e+16", "a eq 1e16"),
        ("a eq 1E2", "a eq 100.0"),
        ("a eq 1.5e-9", "a eq 1.5e-9"),
        ("a eq true", "a eq true"),
        ("a", "a eq true"),
        ("not a", "not (a eq true)"),
        ("true", "true"),
        ("not false", "not (false)"),
        ("5 lt a", "a gt 5"),
        ("5 le a", "a ge 5"),
        ("5 gt a", "a lt 5"),
        ("5 ge a", "a le 5"),
        ("5 eq a", "a eq 5"),
        ("true ne a", "a ne true"),
        ("not a eq 1", "not (a eq 1)"),
        ("not a eq 1 and b eq 2", "not (a eq 1) and b eq 2"),
        ("not (not (a eq 1))", "a eq 1"),
        ("a eq 1 or b eq 2 and c eq 3", "a eq 1 or b eq 2 and c eq 3"),
        ("(a eq 1 or b eq 2) and c eq 3", "(a eq 1 or b eq 2) and c eq 3"),
        ("((a eq 1) and ((b eq 2) and c eq 3))", "a eq 1 and b eq 2 and c eq 3"),
        ("(a eq 1)and(b eq 2)", "a eq 1 and b eq 2"),
        ("t gt datetime'2026-01-31T08:00:00.1200000Z'", "t gt datetime'2026-01-31T08:00:00.12Z'"),
        ("t gt datetime'2026-01-31T08:00'", "t gt datetime'2026-01-31T08:00:00Z'"),
        ("X eq X'0aFF'", "X eq X'0aff'"),
        ("a eq binary''", "a eq X''"),
        (
            "g eq guid'01234567-89AB-cdef-0123-456789ABCDEF'",
            "g eq guid'01234567-89ab-cdef-0123-456789abcdef'",
        ),
        ("Été_1 eq '𝄞'", "Été_1 eq '𝄞'"),
        ("datetime eq 1 and guid eq 2 and eq eq 3", "datetime eq 1 and guid eq 2 and eq eq 3"),
    ];

    for (text, canonical) in table {
        assert_eq!(parse(text).to_string(), canonical, "{text}");
        assert_eq!(parse(canonical), parse(text), "{text}");
    }
}

#[test]
fn literals_keep_their_type() {
    let literal = |text: &str| match parse(&format!("a eq {text}")) {
        Expr::Compare(comparison) => comparison.literal,
        other => panic!("{other}"),
    };

    assert_eq!(literal("2147483647"), Literal::Int32(i32::MAX));
    assert_eq!(literal("-2147483648"), Literal::Int32(i32::MIN));
    assert_eq!(literal("-9223372036854775808L"), Literal::Int64(i64::MIN));
    assert_eq!(literal("4.0"), Literal::Double(4.0));
    assert_eq!(literal("4e0"), Literal::Double(4.0));
    assert_eq!(literal("'4'"), Literal::String("4".to_owned()));
    let time = Ticks::from_unix(253_402_300_799, 999_999_900).unwrap();
    assert_eq!(literal("datetime'9999-12-31T23:59:59.9999999Z'"), Literal::DateTime(time));
}

#[test]
fn the_empty_filter_is_none() {
    for text in ["", " ", " \t\r\n "] {
        assert_eq!(Filter::parse(text), Ok(None));
    }
}

/// Filter, position, part of the message.
const SYNTAX_ERRORS: &[(&str, usize, &str)] = &[
    ("aaa bbb ccc", 7, "Expected an operator, `eq`, `ne`, `gt`, `ge`, `lt` or `le`, found `bbb`"),
    ("a eq", 4, "Expected a property or a literal, found the end of the filter"),
    ("a eq b", 6, "two properties cannot be compared"),
    ("1 eq 2", 6, "two literals cannot be compared"),
    ("true eq false", 13, "two literals cannot be compared"),
    ("5", 1, "Expected an operator, `eq`, `ne`, `gt`, `ge`, `lt` or `le`"),
    ("a EQ 5", 4, "found `EQ`"),
    ("a eq 5 AND b eq 6", 10, "Expected `and`, `or` or the end of the filter, found `AND`"),
    ("(a eq 5", 7, "Expected `and`, `or` or `)`, found the end of the filter"),
    ("a eq 5)", 7, "found `)`"),
    ("()", 2, "Expected a property or a literal, found `)`"),
    ("and", 3, "found `and`"),
    ("not", 3, "found the end"),
    ("not not a", 7, "found `not`"),
    ("a eq null", 9, "`null` cannot be compared with"),
    ("null eq a", 4, "`null` cannot be compared with"),
    ("startswith(a, 'b')", 10, "Functions such as `startswith` are not supported"),
    ("a eq substring (b)", 14, "Functions such as `substring`"),
    ("a add 1 eq 2", 5, "Arithmetic such as `add` is not supported"),
    ("a in (1)", 4, "Operator `in` is not supported"),
    ("é = 5", 3, "Unexpected character `=`; equality is written `eq`"),
    ("a eq \"x\"", 5, "text is written in single quotes"),
    ("a eq 'x", 7, "Text has no closing quote"),
    ("a eq 'x''", 9, "Text has no closing quote"),
    ("a/b eq 1", 1, "Unexpected character `/`"),
    ("a eq 12x", 8, "Malformed number `12x`"),
    ("a eq 1.", 7, "Malformed number `1.`"),
    ("a eq 1e", 7, "Malformed number `1e`"),
    ("a eq -", 6, "Malformed number `-`"),
    ("a eq 1-1", 8, "found `-1`"),
    ("a eq 1.5L", 9, "Malformed number `1.5L`"),
    ("a eq 2147483648", 15, "longer ones end in `L`"),
    ("a eq 9223372036854775808L", 25, "out of the range of 64 bits"),
    ("a eq 1e400", 10, "out of the range of a double"),
    ("a eq datetime'2026-13-01T00:00:00Z'", 35, "Expected datetime'"),
    ("a eq datetime'2026-01-01T00:00:00.1+1:00'", 41, "Expected datetime'"),
    ("a eq datetime'2026-01-01T00:00:00+01:60'", 40, "Expected datetime'"),
    ("a eq guid'0123456789abcdef0123456789abcdef'", 43, "Expected guid'"),
    ("a eq X'0'", 9, "Expected X'"),
    ("a eq X'0g'", 10, "Expected X'"),
];

#[test]
fn syntax_errors_report_position_and_expectation() {
    for &(text, position, message) in SYNTAX_ERRORS {
        let (found_position, found) = reject(text);
        assert_eq!(found_position, position, "{text}: {found}");
        assert!(found.contains(message), "{text}: {found}");
    }
}

#[test]
fn a_syntax_error_is_invalid_input_with_azures_text() {
    let error = Filter::parse("a eq").unwrap_err();

    let fault = Fault::from(error);

    assert_eq!(fault.reason, Reason::InvalidInput);
    assert!(fault.message.contains("Syntax error at position 4 in 'a eq'."), "{fault}");
    assert_eq!(fault.violations[0].field, "filter");
}

#[test]
fn nesting_is_bounded() {
    let nested = |pairs: usize| format!("{}c{}", "not (a or ".repeat(pairs), ")".repeat(pairs));
    let pairs = limits::FILTER_NESTING_MAX / 2;

    let deepest = Filter::parse(&nested(pairs - 1)).unwrap().unwrap();
    assert_eq!(Filter::parse(&deepest.to_string()), Ok(Some(deepest)));
    assert!(reject(&nested(pairs + 1)).1.contains("nested too deeply"));
    assert!(reject(&nested(2_000)).1.contains("nested too deeply"));
}

#[test]
fn length_is_bounded_in_bytes() {
    let long = |bytes: usize| format!("a eq '{}'", "x".repeat(bytes - 7));
    assert!(Filter::parse(&long(limits::FILTER_BYTES_MAX)).is_ok());
    assert!(reject(&long(limits::FILTER_BYTES_MAX + 1)).1.contains("too long"));
}

/// Far less than the stack of a thread of the server, in a build without optimisation.
const STACK_BYTES: usize = 1024 * 1024;

#[test]
fn the_deepest_filter_is_planned_evaluated_and_dropped_on_a_small_stack() {
    let work = || {
        for (open, close) in [("not (a or ", ")"), ("a or b and (", ")")] {
            let pairs = limits::FILTER_NESTING_MAX / 2 - 1;
            let text = format!("{}c{}", open.repeat(pairs), close.repeat(pairs));
            let filter = Filter::parse(&text).unwrap().unwrap();
            let plan = QueryPlan::new(Some(&filter));
            assert_eq!(plan.scope, QueryScope::Table);
            assert!(!plan.advice(false).is_empty());
            assert_eq!(filter, filter.clone());
            let names = text.replace(['a', 'b', 'c'], "TableName").replace("TableNamend", "and");
            assert!(NameFilter::parse(&names).is_ok(), "{names}");
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).unwrap();
    thread.join().unwrap();
}

#[test]
fn pairs_of_keys_joined_one_at_a_time_are_parsed() {
    let pair = |number: usize| format!("(PartitionKey eq 'p{number}') and (RowKey eq 'r')");
    let filter = (1..400).fold(pair(0), |all, number| format!("({all}) or ({})", pair(number)));
    let filter = Filter::parse(&filter).unwrap().unwrap();

    let Expr::Or(parts) = filter.expr() else { panic!("a list") };
    assert_eq!(parts.len(), 400);
    let plan = QueryPlan::new(Some(&filter));
    assert_eq!(plan.scope, QueryScope::PartitionRange);
}
