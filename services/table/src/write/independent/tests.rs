use std::{
    collections::HashSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use trestle_kv::{Change, Engine, EngineError, EngineStatus, MemoryEngine, Snapshot};
use trestle_service::{
    clock::SystemClock,
    fault::Violations,
    name::{AccountName, TableName},
};

use super::*;
use crate::{
    entity::{Entity, EntityKey},
    operation::EncodedEntity,
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

    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        let take = |left: usize| left.checked_sub(1);
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
            Ok(_) => self.inner.commit(change).await,
            Err(_) => Err(self.error.clone()),
        }
    }

    fn status(&self) -> EngineStatus {
        self.inner.status()
    }
}

fn inserts(count: usize) -> Vec<EntityOperation> {
    let insert = |row| {
        let key = EntityKey { partition_key: "p".to_owned(), row_key: format!("{row:04}") };
        EntityOperation::Insert(EncodedEntity::new(Entity { key, properties: Vec::new() }))
    };
    (0..count).map(insert).collect()
}

#[tokio::test]
async fn a_failed_commit_fails_its_chunk_and_the_later_ones_only() {
    let reason: Arc<str> = "sync failed".into();
    let error = CommitError::Unknown { reason };
    let engine = Failing { inner: MemoryEngine::new(), left: AtomicUsize::new(1), error };
    let clock = Arc::new(WriteClock::new(Arc::new(SystemClock)));
    let writer = EntityWriter::new(Arc::new(engine), clock, Arc::new(Throttle::unlimited()));

    let table = TableName::parse("t00".to_owned(), "", &mut Violations::default());
    let (account, table) = (AccountName::development(), table.expect("a name"));
    let table_ref = TableRef { account: &account, table: &table };

    let inserts = inserts(COMMIT_ENTITIES_MAX * 3);
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
