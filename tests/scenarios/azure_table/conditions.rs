//! Conditions: every verb, every kind of `If-Match`, on an existing and a missing entity.

use trestle_tests::{Rest, RestRequest};

const NOT_FOUND: (u16, &str) = (404, "ResourceNotFound");
const STALE: (u16, &str) = (412, "UpdateConditionNotSatisfied");
const DONE: (u16, &str) = (204, "");

#[tokio::test]
async fn every_verb_honours_every_condition() {
    let rest = Rest::start();
    rest.table("tab").await;
    let other = rest.insert("tab", r#"{"PartitionKey":"p","RowKey":"other"}"#).await;
    let stale = other.header("etag").to_owned();
    let mut row = 0;
    for (method, no_condition) in [
        ("PUT", DONE),
        ("PATCH", DONE),
        ("MERGE", DONE),
        ("DELETE", (400, "MissingRequiredHeader")),
    ] {
        for (condition, present, absent) in [
            (Some("current"), DONE, NOT_FOUND),
            (Some(&*stale), STALE, NOT_FOUND),
            (Some("*"), DONE, NOT_FOUND),
            (Some(""), (400, "InvalidInput"), (400, "InvalidInput")),
            (Some("nonsense"), (400, "InvalidInput"), (400, "InvalidInput")),
            (Some("\"strong\""), (400, "InvalidInput"), (400, "InvalidInput")),
            // Of another server: a version that does not match.
            (Some("W/\"0x8D4BCC2E4835CD0\""), STALE, NOT_FOUND),
            (Some("w/\"datetime'yesterday'\""), STALE, NOT_FOUND),
            (None, no_condition, no_condition),
        ] {
            row += 1;
            let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}"}}"#);
            let etag = rest.insert("tab", &body).await.header("etag").to_owned();
            for (row, expected) in [(row.to_string(), present), (format!("no{row}"), absent)] {
                let target = format!("/tab(PartitionKey='p',RowKey='{row}')");
                let mut request = RestRequest::json(method, &target, "{}");
                if let Some(condition) = condition {
                    request = request
                        .with("if-match", if condition == "current" { &etag } else { condition });
                }
                let response = rest.send(request).await;
                let found = if response.status == 204 { DONE } else { response.failure() };
                assert_eq!(found, expected, "{method} {condition:?} {row}: {response:?}");
            }
        }
    }
}

#[tokio::test]
async fn if_match_accepts_a_percent_decoded_etag() {
    let rest = Rest::start();
    rest.table("tab").await;
    let etag = rest.insert("tab", r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
    let decoded = etag.header("etag").replace("%3A", ":");

    let merge = || RestRequest::json("PATCH", "/tab(PartitionKey='p',RowKey='r')", "{}");
    let merged = rest.send(merge().with("if-match", &decoded)).await;
    assert_eq!(merged.status, 204, "{merged:?}");
    let escaped = merged.header("etag").replace('\'', "%27");
    assert_eq!(rest.send(merge().with("if-match", &escaped)).await.status, 204);

    let both = RestRequest::json("PUT", "/tab(PartitionKey='p',RowKey='r')", "{}")
        .with("if-match", "*")
        .with("if-none-match", "*");
    assert_eq!(rest.send(both).await.failure(), (400, "InvalidInput"));
    for method in ["PUT", "PATCH", "DELETE"] {
        let alone = RestRequest::json(method, "/tab(PartitionKey='p',RowKey='r')", "{}");
        let response = rest.send(alone.with("if-none-match", "*")).await;
        assert_eq!(response.failure(), (400, "InvalidInput"), "{method}");
    }
    let none =
        RestRequest::json("PUT", "/tab(PartitionKey='p',RowKey='r')", "{}").with("if-match", "x");
    let response = rest.send(none).await;
    let text = "The etag value specified in one of the request headers is not valid.";
    assert!(
        response.text().contains(text) && response.text().contains("value=`x`"),
        "{response:?}"
    );
}

#[tokio::test]
async fn missing_table_takes_precedence() {
    let rest = Rest::start();
    let target = "/absent(PartitionKey='p',RowKey='r')";
    for method in ["PUT", "PATCH", "DELETE"] {
        let response =
            rest.send(RestRequest::json(method, target, "{}").with("if-match", "*")).await;
        assert_eq!(response.failure(), (404, "TableNotFound"), "{method}");
    }
    assert_eq!(
        rest.send(RestRequest::table("GET", target)).await.failure(),
        (404, "TableNotFound")
    );
    assert_eq!(
        rest.send(RestRequest::table("GET", "/absent")).await.failure(),
        (404, "TableNotFound")
    );
}
