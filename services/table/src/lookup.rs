//! Records of tables in a snapshot.

use trestle_identity::access_policy;
use trestle_kv::Snapshot;
use trestle_proto::service::v1::AccessPolicy;
use trestle_service::name::{AccountName, TableName};

use crate::{
    corrupt::CorruptRecord,
    error::TableError,
    keys::{self, TableId, TableRecord},
};

/// The record of a table in a snapshot.
///
/// # Errors
/// A failed read.
pub(crate) async fn find(
    snapshot: &dyn Snapshot,
    account: &AccountName,
    name: &TableName,
) -> Result<Option<TableRecord>, TableError> {
    let value = snapshot.get(&keys::table(account, &name.folded())).await?;
    Ok(value.map(|value| TableRecord::decode(&value)).transpose()?)
}

/// The id of a table in a snapshot.
///
/// # Errors
/// [`TableError::TableNotFound`], or a failed read.
pub(crate) async fn resolve(
    snapshot: &dyn Snapshot,
    account: &AccountName,
    name: &TableName,
) -> Result<TableId, TableError> {
    let found = find(snapshot, account, name).await?;
    found.map(|table| table.id).ok_or_else(|| TableError::TableNotFound(name.clone()))
}

/// The access policies of a table in a snapshot.
///
/// # Errors
/// A failed read.
pub(crate) async fn access_policies(
    snapshot: &dyn Snapshot,
    id: TableId,
) -> Result<Vec<AccessPolicy>, TableError> {
    let value = snapshot.get(&keys::access_policies(id)).await?;
    let Some(value) = value else { return Ok(Vec::new()) };
    Ok(access_policy::decode(&value).map_err(|_| CorruptRecord("access policies"))?)
}
