use super::*;

fn container(name: &str) -> Result<(), Vec<Reason>> {
    let mut violations = Violations::default();
    let parsed = ContainerName::parse(name.to_owned(), "container", &mut violations);
    let checked = violations.check(());
    assert_eq!(parsed.is_some(), checked.is_ok());
    checked.map_err(|fault| fault.violations.iter().map(|v| v.reason).collect())
}

#[test]
fn container_names_are_accepted_at_their_bounds_and_rejected_past_those() {
    for name in ["abc", "0-9", "a-b-c", &"a".repeat(63), "$root", "$logs", "$web"] {
        assert_eq!(container(name), Ok(()), "{name}");
    }
    for (name, reason) in [
        ("", Reason::PropertiesNeedValue),
        ("ab", Reason::OutOfRangeInput),
        (&"a".repeat(64), Reason::OutOfRangeInput),
        ("Abc", Reason::InvalidResourceName),
        ("-abc", Reason::InvalidResourceName),
        ("abc-", Reason::InvalidResourceName),
        ("a--b", Reason::InvalidResourceName),
        ("a/b", Reason::InvalidResourceName),
        ("$other", Reason::InvalidResourceName),
    ] {
        assert_eq!(container(name), Err(vec![reason]), "{name}");
    }
}

#[test]
fn blob_names_are_any_text_within_their_bounds() {
    let parse = |name: &str| {
        let mut violations = Violations::default();
        BlobName::parse(name.to_owned(), &mut violations).is_some()
    };
    let segments = |count: usize| vec!["a"; count].join("/");
    for name in ["a", ".", "..", "/", "a//b", "a\\b", "\u{0}", &"é".repeat(1024)] {
        assert!(parse(name), "{name}");
    }
    assert!(parse(&segments(254)));
    assert!(!parse(&segments(255)));
    assert!(!parse(""));
    assert!(!parse(&"é".repeat(1025)));
}
