//! The errors of table operations, and their one conversion to a fault.

use trestle_kv::{CommitError, EngineError};
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::name::TableName;

use crate::{corrupt::CorruptRecord, entity::EntityKey, throttle::QuotaExceeded};

/// A table operation that failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TableError {
    /// The request breaks a rule of the data model, or is not permitted.
    #[error(transparent)]
    Invalid(#[from] Fault),
    /// A table of this name, in any case, exists.
    #[error("table exists: table=`{0}`")]
    TableExists(TableName),
    /// An operation inside a table that does not exist.
    #[error("the table specified does not exist: table=`{0}`")]
    TableNotFound(TableName),
    /// An operation on a table that does not exist.
    #[error("the specified resource does not exist: table=`{0}`")]
    TableAbsent(TableName),
    /// An entity with this key exists.
    #[error("the specified entity already exists: {}", describe(.0))]
    EntityExists(EntityKey),
    /// No entity with this key exists.
    #[error("the specified resource does not exist: {}", describe(.0))]
    EntityNotFound(EntityKey),
    /// The version of the stored entity differs from that of the request.
    #[error("the update condition specified in the request was not satisfied: {}", describe(.0))]
    ConditionNotMet(EntityKey),
    /// A quota of the account or of a partition would be exceeded. Nothing was read or written.
    #[error("over a limit: {}", .0.subject)]
    QuotaExceeded(QuotaExceeded),
    /// A stored record cannot be decoded.
    #[error(transparent)]
    Corrupt(#[from] CorruptRecord),
    /// A read failed.
    #[error(transparent)]
    Read(#[from] EngineError),
    /// A commit failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// An error, and the operation of a batch that it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct OperationError {
    /// Position of the operation in its batch.
    pub(crate) index: usize,
    /// Its error.
    pub(crate) error: TableError,
}

impl From<QuotaExceeded> for TableError {
    fn from(exceeded: QuotaExceeded) -> Self {
        Self::QuotaExceeded(exceeded)
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
            TableError::QuotaExceeded(exceeded) => exceeded.clone().into(),
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
