use std::sync::Arc;

use trestle_identity::caller::{Authority, Caller};
use trestle_kv::{Engine, MemoryEngine};
use trestle_model::{etag::Condition, fault::Violations, name::TableName, time::SystemClock};
use trestle_rpc::quota::{StorageMax, StorageQuotas};

use super::*;
use crate::{
    authorize::EntityAccess,
    entity::{Entity, EntityKey},
    operation::{EncodedEntity, EntityOperation},
    throttle::Throttle,
    write::EntityWriter,
};

const TABLES: StorageLimit = StorageLimit::Tables;
const BYTES: StorageLimit = StorageLimit::StoredBytes;

fn tables(engine: &Arc<dyn Engine>, limit: StorageLimit) -> Tables {
    let max = StorageMax::new(|other| if other == limit { 1 << 40 } else { 0 });
    let tables = Tables::new(Arc::clone(engine), Arc::new(SystemClock));
    tables.with_quotas(StorageQuotas::without_metrics(max))
}

fn name(name: &str) -> TableName {
    TableName::parse(name.to_owned(), "", &mut Violations::default()).expect("a name")
}

fn account(name: &str) -> AccountName {
    AccountName::parse(name).expect("a name")
}

fn key(row: &str) -> EntityKey {
    EntityKey { partition_key: "p".to_owned(), row_key: row.to_owned() }
}

#[tokio::test]
async fn tables_and_the_bytes_of_their_entities_count_for_their_account() {
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new(keys::KEYSPACES.to_vec()));
    let (tables, numbers) = (tables(&engine, BYTES), tables(&engine, TABLES));
    let acme = account("acme");
    for table in ["orders", "customers"] {
        tables.create(&acme, name(table)).await.expect("created");
    }
    tables.create(&account("other"), name("orders")).await.expect("created");
    let caller = Caller::new(acme.clone(), Authority::Owner);
    let access = EntityAccess::new(Arc::new(caller)).expect("an owner");
    let (orders, writer) =
        (name("orders"), EntityWriter::new(Arc::clone(&engine), Arc::new(Throttle::unlimited())));
    let write = async |operation| {
        let table = tables.authorized(&access, &orders).await.expect("the table");
        writer.one(&table, operation).await.expect("written");
    };
    let of = async |tables: &Tables, name: &AccountName| {
        tables.usage().await.expect("measured").get(name).copied().unwrap_or_default()
    };
    let before = of(&tables, &acme).await;

    let long = "r".repeat(500);
    for row in ["first", &long] {
        let entity = Entity { key: key(row), properties: Vec::new() };
        write(EntityOperation::Insert(EncodedEntity::new(entity))).await;
    }

    let after = of(&tables, &acme).await;
    assert_eq!((before.of(TABLES), after.of(TABLES)), (2, 2));
    let grown = after.of(BYTES) - before.of(BYTES);
    assert!((505..1500).contains(&grown), "{grown} bytes");
    let other = of(&tables, &account("other")).await;
    assert_eq!(other.of(TABLES), 1);
    assert!(other.of(BYTES) < before.of(BYTES));
    assert_eq!(of(&numbers, &acme).await.of(BYTES), before.of(BYTES), "no entity is read");

    write(EntityOperation::Delete { key: key(&long), condition: Condition::Exists }).await;
    assert!(of(&tables, &acme).await.of(BYTES) < after.of(BYTES) - 500);
}

#[tokio::test]
async fn measuring_reports_the_usage_and_at_the_quota_only_deletes_pass() {
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new(keys::KEYSPACES.to_vec()));
    let storage = StorageQuotas::without_metrics(StorageMax::new(|_| 1));
    let tables = Tables::new(engine, Arc::new(SystemClock)).with_quotas(storage);
    let acme = account("acme");
    assert_eq!(tables.check_bytes(&acme), Ok(()));
    tables.create(&acme, name("orders")).await.expect("created");

    tables.measure().await.expect("measured");

    let quotas = tables.quotas(&acme);
    let usage: Vec<_> = quotas.iter().map(|it| (it.quota.as_str(), it.limit)).collect();
    assert_eq!(usage, [("account_stored_bytes_max", 1), ("account_tables_max", 1)]);
    assert_eq!(quotas[1].usage, 1);
    assert!(tables.check_bytes(&acme).is_err());
    let full = tables.create(&acme, name("second")).await;
    assert!(matches!(full, Err(TableError::Invalid(_))), "{full:?}");
}
