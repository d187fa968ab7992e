//! Tables through the crate that Rust programs have for them, with the key of the account.

use azure_data_tables::{IfMatchCondition, clients::TableServiceClientBuilder, prelude::*};
use azure_storage::{CloudLocation, StorageCredentials};
use futures::StreamExt;
use legacy_core::{StatusCode, error::ErrorKind};
use serde::{Deserialize, Serialize};
use trestle_azure_clients::{ACCOUNT, BusyDoor, KEY, name, target};

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

fn builder(address: &str) -> TableServiceClientBuilder {
    let uri = format!("http://{address}/{ACCOUNT}");
    let location = CloudLocation::Custom { account: ACCOUNT.to_owned(), uri };
    let credentials = StorageCredentials::access_key(ACCOUNT, KEY.to_owned());
    TableServiceClientBuilder::with_location(location, credentials)
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

fn refusal<T>(answer: legacy_core::Result<T>) -> (StatusCode, String) {
    let Err(error) = answer else { panic!("the call is refused") };
    match error.kind() {
        ErrorKind::HttpResponse { status, error_code } => {
            (*status, error_code.clone().unwrap_or_default())
        }
        other => panic!("a refusal is an answer: {other:?}"),
    }
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
    let refused = refusal(table.create().await);
    assert_eq!(refused, (StatusCode::Conflict, "TableAlreadyExists".to_owned()));
    table.delete().await.unwrap();
    let refused = refusal(table.delete().await);
    assert_eq!(refused, (StatusCode::NotFound, "ResourceNotFound".to_owned()));
}

#[tokio::test]
async fn an_entity_is_inserted_read_updated_merged_and_deleted() {
    let table = created().await;
    let entity = table.partition_key_client("p").entity_client("r");
    let wanted = order("p", "r");
    table.insert::<_, Order>(&wanted).unwrap().await.unwrap();
    let refused = refusal(table.insert::<_, Order>(&wanted).unwrap().await);
    assert_eq!(refused, (StatusCode::Conflict, "EntityAlreadyExists".to_owned()));
    let got = entity.get::<Order>().await.unwrap();
    assert_eq!(got.entity, wanted);
    assert!(got.metadata.contains("$metadata#"));

    let mut changed = wanted.clone();
    changed.count = Some(8);
    let same = IfMatchCondition::Etag(got.etag);
    entity.update(&changed, same.clone()).unwrap().await.unwrap();
    let refused = refusal(entity.update(&changed, same).unwrap().await);
    let stale = (StatusCode::PreconditionFailed, "UpdateConditionNotSatisfied".to_owned());
    assert_eq!(refused, stale);
    assert_eq!(entity.get::<Order>().await.unwrap().entity, changed);

    let less = Order {
        state: Some("done".to_owned()),
        count: None,
        total: None,
        total_type: None,
        ..wanted.clone()
    };
    entity.merge(&less, IfMatchCondition::Any).unwrap().await.unwrap();
    let got = entity.get::<Order>().await.unwrap().entity;
    assert_eq!((got.state.as_deref(), got.count), (Some("done"), Some(8)));
    entity.insert_or_replace(&less).unwrap().await.unwrap();
    assert_eq!(entity.get::<Order>().await.unwrap().entity.count, None);
    entity.insert_or_merge(&wanted).unwrap().await.unwrap();
    assert_eq!(entity.get::<Order>().await.unwrap().entity, wanted);
    entity.delete().await.unwrap();
    let refused = refusal(entity.get::<Order>().await);
    assert_eq!(refused, (StatusCode::NotFound, "ResourceNotFound".to_owned()));
}

#[tokio::test]
async fn unusual_keys_work() {
    let table = created().await;
    for key in ["a b", "100%", "ä€", "\u{1F600}", "a+b", "a&b=c", "(a)", "a,b"] {
        let wanted = order(key, key);
        table.insert::<_, Order>(&wanted).unwrap().await.unwrap();
        let entity = table.partition_key_client(key).entity_client(key);
        assert_eq!(entity.get::<Order>().await.unwrap().entity, wanted, "{key}");
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
    let refused = {
        let mut pages = table.query().filter("count add 1 eq 2").into_stream::<Order>();
        refusal(pages.next().await.unwrap())
    };
    assert_eq!(refused, (StatusCode::BadRequest, "InvalidInput".to_owned()));
}

#[tokio::test]
async fn a_transaction_in_bare_line_feeds_is_all_or_nothing() {
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
    let door = BusyDoor::before(&target().table, 2);
    let patient = builder(&door.address).build().table_client(&name);

    patient.insert::<_, Order>(&order("p", "r")).unwrap().await.unwrap();

    assert_eq!(door.refused(), 2);
    let stored = patient.partition_key_client("p").entity_client("r").get::<Order>().await.unwrap();
    assert_eq!(stored.entity, order("p", "r"));
}
