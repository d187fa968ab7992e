//! Queries, options and batches that are hostile or malformed.

use trestle_tests::{Rest, RestRequest, RestResponse};

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A query of `tab` with a filter.
async fn filtered(rest: &Rest, filter: &str) -> RestResponse {
    rest.send(RestRequest::table("GET", &format!("/tab()?$filter={}", encoded(filter)))).await
}

#[tokio::test]
async fn rejects_malformed_filters() {
    let rest = Rest::start();
    rest.table("tab").await;
    let deep = format!("{}x eq 1{}", "(".repeat(1500), ")".repeat(1499));
    let nots = format!("{}x", "not ".repeat(1000));
    let many = format!("x eq 1{} or", " or x eq 1".repeat(400));
    for text in [
        "x eq",
        "x eq 1 and",
        "eq 1",
        "x = 1",
        "x EQ 1",
        "x eq 'a",
        "x eq \"a\"",
        "x eq a'b'",
        "x eq null",
        "x eq y",
        "1 eq 1",
        "x eq 1 1",
        "(x eq 1",
        "x eq 1)",
        "x eq 99999999999999999999L",
        "x eq 2147483648",
        "x eq 1e999",
        "x eq 0x1",
        "x eq NaN",
        "x eq datetime'yesterday'",
        "x eq datetime'2026-02-30T00:00:00Z'",
        "x eq datetime'2026-01-01T00:00:00.12345678+1:00'",
        "x eq guid'c9da6455'",
        "x eq X'0'",
        "x eq X'0g'",
        "startswith(x,'a')",
        "x add 1 eq 2",
        "x in (1,2)",
        "x/any(y: y eq 1)",
        "x eq 1; drop",
        "x eq '\u{0}",
        "a-b eq 1",
        "\u{202e}x eq 1 \u{0}",
        deep.as_str(),
        nots.as_str(),
        many.as_str(),
    ] {
        let response = filtered(&rest, text).await;
        let shown: String = text.chars().take(60).collect();
        assert_eq!(response.failure(), (400, "InvalidInput"), "{shown}: {response:?}");
    }
    for raw in ["%FF", "x%20eq%20'%ED%A0%80'", "%C0%A7"] {
        let response = rest.send(RestRequest::table("GET", &format!("/tab()?$filter={raw}"))).await;
        assert_eq!(response.failure(), (400, "InvalidUri"), "{raw}");
    }
    let quotes = "x eq '''%27+\u{e9}'";
    let doubles = ["x lt 1e+16", "x eq 1.5E-3", "x ne -2e2"];
    let plain = ["", " ", "true", "false", "x", "not (x eq 1)", "1 eq x", "(x eq 1)", quotes];
    for text in plain.into_iter().chain(doubles) {
        let response = filtered(&rest, text).await;
        assert_eq!(response.status, 200, "{text}: {response:?}");
    }
}

