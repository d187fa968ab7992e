//! Atomic batches: all operations on one partition, all written or none.

use std::collections::HashSet;

use trestle_kv::{ChangeSpec, ReadId, Reads, Version, Writes, transact};
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::limits::{BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX};

use super::{EntityWriter, NewVersion, WriteResult, add_writes, keys_of};
use crate::{
    authorized_table::AuthorizedTable,
    error::{OperationError, TableError},
    keys,
    operation::EntityOperation,
    throttle::TokenReservation,
};

impl EntityWriter {
    /// Writes every entity of a batch, or none.
    ///
    /// # Errors
    /// The first operation that is denied or fails, with its position; an exceeded quota; or a failed commit.
    pub(crate) async fn batch(
        &self,
        table: &AuthorizedTable<'_>,
        operations: Vec<EntityOperation>,
    ) -> Result<Vec<NewVersion>, Fault> {
        let id = table.id_for_all(&operations)?;
        check_batch(&operations)?;
        let keys = keys_of(id, &operations);
        // All are in one partition.
        let first = keys.first().cloned().unwrap_or_default();
        let mut tokens = TokenReservation::for_points(&self.throttle, table.table_ref());
        tokens.reserve(&first, operations.iter().map(EntityOperation::weight).sum())?;
        let mut spec = ChangeSpec::new(keys::domain(&first));
        let rows: Vec<_> = keys.into_iter().map(|key| spec.read(key)).collect();
        let decided = transact(&*self.engine, spec, move |reads, version| {
            decide_batch(&operations, &rows, reads, version)
        })
        .await;
        let written = decided.map_err(TableError::from)??;
        tokens.debit(&first, written.iter().map(|written| written.extra).sum());
        Ok(written.into_iter().map(|written| written.version).collect())
    }
}

/// All operations in their order, on the values before the batch: no entity occurs twice. The entities share one
/// version.
fn decide_batch(
    operations: &[EntityOperation],
    rows: &[ReadId],
    reads: &Reads<'_>,
    version: Version,
) -> Result<(Writes, Vec<WriteResult>), OperationError> {
    let mut writes = Writes::with_capacity(operations.len());
    let mut written = Vec::with_capacity(operations.len());
    for (index, (operation, row)) in operations.iter().zip(rows).enumerate() {
        let stored = reads.get(*row);
        let effect =
            operation.decide(stored, version).map_err(|error| OperationError { index, error })?;
        written.push(WriteResult::of(operation, stored, &effect));
        add_writes(reads.key(*row), effect, &mut writes);
    }
    Ok((writes, written))
}

/// Rejects a batch of too many operations, before any of them is parsed.
///
/// # Errors
/// The fault, at the first operation that is one too many.
pub(crate) fn check_batch_count(count: usize) -> Result<(), Fault> {
    if count <= BATCH_OPERATIONS_MAX {
        return Ok(());
    }
    let rule = format!("must have at most {BATCH_OPERATIONS_MAX} operations: count=`{count}`");
    let fault = Fault::violation(Reason::InvalidInput, "operations", rule);
    Err(fault.at(BATCH_OPERATIONS_MAX))
}

/// The rules for a batch as a whole: its size, one partition, no entity twice.
fn check_batch(operations: &[EntityOperation]) -> Result<(), Fault> {
    let Some(first) = operations.first() else {
        let rule = "required: 1 to 100 operations";
        return Err(Fault::violation(Reason::InvalidInput, "operations", rule));
    };
    let bytes: usize = operations.iter().map(EntityOperation::bytes).sum();
    if bytes > BATCH_BYTES_MAX {
        let rule = format!("must have at most {BATCH_BYTES_MAX} bytes together: bytes=`{bytes}`");
        return Err(Fault::violation(Reason::RequestBodyTooLarge, "operations", rule));
    }
    let partition = &first.key().partition_key;
    let mut row_keys = HashSet::new();
    for (index, key) in operations.iter().map(EntityOperation::key).enumerate() {
        let field = || format!("operations[{index}]");
        if key.partition_key != *partition {
            let reason = Reason::CommandsInBatchActOnDifferentPartitions;
            let rule = "all operations must be on one partition: partition_key";
            let rule = format!("{rule}=`{}`", quoted(&key.partition_key));
            return Err(Fault::violation(reason, field(), rule).at(index));
        }
        if !row_keys.insert(&key.row_key) {
            let rule =
                format!("an entity can appear only once: row_key=`{}`", quoted(&key.row_key));
            return Err(Fault::violation(Reason::InvalidDuplicateRow, field(), rule).at(index));
        }
    }
    Ok(())
}
