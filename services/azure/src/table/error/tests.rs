//! The form of an error: JSON or XML, its level, and its members.

use http::{HeaderValue, Request, header};
use http_body_util::BodyExt as _;
use serde_json::Value;
use trestle_model::fault::{Fault, Reason};
use trestle_model::time::Ticks;

use super::*;

fn head(method: &str, target: &str, headers: &[(&'static str, &str)]) -> RequestHead {
    let mut request = Request::builder().method(method).uri(target).header("host", "127.0.0.1");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    RequestHead::take(&mut request.body(Body::empty()).expect("a request"), "table")
        .expect("a head")
}

fn failure(reason: Reason, message: &str) -> ErrorResponse {
    let at = Ticks::from_unix(1_795_262_400, 0).expect("in range");
    ErrorResponse::new(Fault::new(reason, message).into(), "id-1", at)
}

/// The content type of the error of a request to a table.
fn content_type(reason: Reason, query: &str, headers: &[(&'static str, &str)]) -> String {
    let head = head("GET", &format!("/acme/tab{query}"), headers);
    let answer = render(&failure(reason, "text"), &head.headers, Some(&head));
    answer.headers()[header::CONTENT_TYPE].to_str().expect("text").to_owned()
}

async fn body_of(answer: Response<Body>) -> String {
    let length = answer.headers()[header::CONTENT_LENGTH].to_str().expect("text").to_owned();
    let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
    assert_eq!(length, bytes.len().to_string());
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn an_error_of_an_operation_is_json_at_the_level_of_the_request() {
    for (accept, level) in [
        ("application/json;odata=nometadata", Level::None),
        ("application/json", Level::Minimal),
        ("application/json;odata=fullmetadata", Level::Full),
        ("*/*", Level::Minimal),
    ] {
        let found = content_type(Reason::TableNotFound, "", &[("accept", accept)]);
        assert_eq!(found, level.content_type(), "{accept}");
    }
    let format = "?$format=application/json;odata=nometadata";
    let found = content_type(Reason::TableNotFound, format, &[("accept", "text/html")]);
    assert_eq!(found, Level::None.content_type(), "the parameter takes precedence");
    assert_eq!(content_type(Reason::TableNotFound, "", &[]), Level::Minimal.content_type());
}

#[test]
fn an_error_of_authentication_is_xml_unless_the_request_names_json() {
    for reason in [
        Reason::AuthenticationFailed,
        Reason::NoAuthenticationInformation,
        Reason::AuthorizationPermissionMismatch,
    ] {
        assert_eq!(content_type(reason, "", &[]), XML, "{reason:?}");
        assert_eq!(content_type(reason, "", &[("accept", "*/*")]), XML, "{reason:?}");
        let json = content_type(reason, "", &[("accept", "application/json;odata=nometadata")]);
        assert_eq!(json, Level::None.content_type(), "{reason:?}");
    }
}

#[test]
fn an_error_of_an_operation_in_xml_and_of_a_client_without_json_is_xml() {
    let json = [("accept", "application/json")];
    assert_eq!(content_type(Reason::TableNotFound, "?comp=acl", &json), XML);
    assert_eq!(content_type(Reason::TableNotFound, "?COMP=", &json), XML);
    let atom = [("accept", "application/atom+xml")];
    assert_eq!(content_type(Reason::AtomFormatNotSupported, "", &atom), XML);
}

#[test]
fn an_error_without_a_head_is_xml_unless_the_headers_name_json() {
    let response = failure(Reason::InvalidUri, "no account");
    let kind = |headers: &HeaderMap| {
        let answer = render(&response, headers, None);
        answer.headers()[header::CONTENT_TYPE].to_str().expect("text").to_owned()
    };
    assert_eq!(kind(&HeaderMap::new()), XML);
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    assert_eq!(kind(&headers), Level::Minimal.content_type());
}

#[tokio::test]
async fn the_json_of_an_error_has_code_and_message_alone() {
    let head = head("GET", "/acme/tab", &[]);
    let response = failure(Reason::EntityAlreadyExists, "a \"quoted\"\nkey\u{1}<");

    let body = body_of(render(&response, &head.headers, Some(&head))).await;

    let body: Value = serde_json::from_str(&body).expect("JSON");
    let expected = json!({ "odata.error": {
        "code": "EntityAlreadyExists",
        "message": { "lang": "en-US", "value": response.message() },
    } });
    assert_eq!(body, expected);
    let text = body["odata.error"]["message"]["value"].as_str().expect("text");
    assert!(text.starts_with("The specified entity already exists.\n"), "{text}");
    assert!(text.ends_with("\nRequestId:id-1\nTime:2026-11-21T12:00:00.0000000Z"), "{text}");
}

#[tokio::test]
async fn the_xml_of_an_error_escapes_its_text() {
    let head = head("GET", "/acme/tab?comp=acl", &[]);
    let response = failure(Reason::InvalidInput, "<a> & \"b\"\u{1}\u{ffff}\r\té");

    let body = body_of(render(&response, &head.headers, Some(&head))).await;

    assert!(body.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?><m:error xmlns:m="));
    assert!(body.contains("<m:code>InvalidInput</m:code>"), "{body}");
    assert!(body.contains("\n&lt;a&gt; &amp; \"b\"\té\nRequestId:"), "{body}");
    assert!(body.ends_with("</m:message></m:error>"), "{body}");
}

#[test]
fn only_the_error_of_an_insert_has_the_applied_preference() {
    let applied = |method, headers: &[(&'static str, &str)]| {
        let head = head(method, "/acme/tab", headers);
        let response = failure(Reason::EntityAlreadyExists, "text");
        let answer = render(&response, &head.headers, Some(&head));
        answer.headers().get("preference-applied").cloned()
    };
    let prefer = ("prefer", "return-no-content");
    let expected = Some(HeaderValue::from_static("return-no-content"));
    assert_eq!(applied("POST", &[prefer]), expected);
    assert_eq!(applied("POST", &[]), None);
    assert_eq!(applied("PUT", &[prefer]), None);
    assert_eq!(applied("POST", &[prefer, ("x-http-method", "MERGE")]), None);
}
