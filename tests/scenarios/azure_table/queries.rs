//! Queries: filters, projections, pages.

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

#[tokio::test]
async fn select_of_control_data_returns_no_properties() {
    let rest = Rest::start();
    rest.table("tab").await;
    fill(&rest, 0..1, "").await;
    for (names, members) in [
        ("odata.etag,PartitionKey", r#""PartitionKey":"p""#),
        ("n,n@odata.type", r#""n":0"#),
        ("odata.type,odata.id,n", r#""n":0"#),
        ("odata.etag", ""),
    ] {
        let target = format!("/tab(PartitionKey='p',RowKey='00')?$select={names}");
        let response = rest.send(RestRequest::table("GET", &target)).await;
        assert_eq!(response.text(), format!("{{{members}}}"), "{names}");
        let full = RestRequest::table("GET", &target)
            .with("accept", "application/json;odata=fullmetadata");
        let response = rest.send(full).await;
        let (text, named) = (response.text(), format!("@Element&$select={names}\""));
        assert!(text.contains(&named), "{names}: {text}");
        for member in ["odata.etag", "odata.type", "odata.id"] {
            assert_eq!(text.matches(&format!("\"{member}\":")).count(), 1, "{names}: {text}");
        }
        assert!(!text.contains("null"), "{names}: {text}");
    }
}

#[tokio::test]
async fn continuation_works_after_its_entity_was_deleted() {
    let rest = Rest::start();
    rest.table("tab").await;
    fill(&rest, 0..7, "").await;

    let first = rest.send(RestRequest::table("GET", "/tab?$top=3")).await;
    assert_eq!(rows(&first), ["00", "01", "02"]);
    let token = first.header("x-ms-continuation-nextpartitionkey").to_owned();
    assert!(token.starts_with("1!"), "{first:?}");
    let deleted =
        RestRequest::table("DELETE", "/tab(PartitionKey='p',RowKey='03')").with("if-match", "*");
    assert_eq!(rest.send(deleted).await.status, 204);
    let target =
        |token: &str| format!("/tab?$top=3&NextPartitionKey={}", token.replace('!', "%21"));
    let second = rest.send(RestRequest::table("GET", &target(&token))).await;
    assert_eq!(rows(&second), ["04", "05", "06"]);
    let last = second.header("x-ms-continuation-nextpartitionkey").to_owned();
    if !last.is_empty() {
        let third = rest.send(RestRequest::table("GET", &target(&last))).await;
        assert_eq!(rows(&third), [""; 0]);
        assert_eq!(third.header("x-ms-continuation-nextpartitionkey"), "");
    }
    // An empty continuation token is ignored; a damaged one, or one of another query, is rejected.
    assert_eq!(
        rows(&rest.send(RestRequest::table("GET", "/tab?NextPartitionKey=&NextRowKey=")).await)
            .len(),
        6
    );
    for target in [
        "/tab?NextPartitionKey=x".to_owned(),
        format!("{}A", target(&token)),
        format!("{}&$filter=n+eq+1", target(&token)),
    ] {
        let response = rest.send(RestRequest::table("GET", &target)).await;
        assert_eq!(response.failure(), (400, "InvalidQueryParameterValue"), "{target}");
    }
}

#[tokio::test]
async fn top_limits_a_page_and_zero_is_an_empty_last_page() {
    let rest = Rest::start();
    rest.table("tab").await;
    fill(&rest, 0..2, "").await;

    let none = rest.send(RestRequest::table("GET", "/tab?$top=0")).await;
    assert_eq!(none.text(), r#"{"value":[]}"#);
    assert_eq!(none.header("x-ms-continuation-nextpartitionkey"), "");
    assert_eq!(rows(&rest.send(RestRequest::table("GET", "/tab?$top=1000")).await).len(), 2);
    for top in ["1001", "-1", "x"] {
        let response = rest.send(RestRequest::table("GET", &format!("/tab?$top={top}"))).await;
        assert_eq!(response.failure(), (400, "InvalidInput"), "{top}");
    }
}

#[tokio::test]
async fn large_page_is_complete() {
    let rest = Rest::start();
    rest.table("tab").await;
    let members = format!(r#","s":"{}""#, "x".repeat(20_000));
    fill(&rest, 0..40, &members).await;

    let response = rest.send(RestRequest::table("GET", "/tab")).await;

    assert_eq!(response.header("content-length"), "", "longer than what is rendered at once");
    let all: Vec<String> = (0..40).map(|row| format!("{row:02}")).collect();
    assert_eq!(rows(&response), all);
    assert!(response.body.len() > 800_000);
}

#[tokio::test]
async fn select_star_selects_all_and_too_many_names_are_rejected() {
    let rest = Rest::start();
    rest.table("tab").await;
    fill(&rest, 0..1, "").await;

    let whole = rest.send(RestRequest::table("GET", "/tab")).await;
    assert!(whole.text().contains("\"n\":0"), "{whole:?}");
    for select in ["", "*", "n,*"] {
        let response =
            rest.send(RestRequest::table("GET", &format!("/tab?$select={select}"))).await;
        assert_eq!(response.text(), whole.text(), "{select}");
    }
    let names = |count: usize| (0..count).map(|at| format!("a{at}")).collect::<Vec<_>>().join(",");
    let response =
        rest.send(RestRequest::table("GET", &format!("/tab?$select={}", names(255)))).await;
    assert_eq!(response.text().matches("null").count(), 255, "{response:?}");
    let response =
        rest.send(RestRequest::table("GET", &format!("/tab?$select={}", names(256)))).await;
    assert_eq!(response.failure(), (400, "InvalidInput"));
}

#[tokio::test]
async fn next_page_may_change_top_and_select() {
    let rest = Rest::start();
    rest.table("tab").await;
    fill(&rest, 0..4, "").await;

    let first =
        rest.send(RestRequest::table("GET", "/tab?$top=2&$filter=n+ge+0&$select=RowKey")).await;
    let token = first.header("x-ms-continuation-nextpartitionkey").replace('!', "%21");
    // Clients read both headers, and one of them without a check.
    let row = first.header("x-ms-continuation-nextrowkey").replace('!', "%21");
    assert!(row.starts_with("1%21"), "{first:?}");
    let target = format!("/tab?$top=1&$filter=n+ge+0&NextPartitionKey={token}&NextRowKey={row}");
    let second = rest.send(RestRequest::table("GET", &target)).await;

    assert_eq!(rows(&second), ["02"]);
    assert!(second.text().contains("\"n\":2"), "{second:?}");
}
