//! Filters over table names.

use super::*;

/// Start and end of the range, each with whether it is included.
type ExpectedRange = (Option<(&'static str, bool)>, Option<(&'static str, bool)>);

#[test]
fn name_ranges_are_in_lower_case() {
    let table: [(&str, ExpectedRange); 8] = [
        ("TableName eq 'Log'", (Some(("log", true)), Some(("log", true)))),
        ("TableName ge 'LOG' and TableName lt 'loH'", (Some(("log", true)), Some(("loh", false)))),
        ("'a' lt TableName", (Some(("a", false)), None)),
        ("not (TableName gt 'm')", (None, Some(("m", true)))),
        ("TableName eq 'c' or TableName eq 'A'", (Some(("a", true)), Some(("c", true)))),
        ("TableName ne 'a'", (None, None)),
        ("not (TableName lt 'b' or TableName gt 'c')", (Some(("b", true)), Some(("c", true)))),
        ("true", (None, None)),
    ];

    for (text, (start, end)) in table {
        let filter = NameFilter::parse(text).unwrap().unwrap();
        let bound = |bound: Option<(&str, bool)>| {
            bound.map(|(name, inclusive)| NameBound { name: name.to_owned(), inclusive })
        };
        let expected = NameRange { start: bound(start), end: bound(end) };
        assert_eq!(filter.range(), Some(&expected), "{text}");
    }
}

#[test]
fn a_filter_that_contradicts_itself_has_no_range() {
    for text in ["TableName gt 'b' and TableName lt 'a'", "false", "not (true)"] {
        let filter = NameFilter::parse(text).unwrap().unwrap();
        assert_eq!(filter.range(), None, "{text}");
        assert!(!filter.matches("a"));
    }
}

#[test]
fn names_match_case_insensitively() {
    let matches = |text: &str, name| NameFilter::parse(text).unwrap().unwrap().matches(name);

    assert!(matches("TableName eq 'MyTable'", "mytable"));
    assert!(!matches("TableName eq 'MyTable'", "mytables"));
    assert!(matches("TableName ge 'L' and not (TableName eq 'Log1')", "log2"));
    assert!(!matches("TableName ge 'L' and not (TableName eq 'Log1')", "log1"));
    assert!(matches("TableName gt 5 and TableName ne 5", "a"));
}

#[test]
fn rejects_other_properties_at_their_position() {
    let error = NameFilter::parse("TableName eq 'Size' or Size gt 5").unwrap_err();

    assert_eq!(error.position, 27);
    assert!(error.message.contains("TableName"), "{error}");
    assert_eq!(NameFilter::parse("  "), Ok(None));
}
