//! The decisions of rules, as browsers see them: the headers of responses, or their absence.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use proptest::prelude::*;

use super::*;

const PAGE: &str = "https://page.example";
const OTHER: &str = "https://other.example";

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

/// A rule for these origins and methods, without headers.
fn rule(origins: &[&str], methods: &[&str]) -> CorsRule {
    CorsRule {
        allowed_origins: texts(origins),
        allowed_methods: texts(methods),
        ..CorsRule::default()
    }
}

/// A rule for the page and `PUT`, with these headers of requests and of responses.
fn with_headers(allowed: &[&str], exposed: &[&str]) -> CorsRule {
    CorsRule {
        allowed_headers: texts(allowed),
        exposed_headers: texts(exposed),
        ..rule(&[PAGE], &["PUT"])
    }
}

fn map(headers: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_str(value).expect("a value"));
    }
    map
}

/// The headers by name; those of one name are joined.
fn shown(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    for name in headers.keys() {
        let values = headers.get_all(name).iter().map(|value| value.to_str().expect("a text"));
        shown.insert(name.to_string(), values.collect::<Vec<_>>().join(","));
    }
    shown
}

fn preflight_headers(origin: &str, method: &str, headers: &[&str]) -> HeaderMap {
    let mut request = map(&[("origin", origin), ("access-control-request-method", method)]);
    for list in headers {
        let value = HeaderValue::from_str(list).expect("a value");
        request.append(header::ACCESS_CONTROL_REQUEST_HEADERS, value);
    }
    request
}

/// Nothing is waited for.
fn ready<T>(headers: impl Future<Output = T>) -> T {
    headers.now_or_never().expect("headers are ready")
}

/// The response to a preflight request; none if it is rejected.
fn preflight(
    rules: &[CorsRule],
    (origin, method): (&str, &str),
    headers: &[&str],
) -> Option<BTreeMap<String, String>> {
    let request = preflight_headers(origin, method, headers);
    let parsed = Preflight::read(&request).expect("a preflight");
    let allowed = Rules::new(rules.to_vec()).preflight(parsed)?;
    Some(shown(&ready(allowed.headers(Method::OPTIONS, request))))
}

/// The headers of CORS of a response with `answer`.
fn answer(
    rules: &[CorsRule],
    origin: &str,
    answer: &HeaderMap,
) -> Option<BTreeMap<String, String>> {
    let origin = HeaderValue::from_str(origin).expect("a value");
    let allowed = Rules::new(rules.to_vec()).answer(&origin, &Method::PUT, answer)?;
    let request = HeaderMap::from_iter([(header::ORIGIN, origin)]);
    Some(shown(&ready(allowed.headers(Method::PUT, request))))
}

fn pairs(expected: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Some(expected.iter().map(owned).collect())
}

#[test]
fn a_preflight_needs_an_origin_and_a_method() {
    for headers in
        [map(&[]), map(&[("origin", PAGE)]), map(&[("access-control-request-method", "PUT")])]
    {
        let fault = Preflight::read(&headers).expect_err("a header is missing");
        assert_eq!(fault.reason, Reason::InvalidHeaderValue);
        for name in ["Origin", "Access-Control-Request-Method"] {
            assert!(fault.message.contains(name), "{}", fault.message);
        }
    }
}

#[test]
fn a_rejected_preflight_names_its_origin_shortened() {
    let origin = format!("https://{}.example", "a".repeat(1000));
    let headers = preflight_headers(&origin, "PUT", &[]);
    let fault = Preflight::read(&headers).expect("a preflight").rejected();

    assert_eq!(fault.reason, Reason::CorsPreflightFailure);
    assert!(fault.message.contains("origin=`https://aaa"), "{}", fault.message);
    assert!(fault.message.len() < 500, "{} bytes", fault.message.len());
}

#[test]
fn a_preflight_is_answered_with_what_it_requested() {
    let rule = CorsRule {
        max_age: Some(prost_types::Duration { seconds: 200, nanos: 0 }),
        ..with_headers(&["x-ms-meta-*", "Content-Type"], &["x-ms-*"])
    };
    let lists = ["X-MS-META-color, content-type", "x-ms-meta-"];

    let expected = pairs(&[
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-headers", "X-MS-META-color, content-type"),
        ("access-control-allow-methods", "PUT"),
        ("access-control-allow-origin", PAGE),
        ("access-control-max-age", "200"),
        ("vary", "origin"),
    ]);
    assert_eq!(preflight(&[rule], (PAGE, "PUT"), &lists), expected);
}

