//! One entity: insert, get, update, merge, upsert, delete.

use trestle_tests::{Ask, Rest};

const BODY: &str = r#"{"PartitionKey":"p","RowKey":"r","Timestamp":null,"age":"39","age@odata.type":"Edm.Int64","ratio":3.0,"none":null}"#;

#[tokio::test]
async fn an_entity_lives_through_all_its_operations() {
    let rest = Rest::start();
    rest.table("tab").await;

    let inserted = rest.send(Ask::json("POST", "/Tab", BODY)).await;
    assert_eq!(inserted.status, 201, "{inserted:?}");
    let at = format!("{}/Tab(PartitionKey='p',RowKey='r')", rest.base());
    assert_eq!(inserted.header("location"), at);
    assert_eq!(inserted.header("preference-applied"), "");
    let etag = inserted.header("etag").to_owned();
    let body = inserted.text();
    assert!(body.starts_with(r#"{"PartitionKey":"p","RowKey":"r","Timestamp":"2"#), "{body}");
    assert!(body.ends_with(r#"Z","age":"39","ratio":3.0}"#), "{body}");

    let got = rest.send(Ask::new("GET", "/tab(PartitionKey='p',RowKey='r')")).await;
    assert_eq!((got.status.as_u16(), got.text(), got.header("etag")), (200, body, &*etag));

    let merge = Ask::json("PATCH", "/tab(PartitionKey='p',RowKey='r')", r#"{"open":true}"#);
    let merged = rest.send(merge.with("if-match", &etag)).await;
    assert_eq!((merged.status.as_u16(), merged.text()), (204, ""));
    let changed = merged.header("etag").to_owned();
    assert_ne!(changed, etag);
    let stale =
        Ask::json("PUT", "/tab(PartitionKey='p',RowKey='r')", r"{}").with("if-match", &etag);
    assert_eq!(rest.send(stale).await.failure(), (412, "UpdateConditionNotSatisfied"));

    let deleted = rest
        .send(Ask::new("DELETE", "/tab(PartitionKey='p',RowKey='r')").with("if-match", "*"))
        .await;
    assert_eq!((deleted.status.as_u16(), deleted.header("etag")), (204, ""));
    let got = rest.send(Ask::new("GET", "/tab(PartitionKey='p',RowKey='r')")).await;
    assert_eq!(got.failure(), (404, "ResourceNotFound"));
}
