//! The table that a call on entities works in. Its id is available only through a permission check, so no entity is
//! accessed without one.

use trestle_model::name::{AccountName, TableName};
use trestle_model::time::Ticks;

use crate::{
    authorize::{EntityAccess, EntityAction, EntityPermissions},
    entity::EntityKey,
    error::{OperationError, TableError},
    keys::TableId,
    lookup::{self, PointReads},
    operation::EntityOperation,
    throttle::TableRef,
};

/// A table, and the caller's permissions on it.
#[derive(Debug)]
pub(crate) struct AuthorizedTable<'a> {
    account: &'a AccountName,
    name: &'a TableName,
    /// None: no such table, which is reported only to a caller with the permission.
    id: Option<TableId>,
    permissions: EntityPermissions<'a>,
}

impl<'a> AuthorizedTable<'a> {
    /// Finds a table, and what `access` permits on it now.
    ///
    /// # Errors
    /// An access to another table, or by a stored policy that is not valid now; or a failed read.
    pub(crate) async fn find(
        reads: PointReads<'_>,
        access: &'a EntityAccess,
        name: &'a TableName,
        now: Ticks,
    ) -> Result<Self, TableError> {
        let id = lookup::find(reads, access.account(), name).await?.map(|table| table.id);
        let policies = match (access.policy(), id) {
            (Some(_), Some(id)) => lookup::access_policies(reads, id).await?,
            _ => Vec::new(),
        };
        let permissions = access.permissions(name, &policies, now)?;
        Ok(Self { account: access.account(), name, id, permissions })
    }

    /// The id of the table, for an action on one entity.
    ///
    /// # Errors
    /// A denied permission, then [`TableError::TableNotFound`].
    pub(crate) fn id_for(
        &self,
        action: EntityAction,
        key: &EntityKey,
    ) -> Result<TableId, TableError> {
        self.permissions.check_entity(action, key)?;
        self.id()
    }

    /// The id of the table, for actions on entities that are in the range of the caller or are checked with
    /// [`AuthorizedTable::check`] later.
    ///
    /// # Errors
    /// A denied permission, then [`TableError::TableNotFound`].
    pub(crate) fn id_for_any(&self, action: EntityAction) -> Result<TableId, TableError> {
        self.permissions.check(action)?;
        self.id()
    }

    /// The id of the table, for operations that all happen or none.
    ///
    /// # Errors
    /// The first denied operation; then [`TableError::TableNotFound`] as the error of the first operation.
    pub(crate) fn id_for_all(
        &self,
        operations: &[EntityOperation],
    ) -> Result<TableId, OperationError> {
        let first = |error| OperationError { index: 0, error };
        if operations.is_empty() {
            // An empty batch needs one of the permissions to write.
            let check = |action| self.check_action(action);
            let writes = check(EntityAction::Insert).or_else(|_| check(EntityAction::Update));
            writes.or_else(|_| check(EntityAction::Delete)).map_err(first)?;
        }
        for (index, operation) in operations.iter().enumerate() {
            self.check(operation).map_err(|error| OperationError { index, error })?;
        }
        self.id().map_err(first)
    }

    /// Whether the caller may do this to some entity.
    ///
    /// # Errors
    /// The missing permission.
    pub(crate) fn check_action(&self, action: EntityAction) -> Result<(), TableError> {
        Ok(self.permissions.check(action)?)
    }

    /// Whether the caller may do this operation.
    ///
    /// # Errors
    /// The missing permission.
    pub(crate) fn check(&self, operation: &EntityOperation) -> Result<(), TableError> {
        Ok(self.permissions.check_entity(operation.action(), operation.key())?)
    }

    /// The account and the table.
    pub(crate) fn table_ref(&self) -> TableRef<'a> {
        TableRef { account: self.account, table: self.name }
    }

    fn id(&self) -> Result<TableId, TableError> {
        self.id.ok_or_else(|| TableError::TableNotFound(self.name.clone()))
    }
}
