//! Heads of requests: addresses, bounds, and headers that are invalid or repeated.

use http::{HeaderValue, Request as HttpRequest};
use tonic::body::Body;

use super::*;

fn request(version: Version, target: &str, headers: &[(&'static str, &str)]) -> Request {
    let peer = Peer { tls: None, ..Peer::in_process() };
    let mut request = HttpRequest::builder().version(version).uri(target).extension(peer);
    for (name, value) in headers {
        request =
            request.header(*name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
    }
    request.body(Body::empty()).expect("a request")
}

fn take(target: &str, headers: &[(&'static str, &str)]) -> Result<RequestHead, Fault> {
    RequestHead::take(&mut request(Version::HTTP_11, target, headers), "table")
}

/// The reason of a rejected head and the field of its first violation.
fn rejected(target: &str, headers: &[(&'static str, &str)]) -> (Reason, String) {
    let fault = take(target, headers).expect_err(target);
    let field = fault.violations.first().map(|violation| violation.field.clone());
    (fault.reason, field.unwrap_or_default())
}

const HOST: (&str, &str) = ("host", "127.0.0.1:10002");

#[test]
fn the_base_address_has_the_account_where_the_client_put_it() {
    for (host, target, base, path) in [
        ("127.0.0.1:10002", "/acme/tab?x=1", "http://127.0.0.1:10002/acme", "/tab"),
        ("127.0.0.1:10002", "/acme", "http://127.0.0.1:10002/acme", "/"),
        ("127.0.0.1:10002", "/acme-secondary/tab", "http://127.0.0.1:10002/acme", "/tab"),
        ("acme.table.localhost:1", "/tab", "http://acme.table.localhost:1", "/tab"),
        ("ACME.Table.localhost", "/", "http://ACME.Table.localhost", "/"),
    ] {
        let head = take(target, &[("host", host)]).expect(target);
        assert_eq!((head.base.as_str(), head.path.as_str()), (base, path), "{host} {target}");
        assert_eq!(head.account.as_str(), "acme", "{host} {target}");
        assert_eq!(head.is_secondary, target.contains("-secondary"), "{target}");
    }
}

#[test]
fn the_scheme_of_the_base_address_is_that_of_the_connection() {
    let mut encrypted = request(Version::HTTP_11, "/acme/tab", &[HOST]);
    encrypted.extensions_mut().insert(Peer::in_process());
    let head = RequestHead::take(&mut encrypted, "table").expect("a head");
    assert_eq!(head.base, "https://127.0.0.1:10002/acme");
}

#[test]
fn the_path_and_the_headers_are_kept_as_they_were_sent() {
    let target = "/acme/tab(PartitionKey='a%20b',RowKey='%27%27')?$filter=a+eq+1";
    let head = take(target, &[HOST, ("accept", "a"), ("accept", "b")]).expect("a head");

    assert_eq!(head.path, "/tab(PartitionKey='a%20b',RowKey='%27%27')");
    assert_eq!(head.uri.to_string(), target);
    assert_eq!(head.params.get("$filter"), Some("a eq 1"));
    assert_eq!(head.headers.get_all("accept").iter().count(), 2);
    assert!(!head.is_http2);
}

#[test]
fn an_invalid_head_leaves_the_headers_of_the_request() {
    let headers = [HOST, ("x-ms-client-request-id", "mine"), ("x-ms-version", "latest")];
    let mut request = request(Version::HTTP_11, "/acme/tab", &headers);

    let fault = RequestHead::take(&mut request, "table").expect_err("an invalid version");

    assert_eq!(fault.reason, Reason::InvalidHeaderValue);
    let id = request.headers().get(CLIENT_REQUEST_ID).expect("the id is echoed in the error");
    assert_eq!(id, "mine");
}

#[test]
fn the_host_is_required_since_http_1_1() {
    assert_eq!(rejected("/acme/tab", &[]), (Reason::MissingRequiredHeader, "Host".to_owned()));
    assert_eq!(rejected("/acme/tab", &[("host", "")]).0, Reason::MissingRequiredHeader);
    let mut early = request(Version::HTTP_10, "/acme/tab", &[]);
    let head = RequestHead::take(&mut early, "table").expect("HTTP/1.0 has no host");
    assert_eq!(head.base, "http://localhost/acme");
    // The authority of HTTP/2, or of an absolute target, takes precedence over the header.
    let mut second = request(Version::HTTP_2, "http://acme.table.example/tab", &[HOST]);
    let head = RequestHead::take(&mut second, "table").expect("a head");
    assert_eq!((head.host.as_str(), head.is_http2), ("acme.table.example", true));
}

#[test]
fn rejects_addresses_without_a_valid_account() {
    for target in ["/", "//tab", "/ab/tab", "/UPPER/tab", "/has-dash/tab", "/a%63me/tab"] {
        assert_eq!(rejected(target, &[HOST]), (Reason::InvalidUri, "path".to_owned()), "{target}");
    }
    let longest = format!("/{}/tab", "a".repeat(24));
    assert!(take(&longest, &[HOST]).is_ok());
    let longer = format!("/{}/tab", "a".repeat(25));
    assert_eq!(rejected(&longer, &[HOST]).0, Reason::InvalidUri);
}

#[test]
fn rejects_headers_that_are_repeated_though_they_have_one_value() {
    for name in ["x-ms-date", "date", "content-type", "content-md5", "if-match", "content-encoding"]
    {
        let sent = (Reason::InvalidHeaderValue, name.to_owned());
        assert_eq!(rejected("/acme/tab", &[HOST, (name, "a"), (name, "a")]), sent, "{name}");
        assert!(take("/acme/tab", &[HOST, (name, "a")]).is_ok(), "{name}");
    }
    let hosts = [HOST, ("host", "127.0.0.1:10002")];
    assert_eq!(rejected("/acme/tab", &hosts).1, "host");
    for name in ["accept", "prefer", "x-ms-meta-a"] {
        assert!(take("/acme/tab", &[HOST, (name, "a"), (name, "b")]).is_ok(), "{name}");
    }
}

#[test]
fn rejects_a_version_that_is_no_date_and_a_query_that_is_not_utf8() {
    for version in ["latest", "2019-02-30", "", "2019-02-02T00:00:00Z", "é"] {
        let (reason, field) = rejected("/acme/tab", &[HOST, ("x-ms-version", version)]);
        assert_eq!((reason, field.as_str()), (Reason::InvalidHeaderValue, "x-ms-version"));
    }
    assert!(take("/acme/tab", &[HOST, ("x-ms-version", "2013-08-15")]).is_ok());
    let invalid = rejected("/acme/tab?$filter=%FF", &[HOST]);
    assert_eq!(invalid, (Reason::InvalidUri, "query".to_owned()));
}

#[test]
fn the_size_of_a_head_is_bounded_and_the_error_names_the_largest_part() {
    let (name, host) = ("x-fill", HOST.1);
    let used = "/acme/t".len() + "host".len() + host.len() + name.len();
    let full = "a".repeat(HEAD_BYTES_MAX - used);
    assert!(take("/acme/t", &[HOST, (name, &full)]).is_ok(), "exactly the bound");
    let over = rejected("/acme/t", &[HOST, (name, &format!("{full}a"))]);
    assert_eq!(over, (Reason::InvalidHeaderValue, "headers".to_owned()));

    let long = format!("/acme/t?$filter={}", "a".repeat(HEAD_BYTES_MAX));
    assert_eq!(rejected(&long, &[HOST]), (Reason::InvalidUri, "path".to_owned()));
}
