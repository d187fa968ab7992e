//! What a table operation can fail with, and what each failure means to a client.

use std::sync::Arc;

use trestle_kv::{CommitError, EngineError};
use trestle_service::{
    fault::{Fault, Reason, quoted},
    name::TableName,
};

use crate::{entity::EntityKey, stored::Corrupt, throttle::OverQuota};

/// A table operation that failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TableError {
    /// The request breaks a rule of the data model, or its caller may not make it.
    #[error(transparent)]
    Invalid(#[from] Fault),
    /// A table of this name, in any case, exists.
    #[error("table exists: table=`{0}`")]
    TableExists(TableName),
    /// An operation inside a table that does not exist.
    #[error("the table specified does not exist: table=`{0}`")]
    TableNotFound(TableName),
    /// The table itself was asked for, and does not exist.
    #[error("the specified resource does not exist: table=`{0}`")]
    TableAbsent(TableName),
    /// An entity with this key exists.
    #[error("the specified entity already exists: {}", describe(.0))]
    EntityExists(EntityKey),
    /// No entity with this key exists.
    #[error("the specified resource does not exist: {}", describe(.0))]
    EntityNotFound(EntityKey),
    /// The stored entity has another version than the request demands.
    #[error("the update condition specified in the request was not satisfied: {}", describe(.0))]
    ConditionNotMet(EntityKey),
    /// A limit of the account or of a partition would be passed. Nothing was done.
    #[error("over a limit: {}", .0.subject)]
    OverQuota(OverQuota),
    /// A stored record cannot be read.
    #[error("stored record unreadable: {0}")]
    Corrupt(Arc<str>),
    /// A read failed.
    #[error(transparent)]
    Read(#[from] EngineError),
    /// A commit failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// A failure and, for a batch, the operation it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct OperationError {
    /// Position of the operation in its batch.
    pub(crate) index: usize,
    /// What went wrong with it.
    pub(crate) error: TableError,
}

impl TableError {
    /// An unreadable record; `what` says which kind.
    pub(crate) fn corrupt(what: &str) -> Self {
        Self::Corrupt(what.into())
    }
}

impl From<OverQuota> for TableError {
    fn from(over: OverQuota) -> Self {
        Self::OverQuota(over)
    }
}

impl From<Corrupt> for TableError {
    fn from(corrupt: Corrupt) -> Self {
        Self::corrupt(corrupt.0)
    }
}

fn describe(key: &EntityKey) -> String {
    format!("partition_key=`{}`, row_key=`{}`", quoted(&key.partition_key), quoted(&key.row_key))
}

impl From<TableError> for Fault {
    fn from(error: TableError) -> Self {
        let message = error.to_string();
        let table =
            |reason, name: &TableName| Self::about(reason, message.clone(), "table", name.as_str());
        let entity = |reason, key: &EntityKey| {
            let name = format!("{}/{}", quoted(&key.partition_key), quoted(&key.row_key));
            Self::about(reason, message.clone(), "entity", name)
        };
        match &error {
            TableError::Invalid(fault) => fault.clone(),
            TableError::TableExists(name) => table(Reason::TableAlreadyExists, name),
            TableError::TableNotFound(name) => table(Reason::TableNotFound, name),
            TableError::TableAbsent(name) => table(Reason::ResourceNotFound, name),
            TableError::EntityExists(key) => entity(Reason::EntityAlreadyExists, key),
            TableError::EntityNotFound(key) => entity(Reason::ResourceNotFound, key),
            TableError::ConditionNotMet(key) => entity(Reason::UpdateConditionNotSatisfied, key),
            TableError::OverQuota(over) => over.clone().into(),
            TableError::Corrupt(_) => Self::new(Reason::CorruptRecord, message),
            TableError::Read(failure) => failure.clone().into(),
            TableError::Commit(failure) => failure.clone().into(),
        }
    }
}

impl From<OperationError> for Fault {
    fn from(failure: OperationError) -> Self {
        Self::from(failure.error).at(failure.index)
    }
}
