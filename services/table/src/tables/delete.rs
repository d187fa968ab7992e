//! Deletes a table.

use trestle_kv::{ChangeSpec, Lock, Writes, transact};
use trestle_model::name::{AccountName, TableName};

use super::Tables;
use crate::{
    error::TableError,
    keys::{self, DeletedTable, TableRecord},
    lookup,
};

impl Tables {
    /// Deletes a table: its name can be reused at once, its entities are removed by the sweeper.
    ///
    /// # Errors
    /// [`TableError::TableAbsent`], or a failed commit.
    pub(crate) async fn delete(
        &self,
        account: &AccountName,
        name: TableName,
    ) -> Result<(), TableError> {
        // The records of a table id are in a domain of their own, so the id is read before the change is made.
        let found = lookup::find(self.newest(), account, &name).await?;
        let id = found.ok_or_else(|| TableError::TableAbsent(name.clone()))?.id;
        let key = keys::table(account, &name.folded());
        let (policies, deleted) = (keys::access_policies(id), keys::deleted_table(id));
        let mut spec = ChangeSpec::new(keys::domain(&key));
        spec.also(keys::domain(&deleted), Lock::Exclusive);
        let table = spec.read(key);
        transact(&*self.engine, spec, move |reads, version| {
            let stored = reads.get(table).map(|value| TableRecord::decode(value)).transpose()?;
            // Another id: meanwhile the table was deleted, and created again after that.
            if stored.is_none_or(|stored| stored.id != id) {
                return Err(TableError::TableAbsent(name.clone()));
            }
            let mut writes = Writes::with_capacity(3);
            let resume = keys::entities(id).start;
            let record = DeletedTable { deleted_at: version.ticks(), resume };
            writes.delete(reads.key(table).clone()).delete(policies.clone());
            writes.put(deleted.clone(), record.encode());
            Ok((writes, ()))
        })
        .await?
    }
}
