//! Batches that are rejected whole.

use super::*;

scenario!(
    failed_operation_is_named_and_the_batch_writes_nothing,
    rejects_a_batch_across_partitions_at_the_first_that_differs,
    rejects_a_duplicate_entity_in_a_batch_at_its_second_occurrence,
    rejects_an_empty_batch_and_an_unset_operation,
);

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
