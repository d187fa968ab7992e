//! Creates, gets and deletes tables, and finds the table of a call.

mod list;

use std::sync::Arc;

use bytes::Bytes;
use trestle_identity::caller::{Authority, Caller, QueueGrant};
use trestle_kv::{Engine, Write, transact};
use trestle_service::{
    clock::{Ticks, WriteClock},
    fault::Violations,
    name::{AccountName, TableName},
};

pub(crate) use self::list::ListTables;
use crate::{
    authorize::{self, EntityAccess},
    authorized_table::AuthorizedTable,
    corrupt::CorruptRecord,
    error::TableError,
    keys::{self, DeletedTable, TableId, TableRecord},
    lookup,
};

/// The tables of every account.
#[derive(Clone)]
pub(crate) struct Tables {
    engine: Arc<dyn Engine>,
    clock: Arc<WriteClock>,
}

impl Tables {
    /// The tables in `engine`.
    pub(crate) fn new(engine: Arc<dyn Engine>, clock: Arc<WriteClock>) -> Self {
        Self { engine, clock }
    }

    /// Creates a table.
    ///
    /// # Errors
    /// [`TableError::TableExists`], or a failed commit.
    pub(crate) async fn create(
        &self,
        account: &AccountName,
        name: TableName,
    ) -> Result<TableRecord, TableError> {
        let key = keys::table(account, &name.folded());
        let reads = vec![key.clone(), keys::next_table_id()];
        let created_at = self.clock.next();
        transact(&*self.engine, reads, move |current| {
            let [existing, next_id] = current else {
                return Err(CorruptRecord("two keys were read").into());
            };
            if existing.is_some() {
                return Err(TableError::TableExists(name.clone()));
            }
            decide_create(&key, next_id.as_ref(), created_at, &name)
        })
        .await?
    }

    /// The record of a table.
    ///
    /// # Errors
    /// [`TableError::TableAbsent`], or a failed read.
    pub(crate) async fn get(
        &self,
        account: &AccountName,
        name: TableName,
    ) -> Result<TableRecord, TableError> {
        let snapshot = self.engine.snapshot().await?;
        lookup::find(&*snapshot, account, &name).await?.ok_or(TableError::TableAbsent(name))
    }

    /// Admits every caller except one whose stored access policy is not valid now, or who is denied by a check that
    /// follows that of the policy. Runs before every other check, so that such a caller learns nothing else.
    ///
    /// # Errors
    /// The error of the policy or of the check after it; or a failed read.
    pub(crate) async fn admit(&self, caller: &Caller) -> Result<(), TableError> {
        let grant = match &caller.authority {
            Authority::Table(grant) if grant.policy.is_some() => grant,
            // The policy itself is stored in the queue service.
            Authority::Queue(QueueGrant { policy: Some(policy), .. }) => {
                return Ok(policy.passed()?);
            }
            _ => return Ok(()),
        };
        let name = TableName::parse(grant.table.clone(), "", &mut Violations::default());
        let snapshot = self.engine.snapshot().await?;
        let table = match &name {
            Some(name) => lookup::find(&*snapshot, &caller.account, name).await?,
            None => None,
        };
        let policies = match table {
            Some(table) => lookup::access_policies(&*snapshot, table.id).await?,
            None => Vec::new(),
        };
        authorize::permissions(grant, &policies, self.clock.now())?;
        Ok(())
    }

    /// The table that a write to entities works in, and the caller's permissions there.
    ///
    /// # Errors
    /// See [`AuthorizedTable::find`].
    pub(crate) async fn authorized<'a>(
        &self,
        access: &'a EntityAccess,
        name: &'a TableName,
    ) -> Result<AuthorizedTable<'a>, TableError> {
        AuthorizedTable::find(&*self.engine.snapshot().await?, access, name, &self.clock).await
    }

    /// Deletes a table: its name can be reused at once, its entities are removed by the sweeper.
    ///
    /// # Errors
    /// [`TableError::TableAbsent`], or a failed commit.
    pub(crate) async fn delete(
        &self,
        account: &AccountName,
        name: TableName,
    ) -> Result<(), TableError> {
        let key = keys::table(account, &name.folded());
        let deleted_at = self.clock.next();
        transact(&*self.engine, vec![key.clone()], move |current| {
            let Some(Some(value)) = current.first() else {
                return Err(TableError::TableAbsent(name.clone()));
            };
            Ok((decide_delete(&key, TableRecord::decode(value)?.id, deleted_at), ()))
        })
        .await?
    }
}

fn decide_create(
    key: &Bytes,
    next_id: Option<&Bytes>,
    created_at: Ticks,
    name: &TableName,
) -> Result<(Vec<Write>, TableRecord), TableError> {
    let id = keys::decode_next_id(next_id)?;
    let record = TableRecord::new(id, created_at, name);
    let writes = vec![
        Write::Put { key: keys::next_table_id(), value: keys::encode_next_id(TableId(id.0 + 1)) },
        Write::Put { key: key.clone(), value: record.encode() },
    ];
    Ok((writes, record))
}

fn decide_delete(key: &Bytes, id: TableId, deleted_at: Ticks) -> Vec<Write> {
    let deleted = DeletedTable { deleted_at, resume: keys::entities(id).start };
    vec![
        Write::Delete { key: key.clone() },
        Write::Delete { key: keys::access_policies(id) },
        Write::Put { key: keys::deleted_table(id), value: deleted.encode() },
    ]
}
