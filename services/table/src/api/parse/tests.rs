//! Requests on entities: the field that an error names, and the position of the operation in a batch.

use proto::batch_operation::Operation;
use trestle_proto::table::v1::BatchOperation;

use super::*;

fn entity(partition: &str, row: &str) -> proto::Entity {
    proto::Entity {
        partition_key: partition.to_owned(),
        row_key: row.to_owned(),
        ..Default::default()
    }
}

fn batch_of(operations: Vec<Operation>) -> Result<(TableName, Vec<EntityOperation>), Fault> {
    let operation = |operation| BatchOperation { operation: Some(operation) };
    let operations = operations.into_iter().map(operation).collect();
    batch(proto::ExecuteBatchRequest { table: "people".to_owned(), operations })
}

fn insert_of(partition: &str, row: &str) -> Operation {
    Operation::Insert(proto::BatchInsert { entity: Some(entity(partition, row)) })
}

/// The fields that an error names, with the reason of each.
fn named(fault: &Fault) -> Vec<(&str, Reason)> {
    fault.violations.iter().map(|it| (it.field.as_str(), it.reason)).collect()
}

#[test]
fn a_new_table_needs_a_valid_name() {
    let of =
        |name: &str| new_table(Some(proto::Table { name: name.to_owned(), ..Default::default() }));
    for name in ["abc", "A1b2", &"t".repeat(63)] {
        assert_eq!(of(name).expect("a table").as_str(), name);
    }
    for name in ["", "ab", "1abc", "a-b", "täble", &"t".repeat(64)] {
        let fault = of(name).expect_err(name);
        assert!(named(&fault).iter().all(|(field, _)| *field == "table.name"), "{name}: {fault:?}");
    }
    let absent = new_table(None).expect_err("required");
    assert_eq!(named(&absent), [("table", Reason::PropertiesNeedValue)]);
}

#[test]
fn table_and_entity_are_checked_together() {
    let request = proto::InsertEntityRequest { table: "-".to_owned(), ..Default::default() };
    let fields: Vec<String> =
        insert(request).expect_err("both").violations.into_iter().map(|it| it.field).collect();
    assert_eq!(fields, ["table", "entity"]);
}

#[test]
fn keys_and_properties_are_named_by_their_path() {
    let broken = proto::Entity {
        properties: vec![proto::Property {
            name: "1a".to_owned(),
            value: Some(proto::Value { kind: Some(proto::value::Kind::Int32Value(1)) }),
        }],
        ..entity("a/b", "c#d")
    };
    let request = proto::InsertEntityRequest { table: "people".to_owned(), entity: Some(broken) };
    let fault = insert(request).expect_err("rejected");
    let fields: Vec<&str> = named(&fault).into_iter().map(|(field, _)| field).collect();
    assert_eq!(&fields[..2], ["entity.partition_key", "entity.row_key"]);
    assert!(fields[2].starts_with("entity.properties[\""), "{fields:?}");
}

#[test]
fn a_mode_is_stated_and_known() {
    let mut violations = Violations::default();
    assert!(matches!(
        mode(proto::WriteMode::Replace.into(), "mode", &mut violations),
        Some(WriteMode::Replace)
    ));
    assert!(matches!(
        mode(proto::WriteMode::Merge.into(), "mode", &mut violations),
        Some(WriteMode::Merge)
    ));
    assert!(violations.is_empty());
    for number in [0, 3, -1, i32::MAX] {
        let request = proto::UpsertEntityRequest {
            table: "people".to_owned(),
            entity: Some(entity("p", "r")),
            mode: number,
        };
        let fault = upsert(request).expect_err("rejected");
        assert_eq!(named(&fault), [("mode", Reason::InvalidInput)]);
        assert!(fault.message.contains(&format!("value=`{number}`")), "{}", fault.message);
    }
}

#[test]
fn an_etag_is_one_of_a_response_or_any() {
    let of = |if_match: Option<&str>| {
        delete(proto::DeleteEntityRequest {
            table: "people".to_owned(),
            partition_key: "p".to_owned(),
            row_key: "r".to_owned(),
            if_match: if_match.map(str::to_owned),
        })
    };
    for if_match in [None, Some("*")] {
        assert!(of(if_match).is_ok(), "{if_match:?}");
    }
    for if_match in ["**", "abc", "W/", "W/\"datetime'x'"] {
        let fault = of(Some(if_match)).expect_err(if_match);
        assert_eq!(named(&fault), [("if_match", Reason::InvalidInput)], "{if_match}");
        assert!(fault.message.contains(if_match), "{}", fault.message);
    }
}

#[test]
fn a_batch_has_at_most_a_hundred_operations() {
    let of =
        |count: i32| batch_of((0..count).map(|row| insert_of("p", &row.to_string())).collect());
    assert_eq!(of(100).expect("a full one").1.len(), 100);
    assert_eq!(of(0).expect("rejected after it is authorized").1.len(), 0);
    let fault = of(101).expect_err("rejected");
    assert_eq!(named(&fault), [("operations", Reason::InvalidInput)]);
    assert_eq!(fault.index, Some(100), "the first one too many");
}

#[test]
fn the_first_operation_that_is_rejected_has_its_position() {
    let delete = |row: &str| {
        let (partition_key, row_key) = ("p".to_owned(), row.to_owned());
        Operation::Delete(proto::BatchDelete { partition_key, row_key, ..Default::default() })
    };
    let no_entity = Operation::Upsert(proto::BatchUpsert {
        mode: proto::WriteMode::Merge.into(),
        ..Default::default()
    });
    let fault = batch_of(vec![insert_of("p", "r"), delete("a\tb"), no_entity, delete("ok")]);
    let fault = fault.expect_err("rejected");

    assert_eq!(fault.index, Some(1));
    let fields: Vec<&str> = named(&fault).into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["operations[1].delete.row_key", "operations[2].upsert.entity"]);
}

#[test]
fn a_batch_without_a_table_has_no_position() {
    let operations = vec![BatchOperation { operation: Some(insert_of("p", "r")) }];
    let request = proto::ExecuteBatchRequest { table: "1".to_owned(), operations };
    let fault = batch(request).expect_err("a bad name");
    assert_eq!((fault.index, named(&fault)[0].0), (None, "table"));
}

#[test]
fn an_empty_operation_names_its_choices() {
    let operations = vec![BatchOperation { operation: None }];
    let request = proto::ExecuteBatchRequest { table: "people".to_owned(), operations };
    let fault = batch(request).expect_err("empty");
    assert_eq!(named(&fault), [("operations[0].operation", Reason::PropertiesNeedValue)]);
    assert_eq!(fault.index, Some(0));
    assert!(fault.message.contains("insert, update, upsert, delete"), "{}", fault.message);
}

#[test]
fn a_page_is_capped_and_never_negative() {
    let mut violations = Violations::default();
    for (size, expected) in [(None, 1000), (Some(0), 0), (Some(7), 7), (Some(i32::MAX), 1000)] {
        assert_eq!(page_size(size, &mut violations), expected, "{size:?}");
    }
    assert!(violations.is_empty());
    page_size(Some(-1), &mut violations);
    let fault = violations.check(()).expect_err("rejected");
    assert_eq!(named(&fault), [("page_size", Reason::InvalidInput)]);
}
