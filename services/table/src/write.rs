//! Carries out writes: one entity, an atomic batch, or a chunk of independent entities, each as one commit.
//!
//! No write guards the record of its table. It embeds the number of the table in its keys, so a write that races a
//! deletion lands among rows that the sweeper removes, and never in a later table of the same name.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use trestle_kv::{CommitError, Engine, Write, transact};
use trestle_service::{
    clock::{Ticks, WriteClock},
    fault::{Fault, Reason, quoted},
    limits::{BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX, QUOTA_WAIT_MAX},
};

use crate::{
    authorize::Action,
    error::{OperationError, TableError},
    keys::{self, TableId},
    operation::{Effect, Operation},
    target::Target,
    throttle::{OverQuota, Place, Throttle, Toll},
};

/// Most entities of an import that go into one commit, as in a batch: a merge may rewrite 1 MiB for each.
const IMPORT_COMMIT_ENTITIES_MAX: usize = 100;
/// Most bytes of an import that go into one commit.
const IMPORT_COMMIT_BYTES_MAX: usize = 1024 * 1024;

/// The versions that writes were given; none for a delete.
pub(crate) type Written = Option<Ticks>;

/// The versions of a batch, and the tokens that it owes.
type Batch = (Vec<Written>, u64);

/// Writes entities.
#[derive(Clone)]
pub(crate) struct Writer {
    engine: Arc<dyn Engine>,
    clock: Arc<WriteClock>,
    throttle: Arc<Throttle>,
}

/// How far [`Writer::each`] came.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The outcomes of the first operations, in their order.
    pub(crate) outcomes: Vec<Result<(), TableError>>,
    /// The limit that those after them would have passed, with a wait that is worth waiting, and
    /// they themselves.
    pub(crate) held: Option<(OverQuota, Vec<Operation>)>,
}

impl Writer {
    /// Works on `engine`, within the limits of `throttle`.
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<WriteClock>,
        throttle: Arc<Throttle>,
    ) -> Self {
        Self { engine, clock, throttle }
    }

    /// Writes one entity.
    ///
    /// # Errors
    /// A caller who may not or asks for too much, what the operation fails with, or a failed
    /// commit.
    pub(crate) async fn one(
        &self,
        target: &Target<'_>,
        operation: Operation,
    ) -> Result<Written, TableError> {
        let table = target.one(operation.action(), operation.key())?;
        let key = keys::entity(table, operation.key());
        let mut toll = Toll::of_writes(&self.throttle, target.place());
        toll.pay(&key, operation.weight())?;
        let clock = Arc::clone(&self.clock);
        let written_key = key.clone();
        let (written, debt) = transact(&*self.engine, vec![key.clone()], move |current| {
            let stored = current.first().and_then(Option::as_ref);
            let effect = operation.decide(stored, clock.next())?;
            let outcome = (effect.written_at(), operation.debt(stored, &effect));
            Ok::<_, TableError>((vec![effect.into_write(written_key.clone())], outcome))
        })
        .await??;
        toll.owe(&key, debt);
        Ok(written)
    }

    /// Writes every entity of a batch, or none.
    ///
    /// # Errors
    /// The first operation that the caller may not do or that fails, and its position; a caller who
    /// asks for too much; or a failed commit.
    pub(crate) async fn batch(
        &self,
        target: &Target<'_>,
        operations: Vec<Operation>,
    ) -> Result<Vec<Written>, Fault> {
        let table = target.all(&operations)?;
        check_batch(&operations)?;
        let reads = keys_of(table, &operations);
        // All are in one partition.
        let first = reads.first().cloned().unwrap_or_default();
        let mut toll = Toll::of_writes(&self.throttle, target.place());
        toll.pay(&first, operations.iter().map(Operation::weight).sum())?;
        let clock = Arc::clone(&self.clock);
        let keys = reads.clone();
        let outcome = transact(&*self.engine, reads, move |current| {
            decide_batch(&operations, &keys, current, clock.next())
        })
        .await;
        let (written, debt) = outcome.map_err(TableError::from)??;
        toll.owe(&first, debt);
        Ok(written)
    }

    /// Writes each entity on its own, as far as the limits of the account and its partitions allow.
    ///
    /// A failed commit is never the failure of the whole: see [`Writer::in_commits`].
    ///
    /// # Errors
    /// A caller who may not write at all, or [`TableError::TableNotFound`].
    pub(crate) async fn each(
        &self,
        target: &Target<'_>,
        action: Action,
        operations: Vec<Operation>,
    ) -> Result<Progress, TableError> {
        let table = target.any(action)?;
        let (allowed, mut progress) = self.admit(target, table, operations);
        let written = self.in_commits(target.place(), table, allowed).await;
        let places = progress.outcomes.iter_mut().filter(|outcome| outcome.is_ok());
        for (place, outcome) in places.zip(written) {
            *place = outcome;
        }
        Ok(progress)
    }

    /// The operations to carry out now, and what became of the others.
    fn admit(
        &self,
        target: &Target<'_>,
        table: TableId,
        operations: Vec<Operation>,
    ) -> (Vec<Operation>, Progress) {
        let mut toll = Toll::of_writes(&self.throttle, target.place());
        let mut allowed = Vec::with_capacity(operations.len());
        let mut outcomes = Vec::with_capacity(operations.len());
        let mut operations = operations.into_iter();
        while let Some(operation) = operations.next() {
            let key = keys::entity(table, operation.key());
            let paid = match target.covers(&operation) {
                Ok(()) => toll.pay(&key, operation.weight()).map_err(TableError::from),
                Err(refused) => Err(refused),
            };
            match paid {
                Err(TableError::OverQuota(over)) if over.wait <= QUOTA_WAIT_MAX => {
                    let rest = std::iter::once(operation).chain(operations).collect();
                    return (allowed, Progress { outcomes, held: Some((over, rest)) });
                }
                Err(error) => outcomes.push(Err(error)),
                Ok(()) => {
                    allowed.push(operation);
                    outcomes.push(Ok(()));
                }
            }
        }
        (allowed, Progress { outcomes, held: None })
    }

    /// Several commits may be needed. When one fails, its entities fail as it did, and those after it are not
    /// tried any more; those before it are written.
    async fn in_commits(
        &self,
        place: Place<'_>,
        table: TableId,
        operations: Vec<Operation>,
    ) -> Vec<Result<(), TableError>> {
        let mut outcomes = Vec::with_capacity(operations.len());
        let mut failed: Option<CommitError> = None;
        for part in into_commits(operations) {
            let count = part.len();
            let committed = match &failed {
                Some(error) => Err(error.clone()),
                None => self.commit_each(place, table, part).await,
            };
            match committed {
                Ok(decided) => outcomes.extend(decided),
                Err(error) => {
                    outcomes.extend((0..count).map(|_| Err(error.clone().into())));
                    failed = Some(after(error));
                }
            }
        }
        outcomes
    }

    async fn commit_each(
        &self,
        place: Place<'_>,
        table: TableId,
        part: Vec<Operation>,
    ) -> Result<Vec<Result<(), TableError>>, CommitError> {
        let keys = keys_of(table, &part);
        let reads = keys.clone();
        let clock = Arc::clone(&self.clock);
        let decided = transact(&*self.engine, keys.clone(), move |current| {
            Ok::<_, std::convert::Infallible>(decide_each(&part, &reads, current, &clock))
        })
        .await?;
        let Ok(outcomes) = decided;
        let mut toll = Toll::of_writes(&self.throttle, place);
        for (key, outcome) in keys.iter().zip(&outcomes) {
            if let Ok(debt @ 1..) = outcome {
                toll.owe(key, *debt);
            }
        }
        Ok(outcomes.into_iter().map(|outcome| outcome.map(drop)).collect())
    }
}

