//! The inputs and the result of building a role.

use std::{convert::Infallible, sync::Arc};

use tower::{Layer as _, Service};
use trestle_kv::Engine;
use trestle_model::limits::MESSAGE_BYTES_MAX;
use trestle_objects::ObjectStorage;
use trestle_rpc::layer::compression::MessageCompressionLayer;
use trestle_rpc::layer::message_size::MessageSizeLayer;
use trestle_rpc::layer::unknown_method::UnknownMethodLayer;
use trestle_rpc::layer::{Request, Response, ResponseFuture};
use trestle_rpc::quota::{LiveQuotas, StorageQuotas};
use trestle_rpc::upstream::Upstream;
use trestle_runtime::{admin::AdminPage, config::ConfigError, health::Health, task::Task};

use super::RoleSpec;
use crate::{
    compose::NodeDeps, members::StoreMembers, process_error::ProcessError, settings::Settings,
};

/// The inputs of roles.
pub struct BuildContext<'a> {
    /// The settings of the process.
    pub settings: &'a Settings,
    /// Its live parts.
    pub deps: &'a NodeDeps,
    /// Its health.
    pub health: &'a Health,
    /// The quotas of accounts, which are reloaded.
    pub quotas: &'a LiveQuotas,
    /// Those on what accounts store, with the usage.
    pub storage: &'a StorageQuotas,
    /// The processes that serve the store.
    pub(crate) members: &'a StoreMembers,
}

impl BuildContext<'_> {
    /// The store.
    ///
    /// # Errors
    /// A process without one.
    pub fn engine(&self) -> Result<Arc<dyn Engine>, ProcessError> {
        self.deps.engine.clone().ok_or_else(no_store)
    }

    /// The object store.
    ///
    /// # Errors
    /// A process without one.
    pub fn objects(&self) -> Result<ObjectStorage, ProcessError> {
        self.deps.objects.clone().ok_or_else(no_store)
    }
}

fn no_store() -> ProcessError {
    let problems = vec!["storage: a role that owns data needs a store".to_owned()];
    ConfigError::Invalid { problems }.into()
}

/// Ends what would delay a shutdown. Called once, after health reported NOT_SERVING and
/// before calls are drained.
pub type DrainAction = Box<dyn FnOnce() + Send>;

/// A role in this process.
pub struct BuiltRole {
    /// Handles the calls of its services.
    pub calls: Upstream,
    /// Its background tasks.
    pub tasks: Vec<Task>,
    /// Tasks that watch files, and check them at once on a reload.
    pub watches: Vec<Task>,
    /// Its admin pages.
    pub pages: Vec<AdminPage>,
    /// Ends its calls that wait.
    pub drain: Option<DrainAction>,
}

impl BuiltRole {
    /// A role that has only this service, whose messages have up to [`MESSAGE_BYTES_MAX`].
    pub fn new<S>(service: S) -> Self
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
        S: Clone + Send + Sync + 'static,
    {
        Self::with_messages(service, MESSAGE_BYTES_MAX)
    }

    /// The same, where messages of some of its methods have up to so many bytes.
    pub fn with_messages<S>(service: S, message_bytes_max: usize) -> Self
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
        S: Clone + Send + Sync + 'static,
    {
        let service = UnknownMethodLayer::default().layer(service);
        let service = MessageSizeLayer::new(MESSAGE_BYTES_MAX).layer(service);
        Self {
            // Here, and not in the gateway, which passes bodies as they are.
            calls: Upstream::local(MessageCompressionLayer::new(message_bytes_max).layer(service)),
            tasks: Vec::new(),
            watches: Vec::new(),
            pages: Vec::new(),
            drain: None,
        }
    }
}

/// A role as the process calls it: built in it, or over the network.
pub struct UpstreamRole {
    /// Which.
    pub spec: RoleSpec,
    /// The target of its calls.
    pub upstream: Upstream,
}
