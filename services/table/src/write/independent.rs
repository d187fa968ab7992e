//! Independent writes: each operation of an import succeeds or fails on its own.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, convert::Infallible};

use bytes::Bytes;
use trestle_kv::{ChangeSpec, CommitError, Limits, Lock, ReadId, Reads, Version, Writes, transact};
use trestle_model::limits::QUOTA_WAIT_MAX;

use super::{EntityWriter, WriteResult, add_writes, keys_of};
use crate::{
    authorize::EntityAction,
    authorized_table::AuthorizedTable,
    error::TableError,
    keys::{self, TableId},
    operation::EntityOperation,
    throttle::{QuotaExceeded, TableRef, TokenReservation},
};

/// Most entities of an import in one commit, as in a batch: a merge may rewrite 1 MiB for each.
const COMMIT_ENTITIES_MAX: usize = 100;
/// Most bytes of an import in one commit.
const COMMIT_BYTES_MAX: usize = 1024 * 1024;

/// The progress of [`EntityWriter::independent`].
#[derive(Debug)]
pub(crate) struct WriteOutcomes {
    /// The outcomes of the first operations, in their order.
    pub(crate) outcomes: Vec<Result<(), TableError>>,
    /// The quota that the operations after those would exceed, with a wait that is short enough to retry, and
    /// those operations.
    pub(crate) deferred: Option<(QuotaExceeded, Vec<EntityOperation>)>,
}

impl EntityWriter {
    /// Writes each entity on its own, as far as the limits of the account and its partitions allow.
    ///
    /// A failed commit fails only its entities and those after it: see [`EntityWriter::in_commits`].
    ///
    /// # Errors
    /// A caller without the permission for `action`, or [`TableError::TableNotFound`].
    pub(crate) async fn independent(
        &self,
        table: &AuthorizedTable<'_>,
        action: EntityAction,
        operations: Vec<EntityOperation>,
    ) -> Result<WriteOutcomes, TableError> {
        let id = table.id_for_any(action)?;
        let (admitted, mut outcomes) = self.admit(table, id, operations);
        let written = self.in_commits(table.table_ref(), id, admitted).await;
        let slots = outcomes.outcomes.iter_mut().filter(|outcome| outcome.is_ok());
        for (slot, outcome) in slots.zip(written) {
            *slot = outcome;
        }
        Ok(outcomes)
    }

    /// The operations to execute now, and the outcomes of the others.
    fn admit(
        &self,
        table: &AuthorizedTable<'_>,
        id: TableId,
        operations: Vec<EntityOperation>,
    ) -> (Vec<EntityOperation>, WriteOutcomes) {
        let mut tokens = TokenReservation::for_points(&self.throttle, table.table_ref());
        let mut admitted = Vec::with_capacity(operations.len());
        let mut outcomes = Vec::with_capacity(operations.len());
        let mut operations = operations.into_iter();
        while let Some(operation) = operations.next() {
            let key = keys::entity(id, operation.key());
            let reserved = match table.check(&operation) {
                Ok(()) => tokens.reserve(&key, operation.weight()).map_err(TableError::from),
                Err(denied) => Err(denied),
            };
            match reserved {
                Err(TableError::QuotaExceeded(exceeded)) if exceeded.wait <= QUOTA_WAIT_MAX => {
                    let rest = std::iter::once(operation).chain(operations).collect();
                    let deferred = Some((exceeded, rest));
                    return (admitted, WriteOutcomes { outcomes, deferred });
                }
                Err(error) => outcomes.push(Err(error)),
                Ok(()) => {
                    admitted.push(operation);
                    outcomes.push(Ok(()));
                }
            }
        }
        (admitted, WriteOutcomes { outcomes, deferred: None })
    }