/// The failure of what was not tried because of `error`: nothing of it was written.
fn after(error: CommitError) -> CommitError {
    match error {
        CommitError::Unknown { reason } => CommitError::Stopped { reason },
        error => error,
    }
}

impl Effect {
    fn written_at(&self) -> Written {
        match self {
            Self::Put { written_at, .. } => Some(*written_at),
            Self::Delete => None,
        }
    }

    fn into_write(self, key: Bytes) -> Write {
        match self {
            Self::Put { value, .. } => Write::Put { key, value },
            Self::Delete => Write::Delete { key },
        }
    }
}

fn keys_of(table: TableId, operations: &[Operation]) -> Vec<Bytes> {
    operations.iter().map(|operation| keys::entity(table, operation.key())).collect()
}

/// All operations in their order, on what was stored before the batch: no entity occurs twice. Also
/// tells what they owe together.
fn decide_batch(
    operations: &[Operation],
    keys: &[Bytes],
    current: &[Option<Bytes>],
    now: Ticks,
) -> Result<(Vec<Write>, Batch), OperationError> {
    let mut writes = Vec::with_capacity(operations.len());
    let mut written = Vec::with_capacity(operations.len());
    let mut debt = 0;
    for (index, ((operation, key), stored)) in operations.iter().zip(keys).zip(current).enumerate()
    {
        let effect = operation
            .decide(stored.as_ref(), now)
            .map_err(|error| OperationError { index, error })?;
        debt += operation.debt(stored.as_ref(), &effect);
        written.push(effect.written_at());
        writes.push(effect.into_write(key.clone()));
    }
    Ok((writes, (written, debt)))
}

/// Each operation by itself; one that names the entity of an earlier one sees what that one wrote.
/// The outcomes tell what is owed.
fn decide_each(
    operations: &[Operation],
    keys: &[Bytes],
    current: &[Option<Bytes>],
    clock: &WriteClock,
) -> (Vec<Write>, Vec<Result<u64, TableError>>) {
    let mut newest: HashMap<&Bytes, Bytes> = HashMap::new();
    let mut writes = Vec::with_capacity(operations.len());
    let mut outcomes = Vec::with_capacity(operations.len());
    for ((operation, key), stored) in operations.iter().zip(keys).zip(current) {
        let before = newest.get(key).or(stored.as_ref());
        let decided = operation.decide(before, clock.next());
        let decided = decided.map(|effect| (operation.debt(before, &effect), effect));
        let outcome = decided.map(|(debt, effect)| {
            if let Effect::Put { value, .. } = &effect {
                newest.insert(key, value.clone());
            }
            writes.push(effect.into_write(key.clone()));
            debt
        });
        outcomes.push(outcome);
    }
    (writes, outcomes)
}

