//! Batches: many operations on one partition, all or nothing.

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
    failed_operation_is_named_and_the_batch_writes_nothing,
    rejects_a_batch_across_partitions_at_the_first_that_differs,
    rejects_a_duplicate_entity_in_a_batch_at_its_second_occurrence,
    rejects_a_batch_over_4_mib,
    merges_in_a_batch_may_add_to_large_entities,
    rejects_an_empty_batch_and_an_unset_operation,
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

async fn failed_operation_is_named_and_the_batch_writes_nothing(world: &World) {
    let table = world.table("atomic").await;
    let kept = table.insert(entity("p", "kept", [int("a", 1)])).await.unwrap();
    let stale = kept.etag.clone();
    let kept = table.upsert(entity("p", "kept", [int("a", 1)]), Replace).await.unwrap();
    let illegal = entity("p", "illegal", [int("not a name", 1)]);
    let too_many = (0..253).map(|n| int(&format!("p{n}"), 1)).collect();
    let too_many = entity_of("p", "many", too_many);
    let large = |name: &str| string(name, &"x".repeat(32_768));
    let too_large = (0..20).map(|n| large(&format!("p{n}"))).collect();
    let too_large = entity_of("p", "large", too_large);
    let failures = [
        (insert_op(entity("p", "kept", [])), "ENTITY_ALREADY_EXISTS"),
        (update_op(row(900), Replace, None), "RESOURCE_NOT_FOUND"),
        (update_op(row(900), Merge, Some("*")), "RESOURCE_NOT_FOUND"),
        (delete_op("p", "900", None), "RESOURCE_NOT_FOUND"),
        (
            update_op(entity("p", "kept", []), Replace, Some(&stale)),
            "UPDATE_CONDITION_NOT_SATISFIED",
        ),
        (delete_op("p", "kept", Some(&stale)), "UPDATE_CONDITION_NOT_SATISFIED"),
        (delete_op("p", "kept", Some("x")), "INVALID_INPUT"),
        (insert_op(illegal), "PROPERTY_NAME_INVALID"),
        (insert_op(too_many), "TOO_MANY_PROPERTIES"),
        (insert_op(too_large), "ENTITY_TOO_LARGE"),
    ];

    for (failing, reason) in failures {
        for position in [0, 2, 4] {
            let mut operations = inserts(4);
            operations.insert(position, failing.clone());
            let rejected = table.batch(operations).await.unwrap_err();
            assert_eq!(rejected.reason, reason);
            assert_eq!(rejected.index, Some(position), "{reason}");
            assert_eq!(table.rows("").await.unwrap(), ["kept"], "{reason}");
        }
    }
    assert_eq!(table.get("p", "kept").await.unwrap().etag, kept.etag);
}

async fn rejects_a_batch_across_partitions_at_the_first_that_differs(world: &World) {
    let table = world.table("partitions").await;
    let mut operations = inserts(3);
    operations.push(delete_op("q", "000", None));
    operations.push(insert_op(entity("r", "000", [])));

    let rejected = table.batch(operations).await.unwrap_err();

    let reason = "COMMANDS_IN_BATCH_ACT_ON_DIFFERENT_PARTITIONS";
    assert_eq!(rejected.kind(), (Code::InvalidArgument, reason));
    assert_eq!(rejected.index, Some(3));
    assert_eq!(table.rows("").await.unwrap().len(), 0);
}

async fn rejects_a_duplicate_entity_in_a_batch_at_its_second_occurrence(world: &World) {
    let table = world.table("duplicates").await;
    let mut operations = inserts(3);
    operations.push(delete_op("p", "001", None));
    operations.push(insert_op(row(7)));

    let rejected = table.batch(operations).await.unwrap_err();

    let expected = (Code::InvalidArgument, "INVALID_DUPLICATE_ROW");
    assert_eq!(rejected.kind(), expected);
    assert_eq!(rejected.index, Some(3));
    assert_eq!(table.rows("").await.unwrap().len(), 0);
}

/// An entity whose encoding has a little more than `kib` KiB.
fn sized(row: &str, kib: usize) -> Entity {
    let part = |n| prop(&format!("b{n:02}"), binary(n, kib));
    entity_of("p", row, (0..kib.div_ceil(64)).map(part).collect())
}

fn binary(part: usize, kib: usize) -> trestle_proto::table::v1::value::Kind {
    let bytes = 1024 * (kib - part * 64).min(64);
    trestle_proto::table::v1::value::Kind::BinaryValue(vec![1; bytes].into())
}

async fn rejects_a_batch_over_4_mib(world: &World) {
    let table = world.table("sizes").await;
    let batch = |kib: usize| -> Vec<_> {
        let insert = |n: usize| insert_op(sized(&n.to_string(), kib));
        (0..4).map(insert).collect()
    };

    let fitting = table.batch(batch(1020)).await;
    assert_eq!(fitting.unwrap().len(), 4);
    let mut past_it = batch(1020);
    past_it.push(insert_op(sized("4", 64)));
    let rejected = table.batch(past_it).await.unwrap_err();
    let expected = (Code::InvalidArgument, "REQUEST_BODY_TOO_LARGE");
    assert_eq!(rejected.kind(), expected);
    assert_eq!(table.rows("").await.unwrap().len(), 4);
}

async fn merges_in_a_batch_may_add_to_large_entities(world: &World) {
    let table = world.table("largemerges").await;
    for number in 0..20 {
        let stored = sized(&format!("{number:02}"), 1000);
        table.insert(stored).await.unwrap();
    }
    let merge = |n| upsert_op(entity("p", &format!("{n:02}"), [int("a", 1)]), Merge);

    let merged = table.batch((0..20).map(merge).collect()).await;

    assert_eq!(merged.unwrap().len(), 20);
    assert_eq!(table.rows("a eq 1").await.unwrap().len(), 20);
}

async fn rejects_an_empty_batch_and_an_unset_operation(world: &World) {
    let table = world.table("empty").await;

    let empty = table.batch(Vec::new()).await.unwrap_err();
    assert_eq!(empty.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(empty.fields, ["operations"]);

    let operation = |operation| BatchOperation { operation };
    let request = ExecuteBatchRequest {
        table: table.name(),
        operations: vec![operation(Some(insert_op(row(0)))), operation(None)],
    };
    let unset = table.client().execute_batch(request).await.unwrap_err();
    let unset = CallError::of(&unset);
    assert_eq!(unset.code, Code::InvalidArgument);
    assert_eq!(unset.index, Some(1));
    assert_eq!(unset.fields, ["operations[1].operation"]);
    assert_eq!(table.rows("").await.unwrap().len(), 0);
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