    /// Several commits may be needed. When one fails, its entities fail with its error, and those after it are
    /// not attempted; those before it are written.
    async fn in_commits(
        &self,
        table: TableRef<'_>,
        id: TableId,
        operations: Vec<EntityOperation>,
    ) -> Vec<Result<(), TableError>> {
        let mut outcomes = Vec::with_capacity(operations.len());
        let mut failed: Option<CommitError> = None;
        for chunk in into_commits(operations, &self.engine.limits()) {
            let count = chunk.len();
            let committed = match &failed {
                Some(error) => Err(error.clone()),
                None => self.commit_chunk(table, id, chunk).await,
            };
            match committed {
                Ok(decided) => outcomes.extend(decided),
                Err(error) => {
                    outcomes.extend((0..count).map(|_| Err(error.clone().into())));
                    failed = Some(not_attempted(error));
                }
            }
        }
        outcomes
    }

    async fn commit_chunk(
        &self,
        table: TableRef<'_>,
        id: TableId,
        chunk: Vec<EntityOperation>,
    ) -> Result<Vec<Result<(), TableError>>, CommitError> {
        let keys = keys_of(id, &chunk);
        let (spec, rows) = spec_of(&keys);
        let decided = transact(&*self.engine, spec, move |reads, version| {
            Ok::<_, Infallible>(decide_chunk(&chunk, &rows, reads, version))
        })
        .await?;
        let Ok(outcomes) = decided;
        let mut tokens = TokenReservation::for_points(&self.throttle, table);
        for (key, outcome) in keys.iter().zip(&outcomes) {
            if let Ok(extra @ 1..) = outcome {
                tokens.debit(key, *extra);
            }
        }
        Ok(outcomes.into_iter().map(|outcome| outcome.map(drop)).collect())
    }
}

/// A change of these rows, and the names of their reads. Each of their partitions is held exclusively.
fn spec_of(keys: &[Bytes]) -> (ChangeSpec, Vec<ReadId>) {
    let mut last = keys::domain(&keys.first().cloned().unwrap_or_default());
    let mut spec = ChangeSpec::new(last.clone());
    for domain in keys.iter().skip(1).map(keys::domain) {
        // Neighbours are mostly in one partition.
        if domain != last {
            spec.also(domain.clone(), Lock::Exclusive);
            last = domain;
        }
    }
    let rows = keys.iter().map(|key| spec.read(key.clone())).collect();
    (spec, rows)
}

/// The error of operations that were not attempted because of `error`: nothing of them was written.
fn not_attempted(error: CommitError) -> CommitError {
    match error {
        CommitError::Unknown { reason } => CommitError::Stopped { reason },
        error => error,
    }
}

/// Each operation by itself, with a version of its own; one on the entity of an earlier one sees what that one wrote.
/// An outcome is the weight beyond that of the request.
fn decide_chunk(
    operations: &[EntityOperation],
    rows: &[ReadId],
    reads: &Reads<'_>,
    version: Version,
) -> (Writes, Vec<Result<u64, TableError>>) {
    let mut newest: HashMap<ReadId, Option<Bytes>> = HashMap::new();
    let mut writes = Writes::with_capacity(operations.len());
    let mut outcomes = Vec::with_capacity(operations.len());
    for (operation, row) in operations.iter().zip(rows) {
        let stored = newest.get(row).map_or_else(|| reads.get(*row), Option::as_ref);
        let decided = operation.decide(stored, version.nth(writes.len()));
        let decided = decided.map(|effect| (WriteResult::of(operation, stored, &effect), effect));
        outcomes.push(decided.map(|(written, effect)| {
            newest.insert(*row, effect.value().cloned());
            add_writes(reads.key(*row), effect, &mut writes);
            written.extra
        }));
    }
    (writes, outcomes)
}

/// Chunks that are small beside the limits of the store.
fn into_commits(operations: Vec<EntityOperation>, limits: &Limits) -> Vec<Vec<EntityOperation>> {
    let most = COMMIT_ENTITIES_MAX.min(limits.domains).min(limits.reads).min(limits.writes);
    let mut chunks: Vec<Vec<EntityOperation>> = Vec::new();
    let mut bytes = 0;
    for operation in operations {
        bytes += operation.bytes();
        match chunks.last_mut() {
            Some(chunk) if chunk.len() < most && bytes <= COMMIT_BYTES_MAX => {
                chunk.push(operation);
            }
            _ => {
                bytes = operation.bytes();
                chunks.push(vec![operation]);
            }
        }
    }
    chunks
}