fn into_commits(operations: Vec<Operation>) -> Vec<Vec<Operation>> {
    let mut parts: Vec<Vec<Operation>> = Vec::new();
    let mut bytes = 0;
    for operation in operations {
        bytes += operation.bytes();
        match parts.last_mut() {
            Some(part)
                if part.len() < IMPORT_COMMIT_ENTITIES_MAX && bytes <= IMPORT_COMMIT_BYTES_MAX =>
            {
                part.push(operation);
            }
            _ => {
                bytes = operation.bytes();
                parts.push(vec![operation]);
            }
        }
    }
    parts
}

/// Refuses a batch of too many operations, before any work goes into them.
///
/// # Errors
/// The failure that says so, of the last operation that a batch could have.
pub(crate) fn check_batch_count(count: usize) -> Result<(), Fault> {
    if count <= BATCH_OPERATIONS_MAX {
        return Ok(());
    }
    let rule = format!("must have at most {BATCH_OPERATIONS_MAX} operations: count=`{count}`");
    let fault = Fault::violation(Reason::InvalidInput, "operations", rule);
    Err(fault.at(BATCH_OPERATIONS_MAX - 1))
}

/// The rules for a batch as a whole: its size, one partition, no entity twice.
fn check_batch(operations: &[Operation]) -> Result<(), Fault> {
    let Some(first) = operations.first() else {
        let rule = "required: 1 to 100 operations";
        return Err(Fault::violation(Reason::InvalidInput, "operations", rule));
    };
    let bytes: usize = operations.iter().map(Operation::bytes).sum();
    if bytes > BATCH_BYTES_MAX {
        let rule = format!("must have at most {BATCH_BYTES_MAX} bytes together: bytes=`{bytes}`");
        return Err(Fault::violation(Reason::RequestBodyTooLarge, "operations", rule));
    }
    let partition = &first.key().partition_key;
    let mut seen = HashSet::new();
    for (index, key) in operations.iter().map(Operation::key).enumerate() {
        let field = || format!("operations[{index}]");
        if key.partition_key != *partition {
            let reason = Reason::CommandsInBatchActOnDifferentPartitions;
            let rule = "all operations must be on one partition: partition_key";
            let rule = format!("{rule}=`{}`", quoted(&key.partition_key));
            return Err(Fault::violation(reason, field(), rule).at(index));
        }
        if !seen.insert(&key.row_key) {
            let rule =
                format!("an entity can appear only once: row_key=`{}`", quoted(&key.row_key));
            return Err(Fault::violation(Reason::InvalidDuplicateRow, field(), rule).at(index));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use trestle_kv::{Change, EngineError, EngineStatus, MemoryEngine, Snapshot};
    use trestle_service::{
        clock::SystemClock,
        fault::Violations,
        name::{AccountName, TableName},
    };

    use super::*;
    use crate::{
        entity::{Entity, EntityKey},
        operation::Prepared,
    };

    /// A memory engine that takes so many commits and then fails.
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

    fn inserts(count: usize) -> Vec<Operation> {
        let insert = |row| {
            let key = EntityKey { partition_key: "p".to_owned(), row_key: format!("{row:04}") };
            Operation::Insert(Prepared::new(Entity { key, properties: Vec::new() }))
        };
        (0..count).map(insert).collect()
    }

    #[tokio::test]
    async fn a_failed_commit_fails_its_entities_and_those_after_it_and_no_others() {
        let reason: Arc<str> = "lost".into();
        let error = CommitError::Unknown { reason };
        let engine = Failing { inner: MemoryEngine::new(), left: AtomicUsize::new(1), error };
        let clock = Arc::new(WriteClock::new(Arc::new(SystemClock)));
        let writer = Writer::new(Arc::new(engine), clock, Arc::new(Throttle::open()));

        let table = TableName::parse("t00".to_owned(), "", &mut Violations::default());
        let (account, table) = (AccountName::development(), table.expect("a name"));
        let place = Place { account: &account, table: &table };

        let inserts = inserts(IMPORT_COMMIT_ENTITIES_MAX * 3);
        let outcomes = writer.in_commits(place, TableId(1), inserts).await;

        let kind = |outcome: &Result<(), TableError>| match outcome {
            Ok(()) => "written",
            Err(TableError::Commit(CommitError::Unknown { .. })) => "unknown",
            Err(TableError::Commit(CommitError::Stopped { .. })) => "not tried",
            Err(_) => "other",
        };
        let parts: Vec<_> = outcomes
            .chunks(IMPORT_COMMIT_ENTITIES_MAX)
            .map(|part| part.iter().map(kind).collect::<HashSet<_>>())
            .collect();
        let all = |kind| HashSet::from([kind]);
        assert_eq!(parts, [all("written"), all("unknown"), all("not tried")]);
    }
}
