//! Paths of tables.

use super::*;

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
async fn batches_and_service_operations_are_rejected_below_a_table() {
    let rest = Rest::start();
    rest.table("tab").await;
    let body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\
        Content-Type: application/http\r\n\r\nPOST /tab HTTP/1.1\r\n\
        Content-Type: application/json\r\nPrefer: return-no-content\r\n\r\n\
        {\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\r\n--c--\r\n--b--\r\n";
    for (path, expected) in [("/tab/$batch", 415), ("/$batch/", 202)] {
        let request = RestRequest::table("POST", path)
            .with("content-type", "multipart/mixed; boundary=b")
            .body(body);
        let response = rest.send(request).await;
        assert_eq!(response.status, expected, "{path}: {response:?}");
        let sentence = "None of the provided media types are supported.";
        assert_eq!(response.text().contains(sentence), expected == 415, "{response:?}");
    }
    let entity = RestRequest::table("GET", "/tab(PartitionKey='p',RowKey='r')");
    assert_eq!(rest.send(entity).await.status, 200);
    for path in ["/tab", "/tab/"] {
        let target = format!("{path}?restype=service&comp=properties");
        let get = RestRequest::table("GET", &target).with("accept", "application/xml");
        let response = rest.send(get).await;
        assert_eq!(response.failure(), (400, "InvalidQueryParameterValue"), "{path}");
    }
    let insert = RestRequest::json("POST", "/tab//", r#"{"PartitionKey":"p","RowKey":"s"}"#);
    assert_eq!(rest.send(insert).await.failure(), (400, "InvalidResourceName"));
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
    let delete = || RestRequest::table("DELETE", "/tab/Tables('x')");
    assert_eq!(rest.send(delete()).await.failure(), (404, "TableNotFound"));
    rest.table("tab").await;
    assert_eq!(rest.send(create()).await.failure(), (400, "PropertiesNeedValue"));
    let response = rest.send(delete()).await;
    assert_eq!(response.failure(), (400, "InvalidInput"));
    assert!(response.text().contains(
        "The number of keys specified in the URI does not match number of key properties for the \
             resource"
    ));
}
