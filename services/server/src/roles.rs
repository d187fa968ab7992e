//! The roles of the product, as data. Composition, listeners, settings, upstreams, reload, health,
//! CORS and storage walk a list of [`RoleSpec`]s and name no role, except that settings of callers apply
//! where the gateway is.
//!
//! A new service is a crate, a proto package, and an entry in [`ROLES`].

mod blob;
mod built;
mod gateway;
mod log;
mod queue;
mod selection;
mod table;

use trestle_gateway::IngressStack;
use trestle_kv::Keyspace;
use trestle_rpc::layer::CallService;

use crate::{ingress::Ingress, process_error::ProcessError};

pub use self::{
    blob::BLOB,
    built::{BuildContext, BuiltRole, DrainAction, UpstreamRole},
    gateway::GATEWAY,
    log::LOG,
    queue::QUEUE,
    selection::Roles,
    table::TABLE,
};

/// The roles of the product.
pub const ROLES: &[RoleSpec] = &[GATEWAY, TABLE, QUEUE, BLOB, LOG];

/// A role: a part that a process has, or calls over the network.
#[derive(Clone, Copy)]
pub struct RoleSpec {
    /// Its name in `server.roles`, and in keys such as `gateway.table_endpoint`.
    pub name: &'static str,
    /// The full names of its gRPC services. Health reports each.
    pub services: &'static [&'static str],
    /// By which name health reports whether it accepts writes; none where it owns no data.
    pub writes: Option<&'static str>,
    /// Where it stores its data; none where it owns none.
    pub keyspaces: &'static [&'static [Keyspace]],
    /// Whether a part of its data is in the object store.
    pub has_objects: bool,
    /// Which of its services stores the cross-origin rules of accounts, in its service properties.
    pub cors: Option<&'static str>,
    /// How it is built.
    pub build: Build,
    /// Whether a gateway cannot start without it, in process or at an endpoint.
    pub is_required: bool,
    /// Its protocol of Azure Storage, behind a listener of its own in the gateway.
    pub azure: Option<AzureEdge>,
}

/// How a role is built from its settings and the parts of its process. Binds and spawns nothing.
#[derive(Clone, Copy)]
pub enum Build {
    /// It handles the calls of its services.
    Service(fn(&BuildContext<'_>) -> Result<BuiltRole, ProcessError>),
    /// It accepts calls from outside and forwards them to the other roles, which are built first.
    Ingress(fn(&BuildContext<'_>, &[UpstreamRole]) -> Result<Ingress, ProcessError>),
}

/// The protocol of Azure Storage in front of a role.
#[derive(Clone, Copy)]
pub struct AzureEdge {
    /// What its listener is for, as the help of its flag begins.
    pub serves: &'static str,
    /// Flag of the address of its listener, such as `azure-table`.
    pub flag: &'static str,
    /// Default port of its listener, on loopback.
    pub port: u16,
    /// Most headers of a request; none: as many as fit into its head.
    pub headers_max: Option<usize>,
    /// Whether the names of headers keep their case, which metadata has over HTTP/1.
    pub keeps_header_case: bool,
    /// Builds the edge in front of the service, with the layers of the gateway between.
    pub build: fn(trestle_azure::EdgeDeps, &IngressStack) -> CallService,
}

impl RoleSpec {
    /// Whether it accepts calls from outside.
    #[must_use]
    pub fn is_ingress(&self) -> bool {
        matches!(self.build, Build::Ingress(_))
    }

    /// Whether it needs a store.
    #[must_use]
    pub fn owns_data(&self) -> bool {
        !self.keyspaces.is_empty()
    }
}

/// The keyspaces of all roles, in every process: a directory may be opened by another
/// process later.
#[must_use]
pub fn keyspaces(roles: &[RoleSpec]) -> Vec<Keyspace> {
    roles.iter().flat_map(|role| role.keyspaces).copied().flatten().cloned().collect()
}
