//! Tables through the crate that Rust programs have for them, with the key of the account.

use azure_data_tables::{IfMatchCondition, prelude::*};
use futures::StreamExt;
use legacy_core::StatusCode;
use serde::{Deserialize, Serialize};
use trestle_azure_clients::{
    BusyProxy, name,
    tables::{Level, builder, error_of},
    target,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Order {
    #[serde(rename = "PartitionKey")]
    partition: String,
    #[serde(rename = "RowKey")]
    row: String,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    count: Option<i32>,
    #[serde(rename = "total@odata.type", default, skip_serializing_if = "Option::is_none")]
    total_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<String>,
}

fn order(partition: &str, row: &str) -> Order {
    Order {
        partition: partition.to_owned(),
        row: row.to_owned(),
        state: Some("open".to_owned()),
        count: Some(7),
        total_type: Some("Edm.Int64".to_owned()),
        total: Some(i64::MAX.to_string()),
    }
}

fn service() -> TableServiceClient {
    builder(&target().table).retry(legacy_core::RetryOptions::none()).build()
}

async fn created() -> TableClient {
    let table = service().table_client(name());
    table.create().await.unwrap();
    table
}

async fn all(query: azure_data_tables::operations::QueryEntityBuilder) -> Vec<Vec<Order>> {
    let mut pages = query.into_stream::<Order>();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        found.push(page.unwrap().entities);
        assert!(found.len() < 100, "the pages have an end");
    }
    found
}

#[tokio::test]
async fn a_table_is_created_listed_and_deleted() {
    let table = created().await;
    let mut pages = service().list().top(2).into_stream();
    let mut names = Vec::new();
    while let Some(page) = pages.next().await {
        names.extend(page.unwrap().tables.into_iter().map(|table| table.name));
    }
    assert!(names.iter().any(|name| name == table.table_name()));
    let rejected = error_of(table.create().await);
    assert_eq!(rejected, (StatusCode::Conflict, "TableAlreadyExists".to_owned()));
    table.delete().await.unwrap();
    let rejected = error_of(table.delete().await);
    assert_eq!(rejected, (StatusCode::NotFound, "ResourceNotFound".to_owned()));
}

#[tokio::test]
async fn an_entity_is_inserted_read_updated_merged_and_deleted() {
    let table = created().await;
    let entity = table.partition_key_client("p").entity_client("r");
    let expected = order("p", "r");
    table.insert::<_, Order>(&expected).unwrap().await.unwrap();
    let rejected = error_of(table.insert::<_, Order>(&expected).unwrap().await);
    assert_eq!(rejected, (StatusCode::Conflict, "EntityAlreadyExists".to_owned()));
    let got = entity.get::<Order>().await.unwrap();
    assert_eq!(got.entity, expected);
    assert!(got.metadata.contains("$metadata#"));

    let mut changed = expected.clone();
    changed.count = Some(8);
    let same = IfMatchCondition::Etag(got.etag);
    entity.update(&changed, same.clone()).unwrap().await.unwrap();
    let rejected = error_of(entity.update(&changed, same).unwrap().await);
    let stale = (StatusCode::PreconditionFailed, "UpdateConditionNotSatisfied".to_owned());
    assert_eq!(rejected, stale);
    assert_eq!(entity.get::<Order>().await.unwrap().entity, changed);

    let less = Order {
        state: Some("done".to_owned()),
        count: None,
        total: None,
        total_type: None,
        ..expected.clone()
    };
    entity.merge(&less, IfMatchCondition::Any).unwrap().await.unwrap();
    let got = entity.get::<Order>().await.unwrap().entity;
    assert_eq!((got.state.as_deref(), got.count), (Some("done"), Some(8)));
    entity.insert_or_replace(&less).unwrap().await.unwrap();
    assert_eq!(entity.get::<Order>().await.unwrap().entity.count, None);
    entity.insert_or_merge(&expected).unwrap().await.unwrap();
    assert_eq!(entity.get::<Order>().await.unwrap().entity, expected);
    entity.delete().await.unwrap();
    let rejected = error_of(entity.get::<Order>().await);
    assert_eq!(rejected, (StatusCode::NotFound, "ResourceNotFound".to_owned()));
}

