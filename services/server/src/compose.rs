//! Composes a node of settings, roles and live parts. Binds nothing and spawns nothing, so
//! that the process and the tests build the same node.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use opentelemetry::metrics::Meter;
use tower::Layer as _;
use trestle_kv::Engine;
use trestle_model::time::Clock;
use trestle_objects::{ObjectStorage, StoreOwner};
use trestle_rpc::access::AccessLog;
use trestle_rpc::layer::CallService;
use trestle_rpc::layer::shutdown::{ShutdownLayer, ShutdownSignal};
use trestle_rpc::propagation::Traces;
use trestle_rpc::quota::{LiveQuotas, StorageQuotas};
use trestle_rpc::upstream::{Remote, Upstream};
use trestle_runtime::{admin::AdminPage, health::Health, task::Task};

use crate::{
    changed_keys, healthcheck,
    ingress::{self, AzureIngress},
    members::StoreMembers,
    process_error::ProcessError,
    quotas,
    reload::{Reload, Reloads, SettingsSource},
    roles::{Build, BuildContext, BuiltRole, DrainAction, RoleSpec, UpstreamRole},
    settings::Settings,
    storage_quota, upstreams,
};

/// How often the store is checked.
const STORAGE_WATCH_EVERY: Duration = Duration::from_millis(500);
/// How often a process looks whether it still owns its objects.
const OBJECTS_WATCH_EVERY: Duration = Duration::from_secs(5);
/// How often the health of a role in another process is copied.
const UPSTREAM_WATCH_EVERY: Duration = Duration::from_millis(250);

/// The part of this process that accepts writes; others are roles in other processes.
const STORE: &str = "store";

/// The live parts of a node.
pub struct NodeDeps {
    /// The store; none where no role of this process owns data.
    pub engine: Option<Arc<dyn Engine>>,
    /// The object store; none where no role here has objects.
    pub objects: Option<ObjectStorage>,
    /// Where gRPC is bound; none: as in the settings.
    pub listen: Option<SocketAddr>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The meter of its metrics.
    pub meter: Meter,
    /// Its trace sampling.
    pub traces: Traces,
    /// The access log of calls from outside.
    pub access: AccessLog,
    /// Generates request ids and sampling decisions.
    pub random: fn() -> u128,
    /// Reloads the settings; none: nothing is reloaded.
    pub source: Option<SettingsSource>,
}

/// A node before its start.
pub struct Node {
    /// The entry of every call: in process, or behind a listener.
    pub routes: CallService,
    /// The protocols of Azure Storage; only in a gateway.
    pub azure: Vec<AzureIngress>,
    /// Its background tasks.
    pub tasks: Vec<Task>,
    /// Ends waiting calls, in this process and in other ones, when the process shuts down.
    pub drains: Vec<DrainAction>,
    /// Wakes the tasks that watch files.
    pub reload: Reload,
    /// The processes that serve its store.
    pub(crate) members: StoreMembers,
    /// Its health.
    pub health: Health,
    /// The admin pages of its roles.
    pub pages: Vec<AdminPage>,
    /// The meter of its metrics.
    pub meter: Meter,
}

impl Node {
    /// Also runs `task`, which watches files.
    pub fn watch(&mut self, task: Task) {
        self.reload.add(&task);
        self.tasks.push(task);
    }
}

/// The parts of the roles of a node besides their calls.
#[derive(Default)]
struct NodeParts {
    tasks: Vec<Task>,
    reload: Reload,
    pages: Vec<AdminPage>,
    drains: Vec<DrainAction>,
}

impl NodeParts {
    /// What a process does beside others that serve its store.
    fn of(members: &StoreMembers) -> Self {
        Self {
            tasks: members.task().into_iter().collect(),
            pages: members.page().into_iter().collect(),
            drains: members.begin_to_leave().into_iter().collect(),
            ..Self::default()
        }
    }

    fn watch(&mut self, tasks: impl IntoIterator<Item = Task>) {
        for task in tasks {
            self.reload.add(&task);
            self.tasks.push(task);
        }
    }

    /// A role in this process. What it does in the background changes its data, so a store that never changes has
    /// none of it.
    fn local(&mut self, role: BuiltRole, is_read_only: bool) -> Upstream {
        if !is_read_only {
            self.tasks.extend(role.tasks);
        }
        self.watch(role.watches);
        self.pages.extend(role.pages);
        self.drains.extend(role.drain);
        role.calls
    }

