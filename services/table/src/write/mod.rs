//! Executes writes: one entity, an atomic batch, or a chunk of independent entities, each as one commit.
//!
//! No write guards the record of its table. The table id is part of its keys, so a write that races a deletion lands
//! among rows that the sweeper removes, and never in a later table of the same name.

mod batch;
mod independent;

use std::sync::Arc;

use bytes::Bytes;
use trestle_kv::{Engine, Write, transact};
use trestle_service::clock::{Ticks, WriteClock};

pub(crate) use self::{batch::check_batch_count, independent::WriteOutcomes};
use crate::{
    authorized_table::AuthorizedTable,
    error::TableError,
    keys::{self, TableId},
    operation::{Effect, EntityOperation},
    throttle::{Throttle, TokenReservation},
};

/// The version that a write gave an entity; none for a delete.
pub(crate) type NewVersion = Option<Ticks>;

/// Writes entities.
#[derive(Clone)]
pub(crate) struct EntityWriter {
    engine: Arc<dyn Engine>,
    clock: Arc<WriteClock>,
    throttle: Arc<Throttle>,
}

impl EntityWriter {
    /// Writes to `engine`, within the limits of `throttle`.
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
        let clock = Arc::clone(&self.clock);
        let written_key = key.clone();
        let (version, extra) = transact(&*self.engine, vec![key.clone()], move |current| {
            let stored = current.first().and_then(Option::as_ref);
            let effect = operation.decide(stored, clock.next())?;
            let outcome = (effect.version(), operation.extra_weight(stored, &effect));
            Ok::<_, TableError>((vec![effect.into_write(written_key.clone())], outcome))
        })
        .await??;
        tokens.debit(&key, extra);
        Ok(version)
    }
}

impl Effect {
    fn version(&self) -> NewVersion {
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

fn keys_of(table: TableId, operations: &[EntityOperation]) -> Vec<Bytes> {
    operations.iter().map(|operation| keys::entity(table, operation.key())).collect()
}