#[tokio::test]
async fn unusual_keys_work() {
    let table = created().await;
    for key in ["a b", "100%", "ä€", "\u{1F600}", "a+b", "a&b=c", "(a)", "a,b"] {
        let expected = order(key, key);
        table.insert::<_, Order>(&expected).unwrap().await.unwrap();
        let entity = table.partition_key_client(key).entity_client(key);
        assert_eq!(entity.get::<Order>().await.unwrap().entity, expected, "{key}");
        entity.delete().await.unwrap();
    }
}

#[tokio::test]
async fn a_query_has_filter_projection_and_pages() {
    let table = created().await;
    let partition = table.partition_key_client("p");
    let mut transaction = partition.transaction();
    for number in 0..100 {
        let mut entity = order("p", &format!("{number:03}"));
        entity.count = Some(number);
        transaction = transaction.insert(&entity).unwrap();
    }
    transaction.await.unwrap();
    let pages = all(table.query().filter("count ge 10 and count lt 35").top(10)).await;
    let sizes: Vec<_> = pages.iter().map(Vec::len).collect();
    assert_eq!(sizes, [10, 10, 5]);
    let pages = all(table.query().select("PartitionKey,RowKey,count").top(40)).await;
    let sizes: Vec<_> = pages.iter().map(Vec::len).collect();
    assert_eq!(sizes, [40, 40, 20]);
    assert_eq!((pages[0][5].count, &pages[0][5].state), (Some(5), &None));
    let rejected = {
        let mut pages = table.query().filter("count add 1 eq 2").into_stream::<Order>();
        error_of(pages.next().await.unwrap())
    };
    assert_eq!(rejected, (StatusCode::BadRequest, "InvalidInput".to_owned()));
}

#[tokio::test]
async fn a_transaction_with_line_feeds_only_is_atomic() {
    let table = created().await;
    let partition = table.partition_key_client("p");
    table.insert::<_, Order>(&order("p", "merged")).unwrap().await.unwrap();
    table.insert::<_, Order>(&order("p", "deleted")).unwrap().await.unwrap();
    let mut changed = order("p", "merged");
    changed.count = Some(9);
    let transaction = partition.transaction();
    let transaction = transaction.insert(order("p", "made")).unwrap();
    let transaction = transaction.merge("merged", &changed, None).unwrap();
    let transaction = transaction.insert_or_replace("other", order("p", "other")).unwrap();
    let answer = transaction.delete("deleted", None).unwrap().await.unwrap();
    let statuses: Vec<_> = answer.operation_responses.iter().map(|one| one.status_code).collect();
    let no_content = StatusCode::NoContent;
    assert_eq!(statuses, [StatusCode::Created, no_content, no_content, no_content]);
    let made = partition.entity_client("made").get::<Order>().await.unwrap();
    assert_eq!(answer.operation_responses[0].etag.as_ref(), Some(&made.etag));
    assert!(answer.operation_responses[0].location.is_some());

    let transaction = partition.transaction().insert(order("p", "new")).unwrap();
    let answer = transaction.insert(order("p", "made")).unwrap().await.unwrap();
    let statuses: Vec<_> = answer.operation_responses.iter().map(|one| one.status_code).collect();
    assert_eq!(statuses, [StatusCode::Conflict]);
    let rows: Vec<_> = all(table.query()).await.into_iter().flatten().map(|one| one.row).collect();
    assert_eq!(rows, ["made", "merged", "other"]);
}

#[tokio::test]
async fn a_client_tries_again_while_the_service_is_busy() {
    let name = name();
    service().table_client(&name).create().await.unwrap();
    let proxy = BusyProxy::before(&target().table, 2);
    let retrying = builder(&proxy.address).build().table_client(&name);

    retrying.insert::<_, Order>(&order("p", "r")).unwrap().await.unwrap();

    assert_eq!(proxy.rejected(), 2);
    let stored =
        retrying.partition_key_client("p").entity_client("r").get::<Order>().await.unwrap();
    assert_eq!(stored.entity, order("p", "r"));
}

