//! What each write does where the entity exists, exists in another version, or is absent.

mod etags;

use tonic::Code;
use trestle_proto::table::v1::WriteMode::{self, Merge, Replace};
use trestle_tests::{CallError, Table, World, entity, int, scenario, value_of};

scenario!(
    write_succeeds_if_the_stored_version_matches,
    write_with_a_stale_etag_is_aborted_and_changes_nothing,
    write_to_a_missing_entity_is_not_found_under_any_condition,
    upsert_inserts_or_overwrites,
    insert_of_an_existing_entity_fails_and_changes_nothing,
);

const STALE: (Code, &str) = (Code::Aborted, "UPDATE_CONDITION_NOT_SATISFIED");
const ABSENT: (Code, &str) = (Code::NotFound, "RESOURCE_NOT_FOUND");

/// An entity with the properties `a` and `b` at `row`; the etags of its first and second version.
async fn two_versions(table: &Table, row: &str) -> (String, String) {
    let first = entity("p", row, [int("a", 1), int("b", 1)]);
    let first = table.upsert(first, Replace).await.unwrap();
    let second = entity("p", row, [int("a", 2), int("b", 2)]);
    let second = table.upsert(second, Replace).await.unwrap();
    (first.etag, second.etag)
}

async fn numbers(table: &Table, row: &str) -> (Option<i32>, Option<i32>) {
    use trestle_proto::table::v1::value::Kind;
    let stored = table.get("p", row).await.unwrap();
    let number = |name| match value_of(&stored, name) {
        Some(Kind::Int32Value(number)) => Some(*number),
        _ => None,
    };
    (number("a"), number("b"))
}

fn change(row: &str) -> trestle_proto::table::v1::Entity {
    entity("p", row, [int("a", 3)])
}

async fn write_succeeds_if_the_stored_version_matches(world: &World) {
    let table = world.table("matching").await;

    for (position, condition) in ["etag", "*", "absent"].into_iter().enumerate() {
        let row = |kind: &str| format!("{kind}{position}");
        for (mode, left) in [(Replace, None), (Merge, Some(2))] {
            let row = row(mode.as_str_name());
            let (_, current) = two_versions(&table, &row).await;
            let if_match = match condition {
                "etag" => Some(current.as_str()),
                "*" => Some("*"),
                _ => None,
            };
            let written = table.update(change(&row), mode, if_match).await.unwrap();
            assert_ne!(written.etag, current);
            assert_eq!(numbers(&table, &row).await, (Some(3), left), "{condition}");
        }
        let row = row("delete");
        let (_, current) = two_versions(&table, &row).await;
        let if_match = match condition {
            "etag" => Some(current.as_str()),
            "*" => Some("*"),
            _ => None,
        };
        table.delete("p", &row, if_match).await.unwrap();
        assert_eq!(table.get("p", &row).await.unwrap_err().kind(), ABSENT);
    }
}

async fn write_with_a_stale_etag_is_aborted_and_changes_nothing(world: &World) {
    let table = world.table("stale").await;
    let (first, second) = two_versions(&table, "r").await;
    let stale = Some(first.as_str());

    let errors = [
        table.update(change("r"), Replace, stale).await.unwrap_err(),
        table.update(change("r"), Merge, stale).await.unwrap_err(),
        table.delete("p", "r", stale).await.unwrap_err(),
    ];

    assert!(errors.iter().all(|r| r.kind() == STALE), "{errors:?}");
    assert_eq!(table.get("p", "r").await.unwrap().etag, second);
    assert_eq!(numbers(&table, "r").await, (Some(2), Some(2)));
}

async fn write_to_a_missing_entity_is_not_found_under_any_condition(world: &World) {
    let table = world.table("absent").await;
    let (_, etag) = two_versions(&table, "other").await;

    for if_match in [Some(etag.as_str()), Some("*"), None] {
        let errors = [
            table.update(change("r"), Replace, if_match).await.unwrap_err(),
            table.update(change("r"), Merge, if_match).await.unwrap_err(),
            table.delete("p", "r", if_match).await.unwrap_err(),
        ];
        assert!(errors.iter().all(|r| r.kind() == ABSENT), "{errors:?}");
    }
    assert_eq!(table.rows("").await.unwrap(), ["other"]);
}

async fn upsert_inserts_or_overwrites(world: &World) {
    let table = world.table("upserts").await;

    for (mode, kept) in [(Replace, None), (Merge, Some(2))] {
        let row = mode.as_str_name();
        table.upsert(change(row), mode).await.unwrap();
        assert_eq!(numbers(&table, row).await, (Some(3), None), "inserted");

        two_versions(&table, row).await;
        table.upsert(change(row), mode).await.unwrap();
        assert_eq!(numbers(&table, row).await, (Some(3), kept), "written over");
    }
}

async fn insert_of_an_existing_entity_fails_and_changes_nothing(world: &World) {
    let table = world.table("inserts").await;
    let (_, second) = two_versions(&table, "r").await;

    let rejected = table.insert(change("r")).await.unwrap_err();

    let expected = (Code::AlreadyExists, "ENTITY_ALREADY_EXISTS");
    assert_eq!(rejected.kind(), expected);
    assert_eq!(table.get("p", "r").await.unwrap().etag, second);
    assert_eq!(numbers(&table, "r").await, (Some(2), Some(2)));
}
