//! Versions of entities in a store on disk.

use std::path::Path;

use trestle_identity::caller::{Authority, Caller};
use trestle_kv_fjall::{FjallEngine, FjallOptions};
use trestle_model::etag::Condition;
use trestle_model::fault::Violations;
use trestle_model::name::{AccountName, TableName};
use trestle_model::time::{ManualClock, SystemClock, Ticks};

use super::*;
use crate::{
    authorize::EntityAccess,
    entity::{Entity, EntityKey},
    operation::{EncodedEntity, WriteMode},
    tables::Tables,
};

const NOON: i64 = 1_800_000_000;

/// An owner of the table `orders`.
struct Owner {
    access: EntityAccess,
    table: TableName,
}

impl Owner {
    fn new() -> Self {
        let account = AccountName::development();
        let caller = Arc::new(Caller::new(account, Authority::Owner));
        let table = TableName::parse("orders".to_owned(), "", &mut Violations::default());
        let access = EntityAccess::new(caller).expect("an owner");
        Self { access, table: table.expect("a name") }
    }

    async fn create_table(&self, engine: &Arc<dyn Engine>) {
        let tables = Tables::new(Arc::clone(engine), Arc::new(SystemClock));
        tables.create(self.access.account(), self.table.clone()).await.expect("created");
    }

    async fn write(
        &self,
        engine: &Arc<dyn Engine>,
        operation: EntityOperation,
    ) -> Result<NewVersion, TableError> {
        let tables = Tables::new(Arc::clone(engine), Arc::new(SystemClock));
        let table = tables.authorized(&self.access, &self.table).await.expect("the table");
        let writer = EntityWriter::new(Arc::clone(engine), Arc::new(Throttle::unlimited()));
        writer.one(&table, operation).await
    }

    async fn insert(&self, engine: &Arc<dyn Engine>) -> Ticks {
        let written = self.write(engine, EntityOperation::Insert(entity())).await;
        written.expect("inserted").expect("a version").ticks()
    }

    async fn delete(&self, engine: &Arc<dyn Engine>) {
        let delete = EntityOperation::Delete { key: key(), condition: Condition::Exists };
        assert_eq!(self.write(engine, delete).await.expect("deleted"), None);
    }
}

fn key() -> EntityKey {
    EntityKey { partition_key: "p".to_owned(), row_key: "r".to_owned() }
}

fn entity() -> EncodedEntity {
    EncodedEntity::new(Entity { key: key(), properties: Vec::new() })
}

fn open(directory: &Path, now: i64) -> Arc<dyn Engine> {
    let now = Ticks::from_unix(now, 0).expect("in range");
    let clock = Arc::new(ManualClock::new(now));
    let options = FjallOptions::new(directory, keys::KEYSPACES.to_vec());
    Arc::new(FjallEngine::open(FjallOptions { clock, ..options }).expect("opened"))
}

#[tokio::test]
async fn a_recreated_entity_gets_no_old_version_after_a_restart_with_an_earlier_clock() {
    let directory = tempfile::tempdir().expect("a directory");
    let owner = Owner::new();
    let engine = open(directory.path(), NOON);
    owner.create_table(&engine).await;
    let first = owner.insert(&engine).await;
    owner.delete(&engine).await;
    let second = owner.insert(&engine).await;
    owner.delete(&engine).await;
    drop(engine);

    let engine = open(directory.path(), NOON - 3600);
    let third = owner.insert(&engine).await;

    assert!(first < second && second < third, "{first:?} {second:?} {third:?}");
    for old in [first, second] {
        let condition = Condition::Match(old);
        let update =
            EntityOperation::Update { entity: entity(), mode: WriteMode::Replace, condition };
        let outcome = owner.write(&engine, update).await;
        assert!(matches!(outcome, Err(TableError::ConditionNotMet(_))), "{outcome:?}");
    }
}