#[tokio::test]
async fn a_transaction_does_every_kind_of_operation() {
    let table = created().await;
    let partition = table.partition_key_client("p");
    for row in ["updated", "merged"] {
        table.insert::<_, Order>(&order("p", row)).unwrap().await.unwrap();
    }
    let less = |row: &str| Order { count: None, total: None, total_type: None, ..order("p", row) };
    let etag = partition.entity_client("updated").get::<Order>().await.unwrap().etag;
    let transaction = partition.transaction().insert(order("p", "inserted")).unwrap();
    let same = Some(IfMatchCondition::Etag(etag.clone()));
    let transaction = transaction.update("updated", less("updated"), same).unwrap();
    let any = Some(IfMatchCondition::Any);
    let transaction = transaction.merge("merged", less("merged"), any).unwrap();
    let transaction = transaction.insert_or_replace("new", less("new")).unwrap();
    let answer = transaction.insert_or_merge("newer", less("newer")).unwrap().await.unwrap();
    assert_eq!(answer.operation_responses.len(), 5);
    let found: Vec<_> = all(table.query()).await.into_iter().flatten().collect();
    let counts: Vec<_> = found.iter().map(|one| (one.row.as_str(), one.count)).collect();
    let expected = [
        ("inserted", Some(7)),
        ("merged", Some(7)),
        ("new", None),
        ("newer", None),
        ("updated", None),
    ];
    assert_eq!(counts, expected);

    let transaction = partition.transaction().delete("new", None).unwrap();
    let stale = Some(IfMatchCondition::Etag(etag));
    let answer = transaction.update("updated", less("updated"), stale).unwrap().await.unwrap();
    let statuses: Vec<_> = answer.operation_responses.iter().map(|one| one.status_code).collect();
    assert_eq!(statuses, [StatusCode::PreconditionFailed]);
    assert_eq!(all(table.query()).await.concat().len(), 5);
}

#[tokio::test]
async fn an_operation_that_fails_is_named_by_its_index_and_101_are_too_many() {
    // The crate returns the status of an operation; its index and code are in the body.
    let part = Level::of("minimalmetadata");
    let table = part.created(&target().table, name()).await;
    let partition = table.partition_key_client("p");
    table.insert::<_, Order>(&order("p", "there")).unwrap().await.unwrap();
    let begun = || partition.transaction().insert(order("p", "a")).unwrap();
    let long = Order { state: Some("x".repeat(32_769)), ..order("p", "b") };
    let mut many = partition.transaction();
    for number in 0..101 {
        many = many.insert(order("p", &number.to_string())).unwrap();
    }
    for (transaction, status, error) in [
        (begun().insert(order("p", "there")).unwrap(), 409, ("EntityAlreadyExists", "1:")),
        (begun().insert(order("p", "a")).unwrap(), 400, ("InvalidDuplicateRow", "1:")),
        (begun().delete("absent", None).unwrap(), 404, ("ResourceNotFound", "1:")),
        (begun().insert(&long).unwrap(), 400, ("PropertyValueTooLarge", "1:")),
        (
            begun().insert(order("q", "b")).unwrap(),
            400,
            ("CommandsInBatchActOnDifferentPartitions", "1:"),
        ),
        (many, 400, ("InvalidInput", "99:")),
    ] {
        let answer = transaction.await.unwrap();
        let statuses = answer.operation_responses.iter().map(|one| u16::from(one.status_code));
        assert_eq!(statuses.collect::<Vec<_>>(), [status], "{error:?}");
        let body = part.body();
        let (code, index) = error;
        assert!(body.contains(&format!("\"code\":\"{code}\"")), "{body}");
        assert!(body.contains(&format!("\"value\":\"{index}")), "{body}");
        assert_eq!(all(table.query()).await.concat().len(), 1, "nothing was written");
    }
}
