//! The table service: entities under a two-part key, with the semantics of Azure Table storage.
//!
//! Three layers: messages, our own types, bytes. Decisions are pure, around one snapshot or one commit.
//!
//! | module | |
//! |---|---|
//! | `api` | parses requests, calls the domain, renders responses |
//! | `authorize` | what a caller may do; `authorized_table` is the only way to the id of a table |
//! | `tables`, `table_settings`, `lookup` | creates, lists, deletes and finds tables, and stores their settings |
//! | `entity`, `value` | the data model, validated once |
//! | `query` | from the text of a filter to the keys to read and the condition to check |
//! | `read` | one entity, or one page of a query |
//! | `operation` | decides the effect of a write on the stored entity |
//! | `write` | commits one operation, a batch, or independent operations; `write::effect` makes the writes |
//! | `throttle` | reserves tokens of quotas, and counts the use of partitions |
//! | `sweep` | removes the entities of deleted tables in the background |
//! | `keys`, `stored` | bytes: together the disk format; `corrupt` is the error of both |

mod api;
mod authorize;
mod authorized_table;
mod corrupt;
pub mod entity;
mod error;
pub mod keys;
mod lookup;
pub mod operation;
mod page_token;
pub mod query;
mod read;
pub mod repair;
#[cfg(test)]
mod samples;
pub mod stored;
mod sweep;
mod table_settings;
mod tables;
mod throttle;
pub mod value;
mod write;

use std::sync::Arc;

use opentelemetry::metrics::Meter;
use trestle_identity::access_policy::recheck::PolicyRechecks;
use trestle_kv::Engine;
use trestle_model::{fault::Fault, limits::MESSAGE_BYTES_MAX, time::Clock};
use trestle_proto::table::v1::table_service_server::TableServiceServer;
use trestle_rpc::layer::middleware::MiddlewareService;
use trestle_rpc::quota::{HeavyHitter, LiveQuotas, StorageQuotas};
use trestle_rpc::served_store::StoreProcesses;

pub use crate::{
    api::TableApi, corrupt::CorruptRecord, error::TableError, keys::KEYSPACES,
    throttle::HotPartition,
};

/// The dependencies of the service.
pub struct TableDeps {
    /// The storage, which is also the source of versions and timestamps.
    pub engine: Arc<dyn Engine>,
    /// The wall clock: stored access policies are valid by it, as tokens are.
    pub clock: Arc<dyn Clock>,
    /// The quotas of accounts and partitions.
    pub quotas: LiveQuotas,
    /// The quotas of accounts on what they store.
    pub storage: StorageQuotas,
    /// The processes that serve the store.
    pub processes: StoreProcesses,
    /// Makes the instruments that count operations over a quota.
    pub meter: Meter,
}

/// The table role of a process.
#[derive(Clone)]
pub struct TableRole {
    api: TableApi,
}

impl TableRole {
    /// Builds the service. Starts nothing.
    #[must_use]
    pub fn new(deps: TableDeps) -> Self {
        Self { api: TableApi::new(deps) }
    }

    /// The gRPC service.
    #[must_use]
    pub fn server(&self) -> MiddlewareService<PolicyRechecks, TableServiceServer<TableApi>> {
        let server = TableServiceServer::new(self.api.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        MiddlewareService::new(self.api.rechecks(), server)
    }

    /// The partitions of all accounts that were used most in the last seconds.
    #[must_use]
    pub fn hottest_partitions(&self, count: usize) -> Vec<HeavyHitter<HotPartition>> {
        self.api.throttle().hottest(None, count)
    }

    /// How many tables exist, up to `tables_max`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn count_tables(&self, tables_max: usize) -> Result<usize, Fault> {
        Ok(self.api.count_tables(tables_max).await?)
    }

    /// Measures what accounts store in tables, if an account has a quota on it. To be called every few seconds, less
    /// often where it takes long.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn measure(&self) -> Result<(), Fault> {
        self.api.measure().await
    }

    /// One step of the removal of deleted tables, to be called every few seconds. True when the next step should
    /// follow at once.
    ///
    /// # Errors
    /// When the store cannot be read or written; the next call repeats the step.
    pub async fn sweep(&self) -> Result<bool, Fault> {
        Ok(self.api.sweeper().tick().await?)
    }
}