#[tokio::test]
async fn filters_compare_strings_with_strings_and_times_to_a_tick() {
    let rest = Rest::start();
    rest.table("tab").await;
    for (row, member) in [
        ("double", r#""x":1.5"#),
        ("none", r#""y":1"#),
        ("text", r#""x":"1.5""#),
        ("time", r#""x@odata.type":"Edm.DateTime","x":"2026-01-01T00:00:00.0000001Z""#),
    ] {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}",{member}}}"#);
        rest.insert("tab", &body).await;
    }
    for (filter, rows) in [
        ("x ne ''", &["double", "text", "time"][..]),
        ("x gt ''", &["text"]),
        ("x eq '1.5'", &["text"]),
        ("x eq 1.5", &["double"]),
        ("x eq datetime'2026-01-01T00:00:00.0000001Z'", &["time"]),
        ("x eq datetime'2026-01-01T00:00:00.0000002Z'", &[]),
        ("x eq datetime'2026-01-01T00:00:00Z'", &[]),
    ] {
        let response = filtered(&rest, filter).await;
        assert_eq!(response.status, 200, "{response:?}");
        let body: serde_json::Value = serde_json::from_slice(&response.body).expect("JSON");
        let found = body["value"].as_array().expect("a list").iter();
        let found: Vec<_> = found.map(|row| row["RowKey"].as_str().expect("a key")).collect();
        assert_eq!(found, rows, "{filter}");
    }
}

#[tokio::test]
async fn unsupported_formats_verbs_and_options_have_their_codes() {
    let rest = Rest::start();
    rest.table("tab").await;
    let at = "/tab(PartitionKey='p',RowKey='r')";
    let get = |accept: &str| RestRequest::table("GET", "/tab()").with("accept", accept);
    let post = || RestRequest::json("POST", at, "{}");
    let atom =
        |request: RestRequest| request.with("content-type", "application/atom+xml;type=entry");
    let post_to = |target: &str, body: &str| atom(RestRequest::json("POST", target, body));
    let put = |body: &str| atom(RestRequest::json("PUT", at, body));
    for (request, failure) in [
        (get("application/atom+xml"), (415, "AtomFormatNotSupported")),
        (
            RestRequest::table("GET", "/tab()?$format=application/atom%2Bxml"),
            (415, "AtomFormatNotSupported"),
        ),
        (post_to("/tab", "<entry/>"), (415, "AtomFormatNotSupported")),
        (post_to("/Tables", "<entry/>"), (415, "AtomFormatNotSupported")),
        (put("<entry/>"), (415, "AtomFormatNotSupported")),
        (
            RestRequest::json("PUT", at, "{}").with("x-http-method", "MERGE"),
            (400, "XMethodNotUsingPost"),
        ),
        (post().with("x-http-method", "GET"), (400, "XMethodIncorrectValue")),
        (
            post().and("x-http-method", "PUT").and("x-http-method", "PUT"),
            (400, "XMethodIncorrectCount"),
        ),
        (post(), (405, "UnsupportedHttpVerb")),
        (RestRequest::table("GET", "/$batch"), (405, "UnsupportedHttpVerb")),
        (RestRequest::table("GET", "/tab()?$skip=1"), (501, "NotImplemented")),
        (RestRequest::table("GET", "/tab()?$expand=x"), (501, "NotImplemented")),
        (RestRequest::table("GET", "/Tables?$orderby=TableName"), (501, "NotImplemented")),
        (RestRequest::table("GET", "/tab()?$top=%00"), (400, "InvalidInput")),
        (RestRequest::table("GET", "/tab()?$top=99999999999999999999"), (400, "InvalidInput")),
    ] {
        let response = rest.send(request.clone()).await;
        assert_eq!(response.failure(), failure, "{request:?}");
    }
    // A request without a format gets the default.
    for request in [RestRequest::table("GET", "/tab()").without("accept"), get("*/*")] {
        let response = rest.send(request).await;
        let kind = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
        assert_eq!((response.status, response.header("content-type")), (200, kind), "{response:?}");
    }
    let head = rest.send(RestRequest::table("HEAD", "/tab()")).await;
    assert_eq!((head.status, head.text()), (405, ""));
    assert_eq!(head.header("x-ms-error-code"), "UnsupportedHttpVerb");
}

#[tokio::test]
async fn entity_with_empty_keys_has_entity_metadata() {
    let rest = Rest::start();
    rest.table("tab").await;
    rest.insert("tab", r#"{"PartitionKey":"","RowKey":"","x":1}"#).await;

    let list =
        RestRequest::table("GET", "/tab()").with("accept", "application/json;odata=fullmetadata");
    let response = rest.send(list).await;

    for part in [
        r#""odata.type":"devstoreaccount1.tab""#,
        r#""odata.editLink":"tab(PartitionKey='',RowKey='')""#,
        &format!(r#""odata.metadata":"{}/$metadata#tab""#, rest.base()),
    ] {
        assert!(response.text().contains(part), "{part}: {response:?}");
    }
    assert!(!response.text().contains("#Tables"), "{response:?}");
}

const MULTIPART: &str = "multipart/mixed; boundary=b1";

fn batch(content_type: &str, body: impl AsRef<[u8]>) -> RestRequest {
    RestRequest::table("POST", "/$batch").with("content-type", content_type).body(body)
}

/// A batch with one change set of this text.
fn change_set(parts: &str) -> RestRequest {
    let head = "--b1\r\nContent-Type: multipart/mixed; boundary=c1\r\n\r\n";
    batch(MULTIPART, format!("{head}{parts}--c1--\r\n--b1--\r\n"))
}

/// A part with a request of this text.
fn part(request: &str) -> String {
    format!("--c1\r\nContent-Type: application/http\r\n\r\n{request}\r\n")
}

fn insert(row: &str) -> String {
    let body = format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"}}");
    format!("POST /tab HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{body}")
}

#[tokio::test]
async fn malformed_batches_change_nothing() {
    let rest = Rest::start();
    rest.table("tab").await;
    let good = part(&insert("1"));
    let headers: String = (0..200).map(|at| format!("x-{at}: y\r\n")).collect();
    let long = "b".repeat(5000);
    for request in [
        change_set(&good).with("content-type", "multipart/mixed"),
        change_set(&good).with("content-type", "multipart/mixed; boundary="),
        change_set(&good).with("content-type", "multipart/mixed; boundary=\"b1"),
        change_set(&good).with("content-type", "multipart/form-data; boundary=b1"),
        change_set(&good).with("content-type", "application/json"),
        batch(&format!("multipart/mixed; boundary={long}"), format!("--{long}\r\n{good}")),
        batch(MULTIPART, [0_u8, 0xFF, 0xFE, b'-', b'-', b'b', b'1']),
        batch(MULTIPART, "--b1\r\n".repeat(20_000)),
        batch(MULTIPART, format!("--b1\r\n{headers}\r\n--b1--")),
        batch(MULTIPART, "--b1\r\nContent-Type application/http\r\n\r\nGET /tab HTTP/1.1\r\n"),
        // Changes outside of a change set.
        batch(
            MULTIPART,
            format!("--b1\r\nContent-Type: application/http\r\n\r\n{}\r\n--b1--", insert("1")),
        ),
        change_set(&part("nonsense")),
        change_set(&part("POST /tab")),
        change_set(&part("POST /tab HTTP/2")),
        change_set(&part("POST /tab HTTP/1.1\r\n: x\r\n\r\n{}")),
        change_set(&part(&insert("1").replacen("\r\n", &format!("\r\n{headers}"), 1))),
        change_set(&part(&insert("1").replace("/json", "/json\u{0}"))),
        change_set(&part("\u{0}")),
    ] {
        let response = rest.send(request.clone()).await;
        let shown: String = format!("{request:?}").chars().take(300).collect();
        assert_eq!(response.failure(), (400, "InvalidInput"), "{shown}: {response:?}");
    }
    let none = rest.send(RestRequest::table("GET", "/tab()")).await;
    assert_eq!(none.text(), r#"{"value":[]}"#);
    let done = rest.send(change_set(&good)).await;
    assert!(done.text().contains("HTTP/1.1 201 Created"), "{done:?}");
}

/// The status and the code of the part that failed.
fn failed(response: &RestResponse) -> (u16, &str) {
    assert_eq!(response.status, 202, "{response:?}");
    let status = response.text().split("HTTP/1.1 ").nth(1).expect("a part");
    let code = response.text().split("\"code\":\"").nth(1).expect("a code");
    (status[..3].parse().expect("a status"), code.split('"').next().unwrap_or_default())
}

#[tokio::test]
async fn batch_requests_are_validated_like_single_requests() {
    let rest = Rest::start();
    rest.table("tab").await;
    let to = |target: &str| insert("1").replace("/tab", target);
    for (request, failure) in [
        (insert("1").replace("{\"P", "{{\"P"), (400, "InvalidInput")),
        (insert("1").replace("\"RowKey\"", "\"Row"), (400, "InvalidInput")),
        (insert("1").replace("\"p\"", "\"\\ud800\""), (400, "InvalidInput")),
        (insert("1").replace("POST", "TRACE"), (405, "UnsupportedHttpVerb")),
        (to("/"), (400, "InvalidUri")),
        (to("/..%2f..%2fetc"), (404, "ResourceNotFound")),
        (to("/%2e%2e"), (400, "InvalidResourceName")),
        (to("/tab%00"), (400, "InvalidResourceName")),
        (to("/tab%zz"), (400, "InvalidInput")),
        (to("http://127.0.0.1/absent/tab"), (404, "ResourceNotFound")),
        (insert("/"), (400, "OutOfRangeInput")),
    ] {
        let response = rest.send(change_set(&part(&request))).await;
        assert_eq!(failed(&response), failure, "{request}: {response:?}");
    }
    // An operation that a change set must not have.
    for target in ["/$batch", "/Tables", "/tab?comp=acl"] {
        let response = rest.send(change_set(&part(&to(target)))).await;
        assert!((400..=501).contains(&failed(&response).0), "{target}: {response:?}");
    }
    let none = rest.send(RestRequest::table("GET", "/tab()")).await;
    assert_eq!(none.text(), r#"{"value":[]}"#);
}
