//! The tables themselves.

mod paths;

use trestle_tests::{Rest, RestRequest};

#[tokio::test]
async fn table_is_created_listed_and_deleted() {
    let rest = Rest::start();
    let create =
        |name: &str| RestRequest::json("POST", "/Tables", &format!(r#"{{"TableName":"{name}"}}"#));

    let response = rest.send(create("Orders").with("accept", "application/json")).await;
    assert_eq!(response.status, 201, "{response:?}");
    let metadata = format!(
        r#"{{"odata.metadata":"{}/$metadata#Tables/@Element","TableName":"Orders"}}"#,
        rest.base()
    );
    assert_eq!(response.text(), metadata);
    assert_eq!(response.header("location"), format!("{}/Tables('Orders')", rest.base()));
    assert_eq!(rest.send(create("orders")).await.failure(), (409, "TableAlreadyExists"));
    let minimal = rest.send(create("beta").with("prefer", "return-no-content")).await;
    assert_eq!((minimal.status, minimal.text()), (204, ""));
    assert_eq!(minimal.header("dataserviceid"), format!("{}/Tables('beta')", rest.base()));

    let list = rest.send(RestRequest::table("GET", "/Tables")).await;
    assert_eq!(list.text(), r#"{"value":[{"TableName":"beta"},{"TableName":"Orders"}]}"#);
    let first = rest.send(RestRequest::table("GET", "/Tables()?$top=1")).await;
    assert_eq!(first.text(), r#"{"value":[{"TableName":"beta"}]}"#);
    let token = first.header("x-ms-continuation-nexttablename").to_owned();
    let second = rest
        .send(RestRequest::table("GET", &format!("/Tables?$top=1&NextTableName={token}")))
        .await;
    assert_eq!(second.text(), r#"{"value":[{"TableName":"Orders"}]}"#);
    let found = RestRequest::table(
        "GET",
        "/Tables?$filter=TableName%20ge%20'o'%20and%20TableName%20lt%20'p'",
    );
    assert_eq!(rest.send(found).await.text(), second.text());
    let one = rest.send(RestRequest::table("GET", "/Tables('ORDERS')")).await;
    assert_eq!(one.text(), r#"{"TableName":"Orders"}"#);
    let full = RestRequest::table("GET", "/Tables('beta')")
        .with("accept", "application/json;odata=fullmetadata");
    assert!(rest.send(full).await.text().contains(r#""odata.editLink":"Tables('beta')""#));

    assert_eq!(rest.send(RestRequest::table("DELETE", "/Tables('orders')")).await.status, 204);
    for method in ["DELETE", "GET"] {
        let response = rest.send(RestRequest::table(method, "/Tables('Orders')")).await;
        assert_eq!(response.failure(), (404, "ResourceNotFound"));
    }
    assert_eq!(rest.send(create("Orders")).await.status, 201);
}

#[tokio::test]
async fn table_is_described_at_each_metadata_level() {
    let rest = Rest::start();
    let base = rest.base();
    let full = format!(
        "\"odata.type\":\"devstoreaccount1.Tables\",\"odata.id\":\"{base}/Tables('tab')\",\
         \"odata.editLink\":\"Tables('tab')\",\"TableName\":\"tab\""
    );
    let name = "\"TableName\":\"tab\"".to_owned();
    let metadata = |of: &str| format!("\"odata.metadata\":\"{base}/$metadata#Tables{of}\",");
    for (level, has_metadata, own) in
        [("no", false, &name), ("minimal", true, &name), ("full", true, &full)]
    {
        let accept = format!("application/json;odata={level}metadata");
        let annotation = |of: &str| if has_metadata { metadata(of) } else { String::new() };
        let create = RestRequest::json("POST", "/Tables", r#"{"TableName":"tab"}"#);
        let created = rest.send(create.with("accept", &accept)).await;
        let one =
            rest.send(RestRequest::table("GET", "/Tables('tab')").with("accept", &accept)).await;
        let list = rest.send(RestRequest::table("GET", "/Tables").with("accept", &accept)).await;

        let element = format!("{{{}{own}}}", annotation("/@Element"));
        assert_eq!((created.status, created.text()), (201, &*element), "{level}");
        assert_eq!((one.status, one.text()), (200, &*element), "{level}");
        assert_eq!(list.text(), format!("{{{}\"value\":[{{{own}}}]}}", annotation("")), "{level}");
        let kind = format!("{accept};streaming=true;charset=utf-8");
        for response in [&created, &one, &list] {
            assert_eq!(response.header("content-type"), kind);
        }
        assert_eq!(rest.send(RestRequest::table("DELETE", "/Tables('tab')")).await.status, 204);
    }
}

#[tokio::test]
async fn list_tables_takes_query_options() {
    let rest = Rest::start();
    rest.table("tab").await;
    for (query, failure) in [
        ("$filter=Other%20eq%20'x'", (400, "InvalidInput")),
        ("$filter=TableName%20eq", (400, "InvalidInput")),
        ("$top=1001", (400, "InvalidInput")),
        ("$top=x", (400, "InvalidInput")),
        ("NextTableName=x", (400, "InvalidQueryParameterValue")),
        ("$skip=1", (501, "NotImplemented")),
    ] {
        let response = rest.send(RestRequest::table("GET", &format!("/Tables?{query}"))).await;
        assert_eq!(response.failure(), failure, "{query}");
    }
    for query in ["", "NextTableName=", "$top=1000", "$filter=", "$filter=TableName%20ne%20'x'"] {
        let response = rest.send(RestRequest::table("GET", &format!("/Tables?{query}"))).await;
        assert_eq!(response.text(), r#"{"value":[{"TableName":"tab"}]}"#, "{query}");
    }
}
