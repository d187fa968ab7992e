//! Pages of queries.

use super::*;

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
