//! Order, round trips, and errors of damaged records.

use bytes::Bytes;
use proptest::prelude::*;
use trestle_model::time::Ticks;

use super::*;

fn utf16(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

proptest! {
    #[test]
    fn entity_keys_sort_by_table_then_by_utf16_of_both_keys(
        a in (0_u64..3, ".{0,4}", ".{0,4}"),
        b in (0_u64..3, ".{0,4}", ".{0,4}"),
    ) {
        let key = |(id, pk, rk): &(u64, String, String)| row(TableId(*id), pk, rk);
        let parts = |(id, pk, rk): &(u64, String, String)| (*id, utf16(pk), utf16(rk));

        prop_assert_eq!(key(&a).cmp(&key(&b)), parts(&a).cmp(&parts(&b)));
    }

    #[test]
    fn a_partition_span_contains_exactly_its_rows(pk in ".{0,4}", other in ".{0,4}", rk in ".{0,4}") {
        let id = TableId(7);
        let inside = |key: &Bytes| *key >= partition_start(id, &pk) && *key < partition_end(id, &pk);

        prop_assert!(inside(&row(id, &pk, &rk)));
        prop_assert_eq!(inside(&row(id, &other, &rk)), other == pk);
        let same_domain = domain(&row(id, &other, &rk)) == domain(&row(id, &pk, ""));
        prop_assert_eq!(same_domain, other == pk);
    }

    #[test]
    fn partition_of_returns_the_prefix_shared_by_its_rows(
        pk in "[\\x00-\\x02a\u{ff}\u{e000}]{0,5}", rk in "[\\x00-\\x02a\u{ff}]{0,5}",
    ) {
        let key = row(TableId(7), &pk, &rk);
        let partition = partition_of(&key).expect("an entity is in a partition");

        prop_assert_eq!(partition, &*partition_start(TableId(7), &pk));
        prop_assert_eq!(partition_key(partition), Some(pk.clone()));
        for whole in [entities(TableId(7)).start, partition_end(TableId(7), &pk)] {
            prop_assert_eq!(partition_of(&whole), None);
        }
    }

    #[test]
    fn records_round_trip_and_unknown_versions_are_rejected(
        id: u64, ticks in 0..=Ticks::MAX.get(), name in "[A-Za-z][A-Za-z0-9]{2,62}",
        resume in proptest::collection::vec(any::<u8>(), 0..40),
        noise in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let at = Ticks::new(ticks).expect("in range");
        let table = TableRecord { id: TableId(id), created_at: at, name };
        let deleted = DeletedTable { deleted_at: at, resume: resume.into() };

        prop_assert_eq!(TableRecord::decode(&table.encode()).ok(), Some(table));
        prop_assert_eq!(DeletedTable::decode(&deleted.encode()).ok(), Some(deleted));
        prop_assert_eq!(decode_next_id(Some(&encode_next_id(TableId(id)))).ok(), Some(TableId(id)));
        if noise.first() != Some(&VERSION) {
            prop_assert!(TableRecord::decode(&noise).is_err());
            prop_assert!(DeletedTable::decode(&noise).is_err());
        }
    }
}

#[test]
fn a_row_beside_an_entity_is_in_its_domain() {
    let entity = row(TableId(7), "p", "r");
    let mut beside = row(TableId(7), "p", "index").to_vec();
    beside[0] = ENTITY + 1;

    assert_eq!(domain(&beside.into()), domain(&entity));
    for other in [row(TableId(7), "q", "r"), row(TableId(8), "p", "r"), deleted_table(TableId(7))] {
        assert_ne!(domain(&other), domain(&entity), "{other:?}");
    }
    assert_eq!(domain(&access_policies(TableId(7))), domain(&deleted_table(TableId(7))));
    assert_ne!(domain(&access_policies(TableId(7))), domain(&deleted_table(TableId(8))));
}

#[test]
fn every_kind_is_unique_and_in_one_keyspace() {
    let kinds = [TABLE, ACCESS_POLICIES, SERVICE_PROPERTIES, DELETED_TABLE, NEXT_TABLE_ID, ENTITY];
    for (index, kind) in kinds.iter().enumerate() {
        let keyspaces = KEYSPACES.iter().filter(|keyspace| keyspace.kinds.contains(kind)).count();
        assert_eq!(keyspaces, 1, "kind {kind:#x}");
        assert!(!kinds.iter().skip(index + 1).any(|other| other == kind), "kind {kind:#x}");
    }
}
