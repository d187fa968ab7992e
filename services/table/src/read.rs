//! Executes reads: one entity, or one bounded page of a query, each on one consistent snapshot.

mod page;
mod span;

use std::sync::Arc;

use bytes::Bytes;
use trestle_kv::Engine;
use trestle_model::{name::TableName, time::Clock};
use trestle_rpc::quota;

pub(crate) use self::page::{EntityPage, PageLimit};
use crate::{
    authorize::{EntityAccess, EntityAction},
    authorized_table::AuthorizedTable,
    entity::EntityKey,
    error::TableError,
    keys,
    lookup::PointReads,
    query::{Filter, QueryPlan},
    stored::{self, Projection},
    throttle::{Throttle, TokenReservation},
};

/// Reads entities.
#[derive(Clone)]
pub(crate) struct EntityReader {
    engine: Arc<dyn Engine>,
    clock: Arc<dyn Clock>,
    throttle: Arc<Throttle>,
}

/// A parsed query of a request.
#[derive(Debug)]
pub(crate) struct QueryRequest {
    /// The table it reads.
    pub(crate) table: TableName,
    /// The text of the filter; page tokens are bound to it.
    pub(crate) filter_text: String,
    /// The same, parsed; none for every entity.
    pub(crate) filter: Option<Filter>,
    /// The properties to return of each entity; all where none.
    pub(crate) select: Option<Projection>,
    /// The field of the request that carries the token, for violations.
    pub(crate) token_field: &'static str,
}

/// A planned query of a caller: reads no key outside of the caller's range.
#[derive(Debug)]
pub(crate) struct PlannedQuery {
    access: EntityAccess,
    request: QueryRequest,
    plan: QueryPlan,
}

impl PlannedQuery {
    /// Plans a query.
    pub(crate) fn new(access: EntityAccess, request: QueryRequest) -> Self {
        let plan = match access.range() {
            None => QueryPlan::new(request.filter.as_ref()),
            Some(range) => QueryPlan::within(request.filter.as_ref(), range),
        };
        Self { access, request, plan }
    }

    /// The keys to read, and the condition to check on each entity.
    pub(crate) fn plan(&self) -> &QueryPlan {
        &self.plan
    }

    /// The filter, as it was given.
    pub(crate) fn filter(&self) -> Option<&Filter> {
        self.request.filter.as_ref()
    }

    /// Whether the request selects the properties to return.
    pub(crate) fn selects(&self) -> bool {
        self.request.select.is_some()
    }
}

/// The cost of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReadCost {
    /// Entities examined.
    pub(crate) scanned: u64,
    /// Entities returned.
    pub(crate) returned: u64,
    /// Bytes of stored entities examined.
    pub(crate) bytes: u64,
}

impl EntityReader {
    /// Reads `engine`, within the limits of `throttle`; `clock` is the wall clock, by which access policies are valid.
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<dyn Clock>,
        throttle: Arc<Throttle>,
    ) -> Self {
        Self { engine, clock, throttle }
    }

    /// One encoded entity, and the cost of the read.
    ///
    /// # Errors
    /// A denied permission, an exceeded quota, [`TableError::TableNotFound`],
    /// [`TableError::EntityNotFound`], or a failed read.
    pub(crate) async fn get(
        &self,
        access: &EntityAccess,
        table: &TableName,
        key: EntityKey,
        select: Option<&Projection>,
    ) -> Result<(Bytes, ReadCost), TableError> {
        let snapshot = self.engine.snapshot().await?;
        let reads = PointReads::At(&*snapshot);
        let table = AuthorizedTable::find(reads, access, table, self.clock.now()).await?;
        let id = table.id_for(EntityAction::Read, &key)?;
        let stored = keys::entity(id, &key);
        let mut tokens = TokenReservation::for_points(&self.throttle, table.table_ref());
        tokens.reserve(&stored, 1)?;
        let Some(value) = snapshot.get(&stored).await? else {
            return Err(TableError::EntityNotFound(key));
        };
        tokens.debit(&stored, quota::weight(value.len()) - 1);
        let entity = project(stored::wire(&value)?, select)?;
        Ok((entity, ReadCost { scanned: 1, returned: 1, bytes: value.len() as u64 }))
    }
}

fn project(wire: Bytes, select: Option<&Projection>) -> Result<Bytes, TableError> {
    match select {
        None => Ok(wire),
        Some(select) => Ok(select.project(&wire)?),
    }
}
