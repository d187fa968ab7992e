//! Accepted media types, and the levels that they select.

use super::*;

fn negotiate(format: Option<&str>, accept: &[&str]) -> Result<Level, Reason> {
    let values = accept.iter().map(|value| value.parse().expect("a value"));
    let headers = values.map(|value| (header::ACCEPT, value)).collect();
    Level::negotiate(format, &headers).map_err(|fault| fault.reason)
}

#[test]
fn the_level_is_that_of_the_format_or_else_the_accepted_type() {
    for (accept, level) in [
        ("application/json", Level::Minimal),
        ("application/json;odata=nometadata", Level::None),
        ("application/json; odata = fullmetadata", Level::Full),
        ("APPLICATION/JSON;charset=utf-8;ODATA=MinimalMetadata", Level::Minimal),
        ("application/atom+xml,application/json;odata=nometadata", Level::None),
        ("text/html, */*;q=0.8", Level::Minimal),
        ("", Level::Minimal),
    ] {
        assert_eq!(negotiate(None, &[accept]), Ok(level), "{accept}");
    }
    let both = negotiate(Some("application/json;odata=fullmetadata"), &["text/xml"]);
    assert_eq!(both, Ok(Level::Full));
    assert_eq!(negotiate(None, &[]), Ok(Level::Minimal));
    let lines = ["text/html", "application/json;odata=nometadata"];
    assert_eq!(negotiate(None, &lines), Ok(Level::None));
}

#[test]
fn rejects_discontinued_formats() {
    for accept in [
        "application/atom+xml",
        "text/html",
        "application/json;odata=verbose",
        "application/json;q=0, application/atom+xml",
        "*/*;q=0.0",
    ] {
        assert_eq!(negotiate(None, &[accept]), Err(Reason::AtomFormatNotSupported), "{accept}");
    }
}

#[test]
fn the_first_acceptable_type_in_the_order_of_the_client_applies() {
    for (accept, level) in [
        ("application/json;odata=verbose, application/json;odata=fullmetadata", Level::Full),
        ("application/json;q=0.1;odata=nometadata, application/json", Level::None),
        ("application/json;odata=\"fullmetadata\"", Level::Full),
        ("application/*;odata=nometadata", Level::None),
        ("application/json;q=high;odata=nometadata", Level::None),
    ] {
        assert_eq!(negotiate(None, &[accept]), Ok(level), "{accept}");
    }
}

#[test]
fn the_format_parameter_accepts_the_short_name_and_an_empty_one_does_not_count() {
    assert_eq!(negotiate(Some("json"), &["text/xml"]), Ok(Level::Minimal));
    assert_eq!(negotiate(Some("JSON;odata=nometadata"), &[]), Ok(Level::None));
    for format in ["", "  "] {
        let accept = ["application/json;odata=fullmetadata"];
        assert_eq!(negotiate(Some(format), &accept), Ok(Level::Full), "{format:?}");
    }
    let atom = negotiate(Some("atom"), &["application/json"]);
    assert_eq!(atom, Err(Reason::AtomFormatNotSupported));
}

#[test]
fn json_is_named_only_explicitly() {
    let is_named = |format: Option<&str>, accept: &'static str| {
        let value = http::HeaderValue::from_static(accept);
        Level::is_named(format, &HeaderMap::from_iter([(header::ACCEPT, value)]))
    };
    assert!(is_named(None, "text/html, application/json;odata=nometadata"));
    assert!(is_named(Some("json"), "text/html"));
    for accept in ["*/*", "application/*", "application/atom+xml", ""] {
        assert!(!is_named(None, accept), "{accept}");
    }
    assert!(!is_named(Some("atom"), "application/json"), "the parameter takes precedence");
}

#[test]
fn the_media_type_of_a_level_selects_it_again() {
    for level in [Level::None, Level::Minimal, Level::Full] {
        assert_eq!(negotiate(None, &[level.content_type()]), Ok(level));
        assert_eq!(negotiate(Some(level.content_type()), &[]), Ok(level));
    }
}

#[test]
fn an_error_names_the_part_of_the_request_that_sets_the_format() {
    let headers = HeaderMap::from_iter([(header::ACCEPT, "text/xml".parse().expect("a value"))]);
    for (format, named) in [
        (Some("foo"), "$format: only application/json is served: value=`foo`"),
        (Some(" "), "Accept: only application/json is served: value=`text/xml`"),
        (None, "Accept: only application/json is served: value=`text/xml`"),
    ] {
        let fault = Level::negotiate(format, &headers).expect_err("not JSON");
        assert_eq!(fault.message, named, "{format:?}");
    }
}
