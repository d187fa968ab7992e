//! Creates, gets and deletes tables, and finds the table of a call.

mod delete;
mod list;
mod usage;

use std::sync::Arc;

use trestle_identity::{
    access_policy,
    caller::{Caller, Letters},
    spec::TABLE,
};
use trestle_kv::{ChangeSpec, Engine, Lock, Writes, count, transact};
use trestle_model::fault::{Fault, Violations};
use trestle_model::name::{AccountName, TableName};
use trestle_model::time::Clock;
use trestle_rpc::quota::{StorageLimit, StorageOwner, StorageQuotas};

pub(crate) use self::list::ListTables;
use crate::{
    authorize::EntityAccess,
    authorized_table::AuthorizedTable,
    error::TableError,
    keys::{self, TableId, TableRecord},
    lookup::{self, PointReads},
};

/// The tables of every account.
#[derive(Clone)]
pub(crate) struct Tables {
    engine: Arc<dyn Engine>,
    /// The wall clock. Stored access policies name times by it, as SAS tokens do, so both are checked by it: a caller
    /// must not lose or keep a permission because service time slews.
    clock: Arc<dyn Clock>,
    storage: StorageQuotas,
}

impl Tables {
    /// The tables in `engine`; `clock` is the wall clock.
    pub(crate) fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Self {
        Self { engine, clock, storage: StorageQuotas::default() }
    }

    /// With quotas of accounts on what they store.
    pub(crate) fn with_quotas(self, storage: StorageQuotas) -> Self {
        Self { storage, ..self }
    }

    /// How many exist, in all accounts, up to a maximum.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn count(&self, tables_max: usize) -> Result<usize, TableError> {
        Ok(count(&*self.engine, keys::all_tables(), tables_max).await?)
    }

    /// Whether an account may store more bytes.
    ///
    /// # Errors
    /// A used quota.
    pub(crate) fn check_bytes(&self, account: &AccountName) -> Result<(), Fault> {
        self.storage.check_bytes(StorageOwner::Tables, account)
    }

    /// Creates a table.
    ///
    /// # Errors
    /// [`TableError::TableExists`], a used quota, or a failed commit.
    pub(crate) async fn create(
        &self,
        account: &AccountName,
        name: TableName,
    ) -> Result<TableRecord, TableError> {
        let count = |tables_max| count(&*self.engine, keys::tables(account), tables_max);
        let room = self.storage.room(account, StorageLimit::Tables, count).await?;
        let full = room.full();
        let table = keys::table(account, &name.folded());
        let counter = keys::next_table_id();
        let mut spec = ChangeSpec::new(keys::domain(&table));
        spec.also(keys::domain(&counter), Lock::Exclusive);
        let (table, counter) = (spec.read(table), spec.read(counter));
        transact(&*self.engine, spec, move |reads, version| {
            if reads.get(table).is_some() {
                return Err(TableError::TableExists(name.clone()));
            }
            if let Some(full) = &full {
                return Err(full.rejected().into());
            }
            let id = keys::decode_next_id(reads.get(counter))?;
            let record = TableRecord::new(id, version.ticks(), &name);
            let mut writes = Writes::with_capacity(2);
            writes.put(reads.key(counter).clone(), keys::encode_next_id(TableId(id.0 + 1)));
            writes.put(reads.key(table).clone(), record.encode());
            Ok((writes, record))
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
        let found = lookup::find(self.newest(), account, &name).await?;
        found.ok_or(TableError::TableAbsent(name))
    }

    /// Admits every caller except one whose stored access policy is not valid now, or who is denied by a check that
    /// follows that of the policy; returns the permissions that a policy leaves the caller. Runs before every other
    /// check, so that no other error discloses anything.
    ///
    /// # Errors
    /// The error of the policy or of the check after it; or a failed read.
    pub(crate) async fn admit(&self, caller: &Caller) -> Result<Option<Letters>, TableError> {
        let Some((grant, policy)) = caller.authority.by_policy() else {
            return Ok(None);
        };
        // The service of the grant stores the policy itself.
        if !grant.is_of(&TABLE) {
            policy.passed()?;
            return Ok(None);
        }
        let name = TableName::parse(grant.resource.name.clone(), "", &mut Violations::default());
        let snapshot = self.engine.snapshot().await?;
        let reads = PointReads::At(&*snapshot);
        let table = match &name {
            Some(name) => lookup::find(reads, &caller.account, name).await?,
            None => None,
        };
        let policies = match table {
            Some(table) => lookup::access_policies(reads, table.id).await?,
            None => Vec::new(),
        };
        Ok(Some(access_policy::permissions(grant, &policies, self.clock.now())?))
    }

    /// The table of a write to entities, and the caller's permissions on it.
    ///
    /// # Errors
    /// See [`AuthorizedTable::find`].
    pub(crate) async fn authorized<'a>(
        &self,
        access: &'a EntityAccess,
        name: &'a TableName,
    ) -> Result<AuthorizedTable<'a>, TableError> {
        AuthorizedTable::find(self.newest(), access, name, self.clock.now()).await
    }

    fn newest(&self) -> PointReads<'_> {
        PointReads::Newest(&*self.engine)
    }
}
