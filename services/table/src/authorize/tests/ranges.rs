//! Key ranges: for any range, keys and filter, the entities that a caller reads one by one, by a plan, and by
//! paging through a real store equal those of a naive predicate.

use std::sync::Arc;

use proptest::{collection::vec, option, prelude::*};
use tokio::runtime::Builder;
use trestle_kv::faulty::{FaultRates, FaultyEngine};
use trestle_kv::{EngineError, MemoryEngine, Writes};
use trestle_model::time::ManualClock;

use super::*;
use crate::{
    entity::{Entity, samples},
    error::TableError,
    keys::{self, TableId, TableRecord},
    query::Filter,
    read::{EntityReader, PageLimit, PlannedQuery, QueryRequest},
    stored,
    throttle::Throttle,
};

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// The specification: both bounds apply, each by partition and, where it has one, row.
pub(crate) fn naively_in(range: &KeyRange, key: &EntityKey) -> bool {
    let (partition, row) = (units(&key.partition_key), units(&key.row_key));
    let after_start = match (&range.start_partition_key, &range.start_row_key) {
        (None, _) => true,
        (Some(first), None) => partition >= units(first),
        (Some(first), Some(first_row)) => {
            partition > units(first) || partition == units(first) && row >= units(first_row)
        }
    };
    let before_end = match (&range.end_partition_key, &range.end_row_key) {
        (None, _) => true,
        (Some(last), None) => partition <= units(last),
        (Some(last), Some(last_row)) => {
            partition < units(last) || partition == units(last) && row <= units(last_row)
        }
    };
    after_start && before_end
}

pub(crate) fn range() -> impl Strategy<Value = KeyRange> {
    let bound = || option::of((samples::key_text(), option::of(samples::key_text())));
    (bound(), bound()).prop_map(|(start, end)| {
        let (start_partition_key, start_row_key) = start.unzip();
        let (end_partition_key, end_row_key) = end.unzip();
        KeyRange {
            start_partition_key,
            start_row_key: start_row_key.flatten(),
            end_partition_key,
            end_row_key: end_row_key.flatten(),
        }
    })
}

fn keys() -> impl Strategy<Value = Vec<EntityKey>> {
    let texts = (samples::key_text(), samples::key_text());
    vec(texts.prop_map(|(partition, row)| key(&partition, &row)), 1..20)
}

/// Whether a filter, made with a text, matches a key.
type Matches = fn(&EntityKey, &str) -> bool;

/// Filters on keys, with what they match.
fn filter() -> impl Strategy<Value = (String, Matches, String)> {
    let filters: Vec<(&str, Matches)> = vec![
        ("", |_, _| true),
        ("PartitionKey eq '*'", |key, text| key.partition_key == text),
        ("RowKey gt '*'", |key, text| units(&key.row_key) > units(text)),
        ("PartitionKey le '*' or RowKey eq 'a'", |key, text| {
            units(&key.partition_key) <= units(text) || key.row_key == "a"
        }),
    ];
    (proptest::sample::select(filters), samples::key_text())
        .prop_map(|((shape, matches), text)| (shape.replace('*', &text), matches, text))
}

fn limited_to(range: &KeyRange) -> EntityAccess {
    let grant = ResourceGrant { bounds: range.to_fields(), ..grant("r") };
    EntityAccess::new(caller(Authority::Resource(grant))).expect("entities")
}

/// A reader of a store whose table `orders` has these entities.
async fn reader_of(keys: &[EntityKey]) -> EntityReader {
    reader_with(keys, FaultRates::default()).await
}

/// The same where the store fails now and then.
async fn reader_with(keys: &[EntityKey], rates: FaultRates) -> EntityReader {
    let clock = Arc::new(ManualClock::new(now()));
    let engine = Arc::new(MemoryEngine::with_clock(keys::KEYSPACES, clock.clone()));
    let (id, name) = (TableId(7), table("orders"));
    let mut writes = Writes::new();
    let record = TableRecord::new(id, now(), &name).encode();
    writes.put(keys::table(&AccountName::development(), &name.folded()), record);
    crate::samples::commit(&*engine, writes).await;
    for keys in keys.chunks(1000) {
        let mut writes = Writes::new();
        for key in keys {
            let entity = Entity { key: key.clone(), properties: Vec::new() };
            let stored = stored::seal(&stored::encode_body(&entity), now());
            writes.put(keys::entity(id, key), stored);
        }
        crate::samples::commit(&*engine, writes).await;
    }
    let engine = Arc::new(FaultyEngine::new(engine, 1, rates));
    EntityReader::new(engine, clock, Arc::new(Throttle::unlimited()))
}