    /// A role in another process.
    async fn remote(
        &mut self,
        spec: &RoleSpec,
        context: &BuildContext<'_>,
        shutdown: &ShutdownSignal,
    ) -> Result<Upstream, ProcessError> {
        let BuildContext { settings, deps, health, .. } = context;
        let upstream = upstreams::role(settings, spec, &deps.meter)?;
        self.watch(upstream.task);
        for service in spec.services {
            health.report(service, Some("not connected yet".to_owned())).await;
        }
        self.tasks.push(watch_upstream(spec, &upstream.remote, health));
        let (methods, remote) = (ingress::methods(), Upstream::Remote(upstream.remote));
        if !spec.services.iter().any(|service| methods.any_waits(service)) {
            return Ok(remote);
        }
        Ok(Upstream::local(ShutdownLayer::new(shutdown.clone(), methods).layer(remote)))
    }
}

/// Composes a node of the `roles` that the settings select. Where several processes serve its store, they know of it
/// afterwards.
///
/// # Errors
/// Settings that do not match the parts.
pub async fn compose(
    settings: &Settings,
    roles: &[RoleSpec],
    deps: NodeDeps,
) -> Result<Node, ProcessError> {
    let served = served(settings, roles);
    let services: Vec<_> = served.iter().flat_map(|role| role.services).copied().collect();
    let health = Health::of(&services).await;
    let quotas = LiveQuotas::new(settings.quotas.quotas());
    let storage = StorageQuotas::new(quotas.clone(), &deps.meter);
    if deps.engine.is_some() {
        storage_quota::observe(&storage, &deps.meter);
    }
    let members = StoreMembers::join(settings, &deps, &quotas).await?;
    let context = BuildContext {
        settings,
        deps: &deps,
        health: &health,
        quotas: &quotas,
        storage: &storage,
        members: &members,
    };
    let is_read_only = deps.engine.as_ref().is_some_and(|engine| engine.status().is_read_only);
    let (mut parts, shutdown, mut upstreams) =
        (NodeParts::of(&members), ShutdownSignal::default(), Vec::new());
    for spec in served {
        let upstream = match spec.build {
            Build::Service(build) if settings.server.roles.has(spec.name) => {
                parts.local(build(&context)?, is_read_only)
            }
            Build::Service(_) | Build::Ingress(_) => {
                parts.remote(&spec, &context, &shutdown).await?
            }
        };
        upstreams.push(UpstreamRole { spec, upstream });
    }
    parts.drains.push(Box::new(move || shutdown.begin()));
    if let Some(engine) = &deps.engine {
        let owners = owners(settings, roles);
        // A short disk is reported before the first call, not only at the first tick.
        let (engine, objects) = (Arc::clone(engine), objects_owner(&deps));
        let stores = Stores { engine, objects, members: members.clone() };
        report_storage(&stores, &health, &owners).await;
        parts.tasks.extend(stores.objects.clone().map(watch_objects));
        parts.tasks.push(watch_storage(stores, &health, owners));
    }
    let build = roles.iter().find_map(|role| match role.build {
        Build::Ingress(build) if settings.server.roles.has(role.name) => Some(build),
        Build::Ingress(_) | Build::Service(_) => None,
    });
    let ingress = build.unwrap_or(ingress::direct)(&context, &upstreams)?;
    parts.watch(ingress.watches);
    let watch = |source| changed_keys::watch(settings, source, &deps.meter);
    parts.watch(deps.source.clone().map(watch));
    let watch = |source| quotas::watch(&quotas, settings, source, &Reloads::new(&deps.meter));
    parts.watch(deps.source.clone().map(watch));
    let NodeParts { tasks, reload, pages, drains } = parts;
    let (routes, azure) = (ingress.calls, ingress.azure);
    Ok(Node { routes, azure, tasks, drains, reload, members, health, pages, meter: deps.meter })
}

/// The roles whose calls the node handles itself or, as a gateway, forwards.
fn served(settings: &Settings, roles: &[RoleSpec]) -> Vec<RoleSpec> {
    let is_local = |role: &RoleSpec| settings.server.roles.has(role.name);
    let is_gateway = roles.iter().any(|role| role.is_ingress() && is_local(role));
    let has_upstream =
        |role: &RoleSpec| role.is_required || settings.gateway.endpoints.get(role.name).is_some();
    let is_served = |role: &&RoleSpec| {
        !role.is_ingress() && (is_local(role) || (is_gateway && has_upstream(role)))
    };
    roles.iter().filter(is_served).copied().collect()
}

/// The roles of this process that own data.
fn owners(settings: &Settings, roles: &[RoleSpec]) -> Vec<RoleSpec> {
    settings.local(roles).filter(|role| role.owns_data()).copied().collect()
}

/// The stores of a process, of which either may stop.
#[derive(Clone)]
struct Stores {
    engine: Arc<dyn Engine>,
    /// The owner of the objects, where they are at a URL.
    objects: Option<StoreOwner>,
    /// The processes that serve them.
    members: StoreMembers,
}

