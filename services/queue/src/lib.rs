//! The queue service: messages that are delivered at least once, with the semantics of Azure Queue storage.
//!
//! Three layers. `api` parses and renders protobuf and decides nothing. `queues`, `send`, `receive`, `delete`,
//! `update`, `transfer` and `sweep` work on domain types; their decisions are pure, around one snapshot or one commit.
//! `delivery` is the state that the owner of a queue holds in memory, `placement` and `forwarding` where that is
//! another process. `keys`, `head`, `slot`, `stored`, `record` and
//! `deduplication` are the disk format.

mod api;
mod authorize;
mod backlog;
pub mod backup;
mod deduplication;
mod delete;
mod deleted_range;
mod delivery;
mod detached;
mod error;
mod expire;
#[cfg(test)]
mod fixture;
#[cfg(feature = "testing")]
pub mod forms;
mod forwarding;
mod groups;
mod head;
mod keys;
mod message_rows;
mod messages;
#[cfg(test)]
mod model;
mod next_in_group;
mod owners;
mod peek;
mod placement;
mod policies;
mod queue_ids;
mod queues;
#[cfg(test)]
mod read_cost;
mod receipt;
mod receive;
mod record;
mod redrive;
mod release;
pub mod repair;
mod send;
mod slot;
mod stats;
mod stored;
mod sweep;
mod transfer;
mod update;
mod wire;

use std::sync::Arc;

use trestle_identity::access_policy::recheck::PolicyRechecks;
use trestle_kv::Engine;
use trestle_model::{fault::Fault, limits::MESSAGE_BYTES_MAX, time::Clock};
use trestle_proto::queue::v1::queue_service_server::QueueServiceServer;
use trestle_rpc::{
    layer::middleware::MiddlewareService, quota::StorageQuotas, served_store::StoreProcesses,
};

pub use crate::{
    api::{Handovers, QueueApi},
    backlog::{Backlogs, QueueBacklog},
    forwarding::QueuesOfAll,
    keys::KEYSPACES,
    placement::QueuePlacement,
    sweep::SweepScope,
};

/// Full name of the service.
pub const QUEUE_SERVICE: &str = "trestle.queue.v1.QueueService";

/// The dependencies of the service.
pub struct QueueDeps {
    /// The storage engine. Its time is the one of messages.
    pub engine: Arc<dyn Engine>,
    /// The wall clock: stored access policies are valid by it, as tokens are.
    pub clock: Arc<dyn Clock>,
    /// Generates message ids.
    pub random: fn() -> u128,
    /// The quotas of accounts on what they store.
    pub storage: StorageQuotas,
    /// The processes that serve the store.
    pub processes: StoreProcesses,
    /// Which queues this process serves; none: all of them, since it has the engine to itself.
    pub placement: Option<Arc<dyn QueuePlacement>>,
}

/// The gRPC service and its layers.
pub type QueueServer =
    MiddlewareService<PolicyRechecks, MiddlewareService<Handovers, QueueServiceServer<QueueApi>>>;

/// The queue role of a process.
#[derive(Clone)]
pub struct QueueRole {
    api: QueueApi,
}

impl QueueRole {
    /// Builds the service. Starts no task.
    #[must_use]
    pub fn new(deps: QueueDeps) -> Self {
        Self { api: QueueApi::new(deps) }
    }

    /// The gRPC service.
    #[must_use]
    pub fn server(&self) -> QueueServer {
        let server = QueueServiceServer::new(self.api.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        // The handovers inside: a response that is dropped must release its messages.
        let server = MiddlewareService::new(Handovers, server);
        MiddlewareService::new(self.api.rechecks(), server)
    }

    /// Responds to every waiting consumer without messages, and ends later waits at once: the process is shutting down.
    /// Streams of deliveries end, so that their clients open them at another process.
    pub fn shut_down(&self) {
        self.api.shut_down();
    }

    /// The backlogs of all queues in the store. `each` is called with the account and the name of every queue.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn backlogs(&self, each: impl FnMut(&str, &str) + Send) -> Result<Backlogs, Fault> {
        Ok(self.api.backlogs(each).await?)
    }

    /// Measures what accounts store in queues, if an account has a quota on it. To be called every few seconds, less
    /// often where it takes long.
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
    /// When the store cannot be read or written; the next call repeats the step.
    pub async fn sweep(&self, scope: SweepScope) -> Result<bool, Fault> {
        Ok(self.api.sweeper().tick(scope).await?)
    }

    /// Lets consumers go whose queue another process owns, or should own, to be called about twice a second where
    /// several processes serve the store.
    ///
    /// # Errors
    /// When the store cannot be read; the next call repeats the step.
    pub async fn follow_owners(&self) -> Result<(), Fault> {
        Ok(self.api.follow_owners().await?)
    }

    /// Removes expired messages of the queues in use, to be called a few times a second: the next messages of their
    /// groups become available by it.
    ///
    /// # Errors
    /// When the store cannot be read or written; the next call repeats the step.
    pub async fn expire(&self) -> Result<(), Fault> {
        Ok(self.api.sweeper().expire().await?)
    }
}
