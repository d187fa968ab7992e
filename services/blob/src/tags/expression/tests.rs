use proptest::prelude::*;

use super::*;

fn tags(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn holds(condition: &str) -> bool {
    let tags = tags(&[("a", "1"), ("b", "x y"), ("date", "2026-08-28"), ("empty", "")]);
    TagCondition::parse(condition).expect(condition).holds(&tags)
}

#[test]
fn comparisons_are_of_texts() {
    for condition in [
        "\"a\" = '1'",
        "a='1'",
        "  a\t=\n'1' ",
        "a < '10'",
        "a <= '1'",
        "a >= '1'",
        "a > '0'",
        "a > ''",
        "a <> '2'",
        "b = 'x y'",
        "empty = ''",
        "date >= '2026-01-01' AND date < '2027'",
        "a = '2' OR b = 'x y'",
        "a = '2' or a = '3' or a = '1'",
        "(a = '2' OR a = '1') AND (b = 'x y')",
        "a = '1' OR a = '2' AND b = 'no'",
    ] {
        assert!(holds(condition), "{condition}");
    }
    for condition in [
        "a = '2'",
        "a <> '1'",
        "a > '1'",
        "a < '1'",
        "A = '1'",
        "absent = '1'",
        "absent <> '1'",
        "absent < 'z'",
        "a = '1' AND absent = ''",
        "(a = '1' OR a = '2') AND b = 'no'",
    ] {
        assert!(!holds(condition), "{condition}");
    }
}

#[test]
fn errors_name_the_position() {
    for (text, position) in [
        ("", 0),
        ("   ", 3),
        ("a", 1),
        ("a = ", 4),
        ("a = 1", 4),
        ("a = \"1\"", 4),
        ("a = '1", 4),
        ("\"a = '1'", 0),
        ("= '1'", 0),
        ("'a' = '1'", 0),
        ("\"\" = '1'", 0),
        ("a == '1'", 3),
        ("a = '1' b = '2'", 8),
        ("a = '1' AND", 11),
        ("a = '1' ANDb = '2'", 8),
        ("(a = '1'", 8),
        ("a = '1')", 7),
        ("()", 1),
        ("a = 'é'", 4),
        ("é = 'a'", 0),
        ("@container = 'logs'", 0),
    ] {
        let error = TagCondition::parse(text).expect_err(text);
        assert_eq!(error.position, position, "{text}: {error}");
    }
    let deep = |depth: usize| format!("{}a = '1'{}", "(".repeat(depth), ")".repeat(depth));
    assert!(TagCondition::parse(&deep(32)).is_ok());
    assert!(TagCondition::parse(&deep(33)).is_err());
    let long = |length: usize| format!("a = '1'{}", " ".repeat(length - 7));
    assert!(TagCondition::parse(&long(4096)).is_ok());
    assert!(TagCondition::parse(&long(4097)).is_err());
    assert!(TagCondition::parse(&format!("{} = ''", "k".repeat(129))).is_err());
    assert!(TagCondition::parse(&format!("a = '{}'", "v".repeat(257))).is_err());
}

#[test]
fn a_filter_is_joined_by_and_and_may_name_the_container() {
    let filter =
        TagFilter::parse("@container = '$web' AND a >= '1' AND \"b c\" = 'x'").expect("ok");
    assert_eq!(filter.container.as_deref(), Some("$web"));
    assert_eq!(filter.comparisons.len(), 2);
    assert!(filter.holds(&tags(&[("a", "2"), ("b c", "x")])));
    assert!(!filter.holds(&tags(&[("a", "2")])));
    for text in [
        "",
        "@container = 'logs'",
        "@container > 'logs' AND a = '1'",
        "@container = 'a' AND @container = 'b' AND a = '1'",
        "a <> '1'",
        "a = '1' OR b = '2'",
        "(a = '1')",
        "a = '1' AND",
    ] {
        assert!(TagFilter::parse(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected_within_it(text in "[aA(') \"=<>ORANDé@0-9]{0,40}") {
        for error in [TagCondition::parse(&text).err(), TagFilter::parse(&text).err()].into_iter().flatten() {
            prop_assert!(text.is_char_boundary(error.position), "{text}: {error}");
        }
    }
}
