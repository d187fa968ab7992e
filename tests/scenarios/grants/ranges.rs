//! Key ranges, for every access to an entity.

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
    scans_return_the_range_only,
    page_tokens_are_confined_to_the_range,
    explain_shows_the_narrowed_range,
    a_batch_with_one_operation_outside_writes_nothing_and_names_it,
    import_denies_each_entity_outside_the_range,
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

async fn scans_return_the_range_only(service: &Service) {
    let (_, held) = filled(service).await;

    assert_eq!(found(&held.query("").await.unwrap()), inside());
    let rows = held.query("RowKey eq '1' or PartitionKey eq 'a'").await.unwrap();
    assert_eq!(found(&rows), [("c", "1"), ("d", "1")]);
    for nothing in ["PartitionKey eq 'a'", "PartitionKey eq 'd' and RowKey eq '4'"] {
        assert_eq!(held.query(nothing).await.unwrap(), [], "{nothing}");
    }
    let messages = held.stream(StreamEntitiesRequest::default()).await.unwrap();
    let streamed = messages.iter().flat_map(|m| stored::decode_entities(&m.entities).unwrap());
    assert_eq!(found(&streamed.collect::<Vec<_>>()), inside());
    let scanned: u64 = messages.iter().map(|m| m.cost.as_ref().unwrap().scanned).sum();
    assert_eq!(scanned as usize, inside().len(), "what is outside is not even read");

    let backwards = over_range("ranges", "r", &keys(("d", ""), ("b", "")));
    let nothing = service.granted(backwards).existing_table("ranges");
    assert_eq!(nothing.query("").await.unwrap(), []);
    let no_reader = service.granted(over_range("ranges", "aud", &middle()));
    let rejected = no_reader.existing_table("ranges").query("").await.unwrap_err();
    assert_eq!(rejected.kind(), NO_PERMISSION);
}

async fn page_tokens_are_confined_to_the_range(service: &Service) {
    let (owner, held) = filled(service).await;
    let page = |table: Table, page_token: String| async move {
        let request = QueryEntitiesRequest { page_size: Some(1), page_token, ..Default::default() };
        let (entities, response) = table.page(request).await.unwrap();
        (entities, response.next_page_token)
    };
    let mut token = String::new();
    let mut positions = 0;
    loop {
        let request = QueryEntitiesRequest { page_token: token.clone(), ..Default::default() };
        let (entities, response) = held.page(request).await.unwrap();
        assert!(inside().ends_with(&found(&entities)), "after {positions}: {entities:?}");
        assert_eq!(response.next_page_token, "");
        let resume_token = token.clone();
        let request = StreamEntitiesRequest { resume_token, ..Default::default() };
        let messages = held.stream(request).await.unwrap();
        let streamed = messages.iter().flat_map(|m| stored::decode_entities(&m.entities).unwrap());
        assert_eq!(found(&streamed.collect::<Vec<_>>()), found(&entities));
        (_, token) = page(owner.clone(), token).await;
        positions += 1;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(positions, every_key().count());
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

async fn a_batch_with_one_operation_outside_writes_nothing_and_names_it(service: &Service) {
    let (owner, held) = filled(service).await;
    let new = |row: &str| entity("d", row, [int("n", 2)]);
    for (outside, reason) in [
        (insert_op(new("35")), "insert"),
        (update_op(new("4"), WriteMode::Replace, None), "update"),
        (upsert_op(new("4"), WriteMode::Merge), "upsert"),
        (delete_op("d", "4", None), "delete"),
    ] {
        let operations = vec![insert_op(new("25")), delete_op("d", "1", None), outside];
        let rejected = held.batch(operations).await.unwrap_err();
        assert_eq!((rejected.kind(), rejected.index), (FAILURE, Some(2)), "{reason}");
        assert_eq!(owner.rows("PartitionKey eq 'd'").await.unwrap(), ROWS, "{reason}");
    }
    let operations = vec![insert_op(new("25")), delete_op("d", "1", None)];
    held.batch(operations).await.unwrap();
    assert_eq!(owner.rows("PartitionKey eq 'd'").await.unwrap(), ["2", "25", "3", "4"]);

    let adder = service.granted(over_range("ranges", "a", &middle())).existing_table("ranges");
    let operations = vec![insert_op(new("26")), upsert_op(new("3"), WriteMode::Merge)];
    let rejected = adder.batch(operations).await.unwrap_err();
    assert_eq!((rejected.kind(), rejected.index), (NO_PERMISSION, Some(1)));
    assert_eq!(owner.get("d", "26").await.unwrap_err().kind(), ENTITY_ABSENT);
}

async fn import_denies_each_entity_outside_the_range(service: &Service) {
    let (owner, held) = filled(service).await;
    let entities: Vec<_> = every_key().map(|(p, r)| entity(p, r, [int("n", 9)])).collect();
    let chunks = entities.chunks(7).map(<[_]>::to_vec).collect();

    let failures = held.import(Some(WriteMode::Replace), chunks).await.unwrap();

    let outside = |position: &usize| {
        let key = every_key().nth(*position).unwrap();
        !is_inside(key.0, key.1)
    };
    let expected: Vec<_> =
        (0..entities.len()).filter(outside).map(|position| position as u64).collect();
    let positions: Vec<_> = failures.iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, expected);
    for (_, status) in failures {
        assert_eq!(Code::from(status.code), Code::PermissionDenied);
    }
    for (partition, row) in every_key() {
        let stored = owner.get(partition, row).await.unwrap();
        let number = if is_inside(partition, row) { 9 } else { 1 };
        assert_eq!(stored.properties, [int("n", number)], "{partition} {row}");
    }
}
