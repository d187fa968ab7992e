//! The table service: entities under a two-part key, with the semantics of Azure Table storage.
//!
//! Three layers. `api` speaks protobuf and decides nothing. `authorize`, `target`, `tables`, `write`,
//! `operation`, `read`, `query`, `throttle` and `settings` speak our own types; what they decide is pure, around
//! one snapshot or one commit. `keys` and `stored` speak bytes: together they are the disk format.

mod api;
mod authorize;
pub mod entity;
mod error;
pub mod keys;
pub mod operation;
pub mod query;
mod read;
mod settings;
pub mod stored;
mod sweep;
mod tables;
mod target;
mod throttle;
pub mod value;
mod write;

use std::sync::Arc;

use opentelemetry::metrics::Meter;
use trestle_kv::Engine;
use trestle_proto::table::v1::table_service_server::TableServiceServer;
use trestle_service::{
    clock::Clock,
    fault::Fault,
    limits::MESSAGE_BYTES_MAX,
    quota::{HotKey, LiveQuotas},
};

use crate::throttle::Throttle;
pub use crate::{api::Api, error::TableError, keys::KEYSPACES, throttle::HotPartition};

/// What the service works with.
pub struct Deps {
    /// Where everything is stored.
    pub engine: Arc<dyn Engine>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// How much accounts and partitions may ask for.
    pub quotas: LiveQuotas,
    /// Where what is over them is counted.
    pub meter: Meter,
}

/// The table role of a process.
#[derive(Clone)]
pub struct TableRole {
    api: Api,
}

impl TableRole {
    /// Builds the service. Starts nothing.
    #[must_use]
    pub fn new(deps: Deps) -> Self {
        let throttle = Arc::new(Throttle::new(deps.quotas, &deps.meter));
        throttle::observe(&throttle, &deps.meter);
        Self { api: Api::new(deps.engine, deps.clock, throttle) }
    }

    /// The gRPC service.
    #[must_use]
    pub fn server(&self) -> TableServiceServer<Api> {
        TableServiceServer::new(self.api.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// The partitions of all accounts that were used most in the last seconds.
    #[must_use]
    pub fn hottest_partitions(&self, count: usize) -> Vec<HotKey<HotPartition>> {
        self.api.throttle().hottest(None, count)
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
