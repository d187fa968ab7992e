//! The blob service: objects of any size in containers, with the semantics of Azure Blob storage.
//!
//! Three layers. `api` parses and renders protobuf and decides nothing. `containers`, `blobs`, `blocks`, `append`,
//! `pages` and `sweep` work on domain types; their decisions, such as those of `conditions` and `lease`, are pure,
//! around one snapshot or one commit. `keys` and `stored` are the format of rows, `extent` that of objects.
//!
//! Records and small contents are rows of the store; larger contents are objects (`objects`), written and durable
//! before a change of rows publishes them. What a change leaves behind is deleted after a grace period, in which reads
//! of it end.

mod api;
mod append;
mod authorize;
pub mod backup;
mod blobs;
mod blocks;
mod checksum;
mod conditions;
mod containers;
mod copy_url;
mod error;
mod etag;
mod extent;
mod find;
#[cfg(test)]
mod fixture;
mod ids;
mod keys;
mod lease;
#[cfg(test)]
mod model;
mod objects;
mod pages;
mod past;
mod read_memory;
mod record;
mod remote;
pub mod repair;
mod space_shortage;
mod stored;
mod sweep;
mod tags;
mod tier;
mod upload;
mod verify;

use std::sync::Arc;

use trestle_identity::access_policy::recheck::PolicyRechecks;
use trestle_kv::Engine;
use trestle_model::blob_name as names;
use trestle_model::fault::Fault;
use trestle_model::limits::MESSAGE_BYTES_MAX;
use trestle_model::time::Clock;
use trestle_objects::ObjectArea;
use trestle_proto::blob::v1::blob_service_server::BlobServiceServer;
use trestle_rpc::{
    layer::middleware::MiddlewareService, quota::StorageQuotas, served_store::StoreProcesses,
};

pub use crate::{
    api::BlobApi,
    copy_url::{CopyHosts, HostList, ServerList},
    keys::KEYSPACES,
    tags::expression::{ExpressionError, TagCondition, TagFilter},
};

/// Full name of the service.
pub const BLOB_SERVICE: &str = "trestle.blob.v1.BlobService";

/// Largest response, in bytes: a list of all blocks that a blob may have, committed and staged.
const RESPONSE_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX;

/// The dependencies of the service.
pub struct BlobDeps {
    /// The storage engine. Its time is the one of versions and leases.
    pub engine: Arc<dyn Engine>,
    /// Where the contents of large blobs are stored.
    pub objects: ObjectArea,
    /// The wall clock: stored access policies are valid by it, as tokens are.
    pub clock: Arc<dyn Clock>,
    /// The hosts that copies may read from by URL.
    pub copy_hosts: CopyHosts,
    /// Generates ids of leases.
    pub random: fn() -> u128,
    /// The quotas of accounts on what they store.
    pub storage: StorageQuotas,
    /// The processes that serve the store.
    pub processes: StoreProcesses,
}

/// The blob role of a process.
#[derive(Clone)]
pub struct BlobRole {
    api: BlobApi,
}

impl BlobRole {
    /// Builds the service. Starts no task.
    #[must_use]
    pub fn new(deps: BlobDeps) -> Self {
        Self { api: BlobApi::new(deps) }
    }

    /// The gRPC service.
    #[must_use]
    pub fn server(&self) -> MiddlewareService<PolicyRechecks, BlobServiceServer<BlobApi>> {
        let server = BlobServiceServer::new(self.api.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(RESPONSE_BYTES_MAX);
        MiddlewareService::new(self.api.rechecks(), server)
    }

    /// How many containers exist, up to `containers_max`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn count_containers(&self, containers_max: usize) -> Result<usize, Fault> {
        Ok(self.api.count_containers(containers_max).await?)
    }

    /// Measures what accounts store in containers, if an account has a quota on it. To be called every few seconds,
    /// less often where it takes long.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn measure(&self) -> Result<(), Fault> {
        self.api.measure().await
    }

    /// One step of the background work, to be called every few seconds. Returns true when the next step should follow
    /// at once.
    ///
    /// # Errors
    /// When a store cannot be read or written; the next call repeats the step.
    pub async fn sweep(&self) -> Result<bool, Fault> {
        Ok(self.api.sweeper().tick().await?)
    }
}
