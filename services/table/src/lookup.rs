//! Records of tables.

use bytes::Bytes;
use trestle_kv::{Engine, EngineError, Snapshot};
use trestle_proto::service::v1::AccessPolicy;
use trestle_proto::table::v1::SetTableAccessPoliciesRequest;
use trestle_service::name::{AccountName, TableName};

use crate::{
    error::TableError,
    keys::{self, TableId, TableRecord},
};

/// Where point reads go.
#[derive(Clone, Copy)]
pub(crate) enum PointReads<'a> {
    /// To the newest values.
    Newest(&'a dyn Engine),
    /// To the values of a snapshot.
    At(&'a dyn Snapshot),
}

impl PointReads<'_> {
    async fn get(self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        match self {
            Self::Newest(engine) => engine.get(key).await,
            Self::At(snapshot) => snapshot.get(key).await,
        }
    }
}

/// The record of a table.
///
/// # Errors
/// A failed read.
pub(crate) async fn find(
    reads: PointReads<'_>,
    account: &AccountName,
    name: &TableName,
) -> Result<Option<TableRecord>, TableError> {
    let value = reads.get(&keys::table(account, &name.folded())).await?;
    Ok(value.map(|value| TableRecord::decode(&value)).transpose()?)
}

/// The id of a table.
///
/// # Errors
/// [`TableError::TableNotFound`], or a failed read.
pub(crate) async fn resolve(
    reads: PointReads<'_>,
    account: &AccountName,
    name: &TableName,
) -> Result<TableId, TableError> {
    let found = find(reads, account, name).await?;
    found.map(|table| table.id).ok_or_else(|| TableError::TableNotFound(name.clone()))
}

/// The access policies of a table.
///
/// # Errors
/// A failed read.
pub(crate) async fn access_policies(
    reads: PointReads<'_>,
    id: TableId,
) -> Result<Vec<AccessPolicy>, TableError> {
    let value = reads.get(&keys::access_policies(id)).await?;
    let stored: SetTableAccessPoliciesRequest =
        keys::decode_message(value.as_ref(), "access policies")?;
    Ok(stored.policies)
}
