//! Stored access policies of a table, and the service properties of an account: checks and storage.

use std::sync::Arc;

use trestle_identity::{access_policy, spec::TABLE};
use trestle_kv::{ChangeSpec, Engine, Reads, Writes, transact};
use trestle_model::fault::Fault;
use trestle_model::name::{AccountName, TableName};
use trestle_proto::service::v1::{AccessPolicy, ServiceProperties};
use trestle_rpc::service_properties;

use crate::{
    error::TableError,
    keys,
    lookup::{self, PointReads},
};

/// The settings of tables and accounts.
#[derive(Clone)]
pub(crate) struct TableSettings {
    engine: Arc<dyn Engine>,
}

impl TableSettings {
    /// The settings in `engine`.
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// The access policies of a table.
    ///
    /// # Errors
    /// [`TableError::TableNotFound`], or a failed read.
    pub(crate) async fn access_policies(
        &self,
        account: &AccountName,
        table: &TableName,
    ) -> Result<Vec<AccessPolicy>, TableError> {
        let snapshot = self.engine.snapshot().await?;
        let reads = PointReads::At(&*snapshot);
        let id = lookup::resolve(reads, account, table).await?;
        lookup::access_policies(reads, id).await
    }

    /// Replaces the access policies of a table.
    ///
    /// # Errors
    /// A broken rule, [`TableError::TableNotFound`], or a failed commit.
    pub(crate) async fn set_access_policies(
        &self,
        account: &AccountName,
        table: &TableName,
        policies: Vec<AccessPolicy>,
    ) -> Result<(), TableError> {
        check_policies(&policies)?;
        let reads = PointReads::Newest(&*self.engine);
        let id = lookup::resolve(reads, account, table).await?;
        let key = keys::access_policies(id);
        let spec = ChangeSpec::new(keys::domain(&key));
        let mut writes = Writes::with_capacity(1);
        if policies.is_empty() {
            writes.delete(key);
        } else {
            writes.put(key, access_policy::encode(policies));
        }
        let decide = move |_: &Reads<'_>, _| Ok::<_, TableError>((writes.clone(), ()));
        transact(&*self.engine, spec, decide).await?
    }

    /// The service properties, every part set.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn properties(
        &self,
        account: &AccountName,
    ) -> Result<ServiceProperties, TableError> {
        let key = keys::service_properties(account);
        Ok(service_properties::read(&*self.engine, &key).await?)
    }

    /// Changes the specified parts of the service properties.
    ///
    /// # Errors
    /// A broken rule, or a failed commit.
    pub(crate) async fn set_properties(
        &self,
        account: &AccountName,
        change: ServiceProperties,
    ) -> Result<(), TableError> {
        let key = keys::service_properties(account);
        let domain = keys::domain(&key);
        Ok(service_properties::change(&*self.engine, domain, key, change).await?)
    }
}

fn check_policies(policies: &[AccessPolicy]) -> Result<(), Fault> {
    access_policy::check(policies, &TABLE.letters())
}
