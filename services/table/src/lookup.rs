//! Records of tables.

use bytes::Bytes;
use trestle_identity::access_policy;
use trestle_kv::{Engine, EngineError, Snapshot};
use trestle_model::name::{AccountName, TableName};
use trestle_proto::service::v1::AccessPolicy;

use crate::{
    corrupt::CorruptRecord,
    error::TableError,
    keys::{self, TableId, TableRecord},
};

/// The target of point reads.
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
    let Some(value) = value else { return Ok(Vec::new()) };
    Ok(access_policy::decode(&value).map_err(|_| CorruptRecord("access policies"))?)
}
