//! Preferences in one header, in several, and among others.

use http::HeaderValue;

use super::*;

fn of(values: &[&'static str]) -> Prefer {
    let values = values.iter().map(|value| HeaderValue::from_static(value));
    Prefer::of(&values.map(|value| (HeaderName::from_static(PREFER), value)).collect())
}

#[test]
fn the_first_known_preference_applies() {
    for (values, expected) in [
        (vec![], Prefer::Unset),
        (vec![""], Prefer::Unset),
        (vec!["return-content"], Prefer::Content),
        (vec!["RETURN-NO-CONTENT"], Prefer::NoContent),
        (vec!["respond-async; return-no-content"], Prefer::NoContent),
        (vec!["return-content, return-no-content"], Prefer::Content),
        (vec!["respond-async", " return-no-content "], Prefer::NoContent),
        (vec!["return-no-content-at-all"], Prefer::Unset),
        (vec!["return=minimal"], Prefer::Unset),
    ] {
        assert_eq!(of(&values), expected, "{values:?}");
    }
}

#[test]
fn a_value_that_is_no_text_is_ignored() {
    let mut headers = HeaderMap::new();
    headers.append(PREFER, HeaderValue::from_bytes(b"return-content\xFF").expect("a value"));
    assert_eq!(Prefer::of(&headers), Prefer::Unset);
    headers.append(PREFER, HeaderValue::from_static("return-no-content"));
    assert_eq!(Prefer::of(&headers), Prefer::NoContent);
}

#[test]
fn the_applied_preference_is_the_one_of_the_request() {
    assert_eq!(Prefer::Unset.applied(), None);
    for value in ["return-content", "return-no-content"] {
        assert_eq!(of(&[value]).applied(), Some(value));
    }
}
