//! The tables themselves.

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

#[tokio::test]
async fn a_slash_at_the_end_of_a_path_is_ignored() {
    let rest = Rest::start();
    let create = RestRequest::json("POST", "/Tables/", r#"{"TableName":"tab"}"#);
    assert_eq!(rest.send(create).await.status, 201);
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    assert_eq!(rest.send(RestRequest::json("POST", "/tab/", entity)).await.status, 201);
    for target in [
        "/Tables/",
        "/Tables()/",
        "/Tables('tab')/",
        "/tab/",
        "/tab()/?$top=1",
        "/tab/?comp=acl",
        "/tab(PartitionKey='p',RowKey='r')/",
    ] {
        let response = rest.send(RestRequest::table("GET", target)).await;
        assert_eq!(response.status, 200, "{target}: {response:?}");
    }
    assert_eq!(rest.send(RestRequest::table("DELETE", "/Tables('tab')/")).await.status, 204);
}

#[tokio::test]
async fn batches_and_service_operations_work_under_a_table_path() {
    let rest = Rest::start();
    rest.table("tab").await;
    let body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\
        Content-Type: application/http\r\n\r\nPOST /tab HTTP/1.1\r\n\
        Content-Type: application/json\r\nPrefer: return-no-content\r\n\r\n\
        {\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\r\n--c--\r\n--b--\r\n";
    for path in ["/tab/$batch", "/$batch/"] {
        let request = RestRequest::table("POST", path)
            .with("content-type", "multipart/mixed; boundary=b")
            .body(body);
        let response = rest.send(request).await;
        assert_eq!(response.status, 202, "{path}: {response:?}");
    }
    let entity = RestRequest::table("GET", "/tab(PartitionKey='p',RowKey='r')");
    assert_eq!(rest.send(entity).await.status, 200);
    for path in ["/tab", "/tab/", "/"] {
        let target = format!("{path}?restype=service&comp=properties");
        let get = RestRequest::table("GET", &target).with("accept", "application/xml");
        let response = rest.send(get).await;
        assert_eq!(response.status, 200, "{path}: {response:?}");
        assert!(response.text().contains("<StorageServiceProperties>"), "{response:?}");
    }
}

#[tokio::test]
async fn table_names_are_validated_on_every_operation() {
    let rest = Rest::start();
    let create = |body: &str| RestRequest::json("POST", "/Tables", body);
    for (name, code) in [
        ("ab", "OutOfRangeInput"),
        ("1ab", "InvalidResourceName"),
        ("a-b", "InvalidResourceName"),
        ("tables", "InvalidResourceName"),
        ("$MetricsX", "InvalidResourceName"),
    ] {
        let response = rest.send(create(&format!(r#"{{"TableName":"{name}"}}"#))).await;
        assert_eq!(response.failure(), (400, code), "{name}");
        if code == "InvalidResourceName" {
            assert!(
                response.text().contains("The specifed resource name contains invalid characters.")
            );
        }
    }
    let long = "a".repeat(64);
    for (name, code) in [
        ("ab", "OutOfRangeInput"),
        (&*long, "OutOfRangeInput"),
        ("a-b", "InvalidResourceName"),
        ("1ab", "InvalidResourceName"),
        ("t%C3%A4b", "InvalidResourceName"),
    ] {
        for (method, target) in [
            ("GET", format!("/{name}()")),
            ("GET", format!("/{name}?comp=acl")),
            ("DELETE", format!("/Tables('{name}')")),
            ("GET", format!("/Tables('{name}')")),
        ] {
            let response = rest.send(RestRequest::table(method, &target)).await;
            assert_eq!(response.failure(), (400, code), "{method} {target}");
        }
        let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
        let response = rest.send(RestRequest::json("POST", &format!("/{name}"), entity)).await;
        assert_eq!(response.failure(), (400, code), "{name}");
    }
    let longest = format!(r#"{{"TableName":"{}"}}"#, "a".repeat(63));
    assert_eq!(rest.send(create(&longest)).await.status, 201);
    assert_eq!(rest.send(create("{}")).await.failure(), (400, "PropertiesNeedValue"));
    let response = rest.send(RestRequest::table("GET", "/a-b(PartitionKey='p',RowKey='r')")).await;
    assert_eq!(response.failure(), (400, "InvalidResourceName"));
    let response =
        rest.send(RestRequest::table("GET", "/$MetricsHourPrimaryTransactionsTable")).await;
    assert_eq!(response.failure(), (404, "ResourceNotFound"));
}

#[tokio::test]
async fn table_in_the_service_uri_is_reported() {
    let rest = Rest::start();
    let create = || RestRequest::json("POST", "/tab/Tables", r#"{"TableName":"other"}"#);
    assert_eq!(rest.send(create()).await.failure(), (404, "TableNotFound"));
    rest.table("tab").await;
    assert_eq!(rest.send(create()).await.failure(), (400, "PropertiesNeedValue"));
    let response = rest.send(RestRequest::table("DELETE", "/tab/Tables('x')")).await;
    assert_eq!(response.failure(), (400, "InvalidInput"));
    assert!(response.text().contains(
        "The number of keys specified in the URI does not match number of key properties for the \
             resource"
    ));
}
