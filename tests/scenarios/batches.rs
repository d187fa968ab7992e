//! Batches: many operations on one partition, all or nothing.

mod rejected;
mod size;

use tonic::Code;
use trestle_proto::table::v1::{
    BatchOperation, Entity, ExecuteBatchRequest,
    WriteMode::{Merge, Replace},
    batch_operation::Operation,
};
use trestle_tests::{
    CallError, World, delete_op, entity, entity_of, insert_op, int, prop, scenario, string,
    update_op, upsert_op,
};

scenario!(
    batch_accepts_1_to_100_operations,
    batch_executes_mixed_operations_in_order,
    conditions_hold_inside_a_batch,
);

fn row(number: usize) -> Entity {
    entity("p", &format!("{number:03}"), [])
}

fn inserts(count: usize) -> Vec<Operation> {
    (0..count).map(|number| insert_op(row(number))).collect()
}

async fn batch_accepts_1_to_100_operations(world: &World) {
    let table = world.table("counts").await;

    assert_eq!(table.batch(inserts(1)).await.unwrap().len(), 1);
    table.delete("p", "000", None).await.unwrap();
    let etags = table.batch(inserts(100)).await.unwrap();
    assert_eq!(etags.len(), 100);
    for (number, etag) in etags.iter().enumerate().step_by(33) {
        let read = table.get("p", &format!("{number:03}")).await.unwrap();
        assert_eq!(&read.etag, etag);
    }

    let deletes: Vec<_> =
        (0..101).map(|number| delete_op("p", &format!("{number:03}"), None)).collect();
    let rejected = table.batch(deletes).await.unwrap_err();
    assert_eq!(rejected.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(rejected.index, Some(100), "the first that is one too many, from 0");
    assert_eq!(table.rows("").await.unwrap().len(), 100);
}

async fn batch_executes_mixed_operations_in_order(world: &World) {
    let table = world.table("mixed").await;
    for name in ["replace", "merge", "delete", "upserted"] {
        let stored = entity("p", name, [int("old", 1)]);
        table.insert(stored).await.unwrap();
    }
    let new = |name: &str| entity("p", name, [int("new", 2)]);

    let etags = table
        .batch(vec![
            insert_op(new("insert")),
            update_op(new("replace"), Replace, None),
            update_op(new("merge"), Merge, Some("*")),
            delete_op("p", "delete", None),
            upsert_op(new("upserted"), Replace),
            upsert_op(new("absent"), Merge),
        ])
        .await
        .unwrap();

    let names = async |row: &str| -> Vec<String> {
        let read = table.get("p", row).await.unwrap();
        read.properties.into_iter().map(|p| p.name).collect()
    };
    assert_eq!(names("insert").await, ["new"]);
    assert_eq!(names("replace").await, ["new"]);
    assert_eq!(names("merge").await, ["new", "old"]);
    assert_eq!(names("upserted").await, ["new"]);
    assert_eq!(names("absent").await, ["new"]);
    let absent = table.get("p", "delete").await.unwrap_err();
    assert_eq!(absent.code, Code::NotFound);
    assert_eq!(etags[3], "", "a delete has no version");
    let rows = ["insert", "replace", "merge", "", "upserted", "absent"];
    for (row, etag) in rows.iter().zip(&etags).filter(|(row, _)| !row.is_empty()) {
        assert_eq!(&table.get("p", row).await.unwrap().etag, etag, "{row}");
    }
}

async fn conditions_hold_inside_a_batch(world: &World) {
    let table = world.table("conditions").await;
    let a = table.insert(entity("p", "a", [])).await.unwrap().etag;
    let b = table.insert(entity("p", "b", [])).await.unwrap().etag;
    let batch = || {
        vec![
            update_op(entity("p", "a", [int("n", 1)]), Merge, Some(&a)),
            delete_op("p", "b", Some(&b)),
        ]
    };

    table.batch(batch()).await.unwrap();
    assert_eq!(table.rows("").await.unwrap(), ["a"]);
    let again = table.batch(batch()).await.unwrap_err();
    assert_eq!((again.code, again.index), (Code::Aborted, Some(0)));
}
