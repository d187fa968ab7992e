use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use trestle_kv::{
    Change, Engine, EngineError, EngineStatus, MemoryEngine, ReadSet, Snapshot, Write,
};
use trestle_model::fault::Violations;
use trestle_model::name::{AccountName, TableName};
use trestle_model::time::Ticks;

use super::*;
use crate::{
    entity::{Entity, EntityKey},
    operation::{EncodedEntity, WriteMode},
    stored,
    throttle::Throttle,
};

/// A memory engine that accepts so many commits and then fails.
struct Failing {
    inner: MemoryEngine,
    left: AtomicUsize,
    error: CommitError,
}

#[async_trait]
impl Engine for Failing {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        self.inner.snapshot().await
    }

    async fn commit(&self, change: Change) -> Result<Version, CommitError> {
        let take = |left: usize| left.checked_sub(1);
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
            Ok(_) => self.inner.commit(change).await,
            Err(_) => Err(self.error.clone()),
        }
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn now(&self) -> Ticks {
        self.inner.now()
    }

    fn status(&self) -> EngineStatus {
        self.inner.status()
    }
}

fn insert(row: usize) -> EntityOperation {
    let key = EntityKey { partition_key: format!("p{}", row % 7), row_key: format!("{row:04}") };
    EntityOperation::Insert(EncodedEntity::new(Entity { key, properties: Vec::new() }))
}

#[tokio::test]
async fn a_failed_commit_fails_its_chunk_and_the_later_ones_only() {
    let reason: Arc<str> = "sync failed".into();
    let error = CommitError::Unknown { reason };
    let inner = MemoryEngine::new(keys::KEYSPACES);
    let engine = Failing { inner, left: AtomicUsize::new(1), error };
    let writer = EntityWriter::new(Arc::new(engine), Arc::new(Throttle::unlimited()));

    let table = TableName::parse("t00".to_owned(), "", &mut Violations::default());
    let (account, table) = (AccountName::development(), table.expect("a name"));
    let table_ref = TableRef { account: &account, table: &table };

    let inserts = (0..COMMIT_ENTITIES_MAX * 3).map(insert).collect();
    let outcomes = writer.in_commits(table_ref, TableId(1), inserts).await;

    let kind = |outcome: &Result<(), TableError>| match outcome {
        Ok(()) => "written",
        Err(TableError::Commit(CommitError::Unknown { .. })) => "unknown",
        Err(TableError::Commit(CommitError::Stopped { .. })) => "not attempted",
        Err(_) => "other",
    };
    let parts: Vec<_> = outcomes
        .chunks(COMMIT_ENTITIES_MAX)
        .map(|part| part.iter().map(kind).collect::<HashSet<_>>())
        .collect();
    let all = |kind| HashSet::from([kind]);
    assert_eq!(parts, [all("written"), all("unknown"), all("not attempted")]);
}

#[test]
fn versions_of_one_chunk_count_up_in_the_order_of_its_writes() {
    let upsert = |row| match insert(row) {
        EntityOperation::Insert(entity) => {
            EntityOperation::Upsert { entity, mode: WriteMode::Replace }
        }
        other => other,
    };
    // The second insert of row 1 fails, so it has no version.
    let operations = [insert(1), insert(2), insert(1), upsert(1), upsert(1)];
    let mut set = ReadSet::default();
    let rows: Vec<_> =
        keys_of(TableId(1), &operations).into_iter().map(|key| set.add(key)).collect();
    let version = Version::new(Ticks::from_unix(1, 0).expect("in range"));

    let absent = vec![None; set.keys().len()];
    let (writes, outcomes) = decide_chunk(&operations, &rows, &Reads::new(&set, &absent), version);

    let failed: Vec<_> = outcomes.iter().map(Result::is_err).collect();
    assert_eq!(failed, [false, false, true, false, false]);
    let versions: Vec<_> = writes
        .into_iter()
        .map(|write| match write {
            Write::Put { key, value } => (key, stored::written_at(&value)),
            Write::Delete { .. } => panic!("nothing is deleted"),
        })
        .collect();
    let key = |index: usize| set.keys().get(index).expect("two rows").clone();
    let nth = |index| Ok(version.nth(index).ticks());
    let expected = [(key(0), nth(0)), (key(1), nth(1)), (key(0), nth(2)), (key(0), nth(3))];
    assert_eq!(versions, expected);
}

#[test]
fn a_chunk_names_each_of_its_partitions() {
    let operations: Vec<_> = (0..14).map(insert).collect();
    let keys = keys_of(TableId(1), &operations);

    let (spec, rows) = spec_of(&keys);

    let mut named: HashSet<_> = spec.also.iter().map(|(domain, _)| domain.clone()).collect();
    named.insert(spec.domain.clone());
    assert_eq!(named, keys.iter().map(keys::domain).collect());
    assert_eq!((named.len(), rows.len()), (7, 14));
    assert!(spec.also.iter().all(|(_, lock)| *lock == Lock::Exclusive));
}
