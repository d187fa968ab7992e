//! Queries: filters, projections, pages.

mod pages;
mod projection;

use trestle_tests::{Rest, RestRequest, RestResponse};

fn rows(response: &RestResponse) -> Vec<String> {
    assert_eq!(response.status, 200, "{response:?}");
    let body: serde_json::Value = serde_json::from_slice(&response.body).expect("JSON");
    let entities = body["value"].as_array().expect("a list");
    entities.iter().map(|entity| entity["RowKey"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Inserts numbered rows with further members.
async fn fill(rest: &Rest, rows: std::ops::Range<usize>, members: &str) {
    for row in rows {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row:02}","n":{row}{members}}}"#);
        rest.insert("tab", &body).await;
    }
}

#[tokio::test]
async fn applies_filter_and_select() {
    let rest = Rest::start();
    rest.table("tab").await;
    fill(&rest, 0..5, "").await;

    let response = rest
        .send(RestRequest::table("GET", "/tab()?$filter=n+ge+3%20and%20PartitionKey+eq+'p'"))
        .await;
    assert_eq!(rows(&response), ["03", "04"]);
    assert_eq!(response.header("etag"), "");
    let response =
        rest.send(RestRequest::table("GET", "/tab?$filter=n%20eq%201&$select=no,n")).await;
    assert_eq!(response.text(), r#"{"value":[{"n":1,"no":null}]}"#);
    let minimal = RestRequest::table("GET", "/tab?$filter=n%20eq%201&$select=n")
        .with("accept", "application/json");
    let response = rest.send(minimal).await;
    let start = format!(
        r#"{{"odata.metadata":"{}/$metadata#tab&$select=n","value":[{{"odata.etag":"W/"#,
        rest.base()
    );
    assert!(response.text().starts_with(&start), "{response:?}");
    let one = rest
        .send(RestRequest::table("GET", "/tab(PartitionKey='p',RowKey='01')?$select=RowKey,no"))
        .await;
    assert_eq!(one.text(), r#"{"RowKey":"01","no":null}"#);

    let response = rest.send(RestRequest::table("GET", "/tab?$filter=aaa%20bbb%20ccc")).await;
    assert_eq!(response.failure(), (400, "InvalidInput"));
    let expected = r#""value":"Syntax error at position 7 in 'aaa bbb ccc'."#;
    assert!(response.text().contains(expected), "{response:?}");
    let response = rest.send(RestRequest::table("GET", "/Tables?$filter=aaa%20bbb%20ccc")).await;
    assert!(response.text().contains(expected), "{response:?}");
    let response = rest.send(RestRequest::table("GET", "/tab?$filter=n%20eq%20null")).await;
    assert_eq!(response.failure(), (400, "InvalidInput"));
    let body = r#"{"PartitionKey":"p","RowKey":"new"}"#;
    for request in [
        RestRequest::table("GET", "/tab?$orderby=n"),
        RestRequest::table("GET", "/Tables('tab')?$orderby=n"),
        RestRequest::table("DELETE", "/Tables('tab')?$orderby=n"),
        RestRequest::json("POST", "/tab?$expand=n", body),
    ] {
        assert_eq!(rest.send(request).await.failure(), (501, "NotImplemented"));
    }
    assert_eq!(rows(&rest.send(RestRequest::table("GET", "/tab")).await).len(), 5);
    // Half of a continuation token is invalid.
    for half in ["1!4!abcd", "1!0!", "x"] {
        let target = format!("/tab?NextRowKey={half}");
        let response = rest.send(RestRequest::table("GET", &target)).await;
        assert_eq!(response.failure(), (400, "InvalidQueryParameterValue"), "{half}");
    }
}
