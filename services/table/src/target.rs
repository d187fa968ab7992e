//! The table that a call on entities works in. Its number comes out only to a caller who may do
//! there what the call does, so no entity is reached without that question.

use trestle_kv::Snapshot;
use trestle_service::{
    clock::WriteClock,
    name::{AccountName, TableName},
};

use crate::{
    authorize::{Access, Action, Bounds},
    entity::EntityKey,
    error::{OperationError, TableError},
    keys::TableId,
    operation::Operation,
    settings, tables,
    throttle::Place,
};

/// A table, and what a caller may do there.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    account: &'a AccountName,
    name: &'a TableName,
    /// None: there is no such table, which only a caller who is allowed learns.
    id: Option<TableId>,
    bounds: Bounds<'a>,
}

impl<'a> Target<'a> {
    /// Finds `table` in a snapshot, and what `access` allows there.
    ///
    /// # Errors
    /// An access to another table, or by a stored policy that does not hold; or a failed read.
    pub(crate) async fn find(
        snapshot: &dyn Snapshot,
        access: &'a Access,
        name: &'a TableName,
        clock: &WriteClock,
    ) -> Result<Self, TableError> {
        let id = tables::find(snapshot, access.account(), name).await?.map(|table| table.id);
        let policies = match (access.policy(), id) {
            (Some(_), Some(id)) => settings::stored_policies(snapshot, id).await?,
            _ => Vec::new(),
        };
        let bounds = access.bounds(name, &policies, clock.now())?;
        Ok(Self { account: access.account(), name, id, bounds })
    }

    /// The number of the table, for an action on one entity.
    ///
    /// # Errors
    /// When the caller may not, then [`TableError::TableNotFound`].
    pub(crate) fn one(&self, action: Action, key: &EntityKey) -> Result<TableId, TableError> {
        self.bounds.allow(action, key)?;
        self.id()
    }

    /// The number of the table, for actions on entities that are in the range of the caller or
    /// will be asked for with [`Target::covers`].
    ///
    /// # Errors
    /// When the caller may not, then [`TableError::TableNotFound`].
    pub(crate) fn any(&self, action: Action) -> Result<TableId, TableError> {
        self.bounds.permit(action)?;
        self.id()
    }

    /// The number of the table, for operations that all happen or none.
    ///
    /// # Errors
    /// The first operation that the caller may not do; then [`TableError::TableNotFound`] as that
    /// of the first.
    pub(crate) fn all(&self, operations: &[Operation]) -> Result<TableId, OperationError> {
        if operations.is_empty() {
            // A batch of none is for those who could change something by one.
            let permit = |action| self.permit(action);
            let changes = permit(Action::Insert).or_else(|_| permit(Action::Update));
            let changes = changes.or_else(|_| permit(Action::Delete));
            changes.map_err(|error| OperationError { index: 0, error })?;
        }
        for (index, operation) in operations.iter().enumerate() {
            let allowed = self.covers(operation);
            allowed.map_err(|error| OperationError { index, error })?;
        }
        self.id().map_err(|error| OperationError { index: 0, error })
    }

    /// Whether the caller may do this to some entity.
    ///
    /// # Errors
    /// The failure that says why not.
    pub(crate) fn permit(&self, action: Action) -> Result<(), TableError> {
        Ok(self.bounds.permit(action)?)
    }

    /// Whether the caller may do this operation.
    ///
    /// # Errors
    /// The failure that says why not.
    pub(crate) fn covers(&self, operation: &Operation) -> Result<(), TableError> {
        Ok(self.bounds.allow(operation.action(), operation.key())?)
    }

    /// Whose work it is, and in which table.
    pub(crate) fn place(&self) -> Place<'a> {
        Place { account: self.account, table: self.name }
    }

    fn id(&self) -> Result<TableId, TableError> {
        self.id.ok_or_else(|| TableError::TableNotFound(self.name.clone()))
    }
}
