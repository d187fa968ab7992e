//! Executes writes: one entity, an atomic batch, or a chunk of independent entities, each as one commit.
//!
//! No write guards the record of its table. The table id is part of its keys, so a write that races a deletion lands
//! among rows that the sweeper removes, and never in a later table of the same name.
//!
//! The version of an entity is that of the change that wrote it, so etags rise per entity across restarts, and a
//! deleted and re-created entity never gets an old one again.

mod batch;
mod effect;
mod independent;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Engine, Reads, Version, Writes, transact};

use self::effect::add_writes;
pub(crate) use self::{batch::check_batch_count, independent::WriteOutcomes};
use crate::{
    authorized_table::AuthorizedTable,
    error::TableError,
    keys::{self, TableId},
    operation::{EntityEffect, EntityOperation},
    throttle::{Throttle, TokenReservation},
};

/// The version that a write assigned to an entity; none for a delete.
pub(crate) type NewVersion = Option<Version>;

/// Writes entities.
#[derive(Clone)]
pub(crate) struct EntityWriter {
    engine: Arc<dyn Engine>,
    throttle: Arc<Throttle>,
}

/// The result of one operation.
struct WriteResult {
    version: NewVersion,
    /// Tokens beyond the weight of the request.
    extra: u64,
}

impl EntityWriter {
    /// Writes to `engine`, within the limits of `throttle`.
    pub(crate) fn new(engine: Arc<dyn Engine>, throttle: Arc<Throttle>) -> Self {
        Self { engine, throttle }
    }

    /// Writes one entity.
    ///
    /// # Errors
    /// A denied permission, an exceeded quota, what the operation fails with, or a failed commit.
    pub(crate) async fn one(
        &self,
        table: &AuthorizedTable<'_>,
        operation: EntityOperation,
    ) -> Result<NewVersion, TableError> {
        let id = table.id_for(operation.action(), operation.key())?;
        let key = keys::entity(id, operation.key());
        let mut tokens = TokenReservation::for_points(&self.throttle, table.table_ref());
        tokens.reserve(&key, operation.weight())?;
        let mut spec = ChangeSpec::new(keys::domain(&key));
        let row = spec.read(key.clone());
        let written = transact(&*self.engine, spec, move |reads: &Reads<'_>, version| {
            let mut writes = Writes::with_capacity(1);
            let stored = reads.get(row);
            let effect = operation.decide(stored, version)?;
            let written = WriteResult::of(&operation, stored, &effect);
            add_writes(reads.key(row), effect, &mut writes);
            Ok::<_, TableError>((writes, written))
        })
        .await??;
        tokens.debit(&key, written.extra);
        Ok(written.version)
    }
}

impl WriteResult {
    fn of(operation: &EntityOperation, stored: Option<&Bytes>, effect: &EntityEffect) -> Self {
        let version = match effect {
            EntityEffect::Put { version, .. } => Some(*version),
            EntityEffect::Delete => None,
        };
        Self { version, extra: operation.extra_weight(stored, effect) }
    }
}

fn keys_of(table: TableId, operations: &[EntityOperation]) -> Vec<Bytes> {
    operations.iter().map(|operation| keys::entity(table, operation.key())).collect()
}
