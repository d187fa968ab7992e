//! Single entities: insert, get, update, upsert, delete, and their conditions.

use tonic::Code;
use trestle_proto::table::v1::{WriteMode, value::Kind};
use trestle_tests::{World, entity, prop, scenario, string, value_of};

scenario!(an_inserted_entity_can_be_read_back);

async fn an_inserted_entity_can_be_read_back(world: &World) {
    let table = world.table("orders").await;
    let order = entity(
        "c42",
        "0001",
        [
            string("state", "open"),
            prop("total", Kind::Int64Value(990)),
        ],
    );

    let version = table.insert(order.clone()).await.unwrap();

    let read = table.get("c42", "0001").await.unwrap();
    assert_eq!(read.properties, order.properties);
    assert_eq!(read.etag, version.etag);
    assert_eq!(read.timestamp, Some(version.timestamp));
    let again = table.insert(order).await.unwrap_err();
    assert_eq!(
        (again.code, again.reason.as_str()),
        (Code::AlreadyExists, "ENTITY_ALREADY_EXISTS")
    );
    let merged = table
        .upsert(
            entity("c42", "0001", [string("state", "paid")]),
            WriteMode::Merge,
        )
        .await;
    assert!(merged.is_ok());
    let read = table.get("c42", "0001").await.unwrap();
    assert_eq!(
        value_of(&read, "state"),
        Some(&Kind::StringValue("paid".to_owned()))
    );
    assert_eq!(value_of(&read, "total"), Some(&Kind::Int64Value(990)));
}