/// The keys that paging finds, each page as small as can be, from a token on.
async fn scan(
    reader: &EntityReader,
    access: &EntityAccess,
    filter: &str,
    token: &str,
) -> Vec<EntityKey> {
    let mut found = Vec::new();
    let mut token = token.to_owned();
    loop {
        let page = reader.page(&query(access, filter), &token, LIMIT).await.expect("a page");
        found.extend(page.entities.iter().map(|bytes| {
            let entity: trestle_proto::table::v1::Entity =
                prost::Message::decode(bytes.clone()).expect("an entity");
            key(&entity.partition_key, &entity.row_key)
        }));
        match page.next {
            Some(next) => token = next,
            None => return found,
        }
    }
}

const LIMIT: PageLimit = PageLimit { entities: 1, bytes: 1024 };

fn query(access: &EntityAccess, filter: &str) -> PlannedQuery {
    let request = QueryRequest {
        table: table("orders"),
        filter_text: filter.to_owned(),
        filter: Filter::parse(filter).expect("a filter"),
        select: None,
        token_field: "page_token",
    };
    PlannedQuery::new(access.clone(), request)
}

/// A token of a caller with every right, for each position in a listing.
async fn every_token(reader: &EntityReader, filter: &str) -> Vec<String> {
    let (mut tokens, owner) = (vec![String::new()], caller(Authority::Owner));
    let query = query(&EntityAccess::new(owner).expect("entities"), filter);
    while let Some(token) = tokens.last() {
        match reader.page(&query, token, LIMIT).await.expect("a page").next {
            Some(next) => tokens.push(next),
            None => break,
        }
    }
    tokens
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn permits_an_entity_exactly_within_the_range(range in range(), keys in keys()) {
        let access = limited_to(&range);
        let permissions = access.permissions(&table("orders"), &[], now()).expect("the table");
        for key in keys {
            let allowed = permissions.check_entity(EntityAction::Read, &key);
            prop_assert_eq!(allowed.is_ok(), naively_in(&range, &key), "{:?} {:?}", range, key);
        }
    }

    #[test]
    fn a_scan_returns_exactly_the_range_with_any_token(
        range in range(),
        mut keys in keys(),
        (filter, matches, text) in filter(),
    ) {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let reader = reader_of(&keys).await;
            let access = limited_to(&range);
            keys.sort_by_key(|key| (units(&key.partition_key), units(&key.row_key)));
            keys.dedup();
            keys.retain(|key| matches(key, &text) && naively_in(&range, key));

            let found = scan(&reader, &access, &filter, "").await;
            prop_assert_eq!(&found, &keys, "{:?} {}", &range, &filter);

            // With the token of another caller it is the rest of the same, never more.
            for token in every_token(&reader, &filter).await {
                let rest = scan(&reader, &access, &filter, &token).await;
                prop_assert!(keys.ends_with(&rest), "{:?} {}: {:?}", &range, &filter, rest);
            }
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn a_page_whose_snapshot_ends_has_what_was_read_and_the_next_continues() {
    let keys: Vec<_> = (0..2_500).map(|row| key("p", &format!("{row:05}"))).collect();
    let owner = EntityAccess::new(caller(Authority::Owner)).expect("entities");
    let query = query(&owner, "RowKey ne '00007'");
    let limit = PageLimit { entities: 10_000, bytes: 1024 * 1024 };
    let mut pages = Vec::new();
    for reads in 0..10 {
        let rates = FaultRates { snapshot_reads_max: Some(reads), ..FaultRates::default() };
        let reader = reader_with(&keys, rates).await;
        let (mut token, mut found, mut count) = (String::new(), 0, 0);
        loop {
            let page = match reader.page(&query, &token, limit).await {
                Ok(page) => page,
                Err(TableError::Read(EngineError::SnapshotEnded { .. })) => break,
                Err(error) => panic!("another error: {error}"),
            };
            (found, count) = (found + page.entities.len(), count + 1);
            match page.next {
                Some(next) => token = next,
                None => break,
            }
        }
        assert_eq!(found, if count == 0 { 0 } else { keys.len() - 1 }, "{reads} reads");
        pages.push(count);
    }
    assert!(pages.starts_with(&[0]) && pages.ends_with(&[1]), "{pages:?}");
    assert!(pages.contains(&3), "a page for each scan: {pages:?}");
}