#[test]
fn every_requested_header_must_be_allowed() {
    let rules = [with_headers(&["x-ms-meta-*", "content-type"], &[])];
    for (lists, is_allowed) in [
        (&[][..], true),
        (&[""], true),
        (&[" , ,"], true),
        (&["content-type"], true),
        (&["Content-Type,X-Ms-Meta-a"], true),
        (&["content-type2"], false),
        (&["content-typ"], false),
        (&["x-ms-meta"], false),
        (&["content-type, x-other"], false),
        (&["content-type", "x-other"], false),
    ] {
        let answer = preflight(&rules, (PAGE, "PUT"), lists);
        assert_eq!(answer.is_some(), is_allowed, "{lists:?}");
    }
    let any = [with_headers(&["*"], &[])];
    assert!(preflight(&any, (PAGE, "PUT"), &["anything, at-all"]).is_some());
    let none = [with_headers(&[], &[])];
    assert!(preflight(&none, (PAGE, "PUT"), &["content-type"]).is_none());
}

#[test]
fn the_first_rule_of_origin_and_method_decides() {
    let strict = with_headers(&[], &["x-first"]);
    let lenient = with_headers(&["*"], &["x-second"]);
    let rules = [rule(&[OTHER], &["PUT"]), rule(&[PAGE], &["GET"]), strict, lenient];

    assert!(preflight(&rules, (PAGE, "PUT"), &["x-any"]).is_none(), "the third rule rejects it");
    let answer = answer(&rules, PAGE, &HeaderMap::new()).expect("allowed");
    assert_eq!(answer["access-control-expose-headers"], "x-first");
}

#[test]
fn origins_and_methods_are_compared_with_regard_to_case() {
    let rules = [rule(&[PAGE], &["PUT"])];
    for (origin, method, is_allowed) in [
        (PAGE, "PUT", true),
        ("https://PAGE.example", "PUT", false),
        ("https://page.example/", "PUT", false),
        ("https://page.example:443", "PUT", false),
        ("http://page.example", "PUT", false),
        ("null", "PUT", false),
        (PAGE, "put", false),
        (PAGE, "PATCH", false),
    ] {
        let answer = preflight(&rules, (origin, method), &[]);
        assert_eq!(answer.is_some(), is_allowed, "{origin} {method}");
    }
    assert!(preflight(&[rule(&["*"], &["PUT"])], ("null", "PUT"), &[]).is_some());
}

#[test]
fn a_rule_for_any_origin_allows_no_credentials() {
    let any = [rule(&["*"], &["PUT"])];
    let expected = pairs(&[("access-control-allow-origin", "*")]);
    assert_eq!(answer(&any, PAGE, &HeaderMap::new()), expected);

    let named = [rule(&[OTHER, PAGE], &["PUT"])];
    let expected = pairs(&[
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-origin", PAGE),
        ("vary", "origin"),
    ]);
    assert_eq!(answer(&named, PAGE, &HeaderMap::new()), expected);
    assert_eq!(answer(&named, "https://third.example", &HeaderMap::new()), None);
}

#[test]
fn a_prefix_exposes_the_headers_that_the_response_has() {
    let rules = [with_headers(&[], &["etag", "x-ms-meta-*"])];
    let response = map(&[
        ("x-ms-meta-color", "red"),
        ("x-ms-meta-size", "1"),
        ("x-ms-version", "2020-12-06"),
        ("content-type", "text/plain"),
    ]);

    let answer = answer(&rules, PAGE, &response).expect("allowed");
    let exposed: Vec<&str> = answer["access-control-expose-headers"].split(',').collect();
    let mut exposed: Vec<&str> = exposed.into_iter().map(str::trim).collect();
    exposed.sort_unstable();
    assert_eq!(exposed, ["etag", "x-ms-meta-color", "x-ms-meta-size"]);
}

#[test]
fn a_method_varies_unless_its_first_rule_is_for_any_origin() {
    let rules = Rules::new(vec![
        rule(&["*"], &["GET"]),
        rule(&[PAGE], &["GET", "PUT"]),
        rule(&["*"], &["PUT", "POST"]),
    ]);

    assert!(!rules.vary(&Method::GET), "any page reads it");
    assert!(rules.vary(&Method::PUT));
    assert!(!rules.vary(&Method::POST));
    assert!(rules.vary(&Method::DELETE), "no rule names it, and a later one may");
    assert!(!Rules::default().vary(&Method::GET));
}

#[test]
fn without_rules_nothing_is_allowed() {
    assert_eq!(preflight(&[], (PAGE, "GET"), &[]), None);
    assert_eq!(answer(&[], PAGE, &HeaderMap::new()), None);
}

proptest! {
    /// A page may send a header exactly where a name or a prefix of the rule matches it in any case.
    #[test]
    fn a_list_names_what_it_matches(
        name in "[a-zA-Z-]{0,6}",
        list in prop::collection::vec("[a-z-]{0,4}\\*?", 0..4),
    ) {
        let lower = name.to_ascii_lowercase();
        let expected = list.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(prefix) => lower.starts_with(prefix),
            None => lower == *allowed,
        });
        prop_assert_eq!(names_of(&list, name.as_bytes()), expected);
    }
}