impl Stores {
    /// Why they accept no writes, until a restart or until a database is reached again, if so.
    fn stopped(&self) -> Option<String> {
        let stopped = self.engine.status().stopped;
        let stopped =
            stopped.map(|reason| format!("storage stopped: {reason}; restart the process"));
        let lost = || self.objects.as_ref().and_then(StoreOwner::lost).map(str::to_owned);
        stopped.or_else(lost).or_else(|| self.members.problem())
    }
}

fn objects_owner(deps: &NodeDeps) -> Option<StoreOwner> {
    deps.objects.as_ref().and_then(|objects| objects.owner.clone())
}

/// Looks whether another server, with a copy of the data directory, uses the same objects.
fn watch_objects(owner: StoreOwner) -> Task {
    Task::new("objects-owner", OBJECTS_WATCH_EVERY, move || {
        let owner = owner.clone();
        async move {
            owner.check().await?;
            Ok(false)
        }
    })
}

fn watch_storage(stores: Stores, health: &Health, owners: Vec<RoleSpec>) -> Task {
    let health = health.clone();
    Task::new("storage-watch", STORAGE_WATCH_EVERY, move || {
        let (stores, health, owners) = (stores.clone(), health.clone(), owners.clone());
        async move {
            report_storage(&stores, &health, &owners).await;
            Ok(false)
        }
    })
}

/// A stopped store accepts no writes until a restart: health reports NOT_SERVING, also of objects that another server
/// uses. One that is short of disk space serves reads and deletes, and a backup serves reads, so they remain.
async fn report_storage(stores: &Stores, health: &Health, owners: &[RoleSpec]) {
    let problem = stores.stopped();
    let status = stores.engine.status();
    let is_read_only = status.is_space_short() || status.is_read_only;
    let limitation = writes_limitation(problem.is_some(), is_read_only);
    health.limit(healthcheck::WRITES, STORE, limitation).await;
    for role in owners {
        report_role(health, role, limitation, problem.clone()).await;
    }
}

/// Reports why a role accepts no writes, and its problem, if it has them.
async fn report_role(
    health: &Health,
    role: &RoleSpec,
    limitation: Option<&'static str>,
    problem: Option<String>,
) {
    if let Some(writes) = role.writes {
        health.limit(writes, role.name, limitation).await;
    }
    for service in role.services {
        health.report(service, problem.clone()).await;
    }
}

/// Why no writes are accepted, if so.
fn writes_limitation(is_stopped: bool, is_read_only: bool) -> Option<&'static str> {
    match (is_stopped, is_read_only) {
        (true, _) => Some(healthcheck::STOPPED),
        (false, true) => Some(healthcheck::READ_ONLY),
        (false, false) => None,
    }
}

/// Why a role accepts no writes that reports so. One that does not serve is restarted, for which calls wait, until that
/// is a problem: a store that is stopped. A role that is not reached is a problem, and no limitation of the others.
fn upstream_limitation(is_serving: bool, is_problem: bool) -> Option<&'static str> {
    writes_limitation(!is_serving && is_problem, is_serving)
}

/// A gateway is as ready as the roles behind it; while calls wait for a restart, it is ready. It accepts writes while
/// each of them that it reaches does.
fn watch_upstream(spec: &RoleSpec, remote: &Remote, health: &Health) -> Task {
    let (spec, remote, health) = (*spec, remote.clone(), health.clone());
    Task::new("upstream-watch", UPSTREAM_WATCH_EVERY, move || {
        let (remote, health) = (remote.clone(), health.clone());
        async move {
            let problem = remote.problem().await.map(str::to_owned);
            let limitation = match remote.is_limited() {
                true => upstream_limitation(remote.is_serving(), problem.is_some()),
                false => None,
            };
            health.limit(healthcheck::WRITES, spec.name, limitation).await;
            report_role(&health, &spec, limitation, problem).await;
            Ok(false)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::ROLES;

    #[test]
    fn health_reports_the_writes_of_each_role_with_data_under_its_own_name() {
        for role in ROLES {
            let name = format!("{}.{}", healthcheck::WRITES, role.name);
            assert_eq!(role.writes, role.owns_data().then_some(name.as_str()), "{}", role.name);
        }
    }

    #[test]
    fn a_role_that_does_not_serve_is_stopped_once_that_is_a_problem_and_has_no_full_disk() {
        assert_eq!(upstream_limitation(true, false), Some(healthcheck::READ_ONLY));
        assert_eq!(upstream_limitation(false, false), None, "it may be restarting, and calls wait");
        assert_eq!(upstream_limitation(false, true), Some(healthcheck::STOPPED));
    }
}
