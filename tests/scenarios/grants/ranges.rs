//! Key ranges, for every access to an entity.

mod many;

use tonic::Code;
use trestle_identity::caller::KeyRange;
use trestle_proto::table::v1::{
    Entity, KeyBound, QueryEntitiesRequest, QueryScope, StreamEntitiesRequest, WriteMode, stored,
};
use trestle_tests::{
    Service, Table, delete_op, entity, insert_op, int, service_scenario, update_op, upsert_op,
};

use super::{ENTITY_ABSENT, FAILURE, NO_PERMISSION, keys, over_range};

service_scenario!(
    entities_outside_the_range_are_denied_whether_they_exist_or_not,
    explain_shows_the_narrowed_range,
);

const PARTITIONS: [&str; 5] = ["a", "b", "c", "d", "e"];
const ROWS: [&str; 4] = ["1", "2", "3", "4"];

/// From row 2 of partition b to row 3 of partition d.
fn middle() -> KeyRange {
    keys(("b", "2"), ("d", "3"))
}

fn is_inside(partition: &str, row: &str) -> bool {
    ("b", "2") <= (partition, row) && (partition, row) <= ("d", "3")
}

fn every_key() -> impl Iterator<Item = (&'static str, &'static str)> {
    PARTITIONS.iter().flat_map(|partition| ROWS.iter().map(|row| (*partition, *row)))
}

fn inside() -> Vec<(&'static str, &'static str)> {
    every_key().filter(|(partition, row)| is_inside(partition, row)).collect()
}

/// A table with an entity for each key; for its owner, and for a SAS limited to the middle.
async fn filled(service: &Service) -> (Table, Table) {
    let owner = service.owner().table("ranges").await;
    let entities = every_key().map(|(partition, row)| entity(partition, row, [int("n", 1)]));
    assert_eq!(owner.import(None, vec![entities.collect()]).await.unwrap(), []);
    let held = service.granted(over_range("ranges", "raud", &middle()));
    (owner, held.existing_table("Ranges"))
}

fn found(entities: &[Entity]) -> Vec<(&str, &str)> {
    entities.iter().map(trestle_tests::key_of).collect()
}

async fn entities_outside_the_range_are_denied_whether_they_exist_or_not(service: &Service) {
    let (owner, held) = filled(service).await;
    let changed = |partition, row| entity(partition, row, [int("n", 2)]);
    for (partition, row) in every_key() {
        let got = held.get(partition, row).await;
        let updated = held.update(changed(partition, row), WriteMode::Merge, None).await;
        let upserted = held.upsert(changed(partition, row), WriteMode::Replace).await;
        let number = owner.get(partition, row).await.unwrap().properties[0].clone();
        if is_inside(partition, row) {
            got.unwrap();
            updated.unwrap();
            upserted.unwrap();
            assert_eq!(number, int("n", 2));
            held.delete(partition, row, None).await.unwrap();
            held.insert(changed(partition, row)).await.unwrap();
        } else {
            assert_eq!(got.unwrap_err().kind(), FAILURE, "{partition} {row}");
            assert_eq!(updated.unwrap_err().kind(), FAILURE, "{partition} {row}");
            assert_eq!(upserted.unwrap_err().kind(), FAILURE, "{partition} {row}");
            assert_eq!(number, int("n", 1));
            let deleted = held.delete(partition, row, None).await;
            assert_eq!(deleted.unwrap_err().kind(), FAILURE);
            let inserted = held.insert(changed(partition, row)).await;
            assert_eq!(inserted.unwrap_err().kind(), FAILURE, "not that it exists");
        }
    }
    assert_eq!(held.get("c", "absent").await.unwrap_err().kind(), ENTITY_ABSENT);
    let absent = held.get("z", "absent").await.unwrap_err();
    let present = held.get("e", "1").await.unwrap_err();
    assert_eq!(absent, present, "the two are indistinguishable");
}

async fn explain_shows_the_narrowed_range(service: &Service) {
    let (_, held) = filled(service).await;
    let bound = |partition: &str, row: Option<&str>| {
        let (partition_key, row_key) = (partition.to_owned(), row.map(str::to_owned));
        Some(KeyBound { partition_key, row_key, inclusive: true })
    };

    let whole = held.explain("", &[], true).await.unwrap();
    assert_eq!(whole.scope(), QueryScope::PartitionRange);
    assert_eq!((whole.start, whole.end), (bound("b", Some("2")), bound("d", Some("3"))));
    assert_eq!(whole.cost.unwrap().scanned as usize, inside().len());

    let edge = held.explain("PartitionKey eq 'b'", &[], true).await.unwrap();
    assert_eq!(edge.scope(), QueryScope::RowRange);
    assert_eq!((edge.start, edge.end), (bound("b", Some("2")), bound("b", None)));
    assert_eq!(edge.cost.unwrap().scanned, 3);

    let outside = held.explain("PartitionKey eq 'a'", &[], true).await.unwrap();
    assert!(outside.advice[0].contains("outside of the key range"), "{:?}", outside.advice);
    assert_eq!(outside.cost.unwrap().scanned, 0);
}
