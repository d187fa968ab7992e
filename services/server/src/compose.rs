//! Puts a node together out of settings and live parts. Binds nothing and spawns nothing, so that
//! the process, the tests and whoever else needs a node build the same one.

use std::{sync::Arc, time::Duration};

use opentelemetry::metrics::Meter;
use tower::{Layer as _, ServiceBuilder};
use trestle_gateway::{Door, Limits, Observe, Routes, browsers, gateway};
use trestle_identity::{account::Accounts, credentials::Identity, peer_authentication};
use trestle_kv::Engine;
use trestle_queue::{QUEUE_SERVICE, QueueRole};
use trestle_runtime::{admin::Page, config::ConfigError, edge::Edge, health::Health, task::Task};
use trestle_service::{
    access::AccessLog,
    clock::Clock,
    cors::Lookup,
    layer::{
        CallService, admission::AdmissionLayer, body_bytes::BodyBytesLayer,
        deadline::DeadlineLayer, facts::FactsLayer, leave::LeaveLayer, leave::Leaving,
        message_size::MessageSizeLayer, methods::Methods, panic::PanicLayer, trace::TraceLayer,
    },
    limits::MESSAGE_BYTES_MAX,
    propagation::Traces,
    quota::LiveQuotas,
    upstream::{Remote, Upstream},
};
use trestle_table::TableRole;

use crate::{
    failure::Failure,
    hot_partitions, identity, reach,
    reload::Reload,
    roles::{Role, Roles},
    settings::{DevelopmentAccount, LimitSettings, Settings},
};

/// Full name of the table service.
pub const TABLE_SERVICE: &str = "trestle.table.v1.TableService";

/// The roles that own data, and their services.
const DATA: [(Role, &str); 2] = [(Role::Table, TABLE_SERVICE), (Role::Queue, QUEUE_SERVICE)];

/// How often roles look for what deleted tables and queues left, and for what expired.
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// How often the store is asked whether it still works.
const STORAGE_WATCH_EVERY: Duration = Duration::from_millis(500);
/// How often what is known of a role in another process becomes our own health.
const UPSTREAM_WATCH_EVERY: Duration = Duration::from_millis(250);

/// The live parts of a node.
pub struct Deps {
    /// The store; none where no role here owns data.
    pub engine: Option<Arc<dyn Engine>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where the node records its metrics.
    pub meter: Meter,
    /// Which traces it keeps.
    pub traces: Traces,
    /// Who writes the line of each call that comes from outside.
    pub access: AccessLog,
    /// Makes request ids, and draws the traces that are kept.
    pub random: fn() -> u128,
}

/// A node that nobody runs yet.
pub struct Node {
    /// Every call goes in here: in process, or behind a listener.
    pub routes: CallService,
    /// Tables in the protocol of Azure Storage; only in a gateway.
    pub azure_table: Option<CallService>,
    /// Queues in the protocol of Azure Storage; only in a gateway that reaches them.
    pub azure_queue: Option<CallService>,
    /// The loops it needs to run beside.
    pub tasks: Vec<Task>,
    /// The queue role, if it is here: who waits for a message has to hear that the process ends.
    pub queue: Option<QueueRole>,
    /// Ends the waits for messages that other processes have.
    pub leaving: Leaving,
    /// Makes those of them that watch files look at once.
    pub reload: Reload,
    /// Who may call; nobody where there is no gateway.
    pub accounts: Accounts,
    /// How much they may ask for; without effect where there is no role that counts.
    pub quotas: LiveQuotas,
    /// What it says about itself.
    pub health: Health,
    /// What its roles tell operators.
    pub pages: Vec<Page>,
}

impl Node {
    /// Also runs `task`, which watches files.
    pub fn watch(&mut self, task: Task) {
        self.reload.add(&task);
        self.tasks.push(task);
    }
}

/// Puts a node together.
///
/// # Errors
/// Settings that contradict the parts that are there.
pub async fn compose(settings: &Settings, deps: Deps) -> Result<Node, Failure> {
    let roles = &settings.server.roles;
    let served = served(settings);
    let names: Vec<_> = served.iter().map(|(_, service)| *service).collect();
    let health = Health::of(&names).await;
    let quotas = LiveQuotas::new(settings.quotas.quotas());
    let (mut tasks, mut reload) = (Vec::new(), Reload::default());
    let (mut routes, mut pages) = (Routes::default(), Vec::new());
    let (mut table, mut queue, mut queue_role) = (None, None, None);
    let leaving = Leaving::default();
    for (role, service) in served {
        let upstream = if roles.has(role) {
            let here = local(role, settings, &deps, &quotas)?;
            tasks.push(here.sweep);
            pages.extend(here.page);
            queue_role = queue_role.or(here.queue);
            here.upstream
        } else {
            let reached = reach::role(settings, role, service, &deps.meter);
            let reached = reached.map_err(|problem| missing(&problem))?;
            if let Some(task) = reached.task {
                reload.add(&task);
                tasks.push(task);
            }
            health.report(service, Some("not reached yet".to_owned())).await;
            tasks.push(watch_upstream(service, &reached.remote, &health));
            let leave = LeaveLayer::new(leaving.clone(), methods());
            match role {
                Role::Queue => Upstream::local(leave.layer(Upstream::Remote(reached.remote))),
                _ => Upstream::Remote(reached.remote),
            }
        };
        match role {
            Role::Table => table = Some(upstream.clone()),
            _ => queue = Some(upstream.clone()),
        }
        routes = routes.with(service, upstream);
    }
    if let Some(engine) = deps.engine.as_ref().filter(|_| roles.own_data()) {
        tasks.push(watch_storage(engine, roles, &health));
    }

    let Deps { meter, traces, access, random, .. } = deps;
    let observe = Observe { meter, traces, methods: methods(), random, access };
    let limits = bounds(&settings.limits);
    let accounts = Accounts::default();
    accounts.replace(identity::read(settings)?);
    let doors = if roles.has(Role::Gateway) {
        let is_open = settings.gateway.development_account != DevelopmentAccount::Off;
        let identity = Identity { accounts: accounts.clone(), clock: deps.clock, is_open };
        let door = Door::new(limits, observe);
        outside(settings, Reached { routes, table, queue }, &identity, &door, &health)?
    } else {
        let calls = direct(routes, limits, observe, settings.server.trust_callers);
        Doors { routes: edge(&health, calls)?, azure_table: None, azure_queue: None }
    };
    let Doors { routes, azure_table, azure_queue } = doors;
    Ok(Node {
        routes,
        azure_table,
        azure_queue,
        tasks,
        queue: queue_role,
        leaving,
        reload,
        accounts,
        quotas,
        health,
        pages,
    })
}

/// The services that a gateway reaches.
struct Reached {
    routes: Routes,
    table: Option<Upstream>,
    queue: Option<Upstream>,
}

/// Where calls come in.
struct Doors {
    routes: CallService,
    azure_table: Option<CallService>,
    azure_queue: Option<CallService>,
}

/// The doors of a gateway: for gRPC, also from pages, and for clients of Azure Storage.
fn outside(
    settings: &Settings,
    reached: Reached,
    identity: &Identity,
    door: &Door,
    health: &Health,
) -> Result<Doors, Failure> {
    let Reached { routes, table, queue } = reached;
    let calls = edge(health, gateway(door, routes, identity.clone()))?;
    let tables = table.clone().map(|table| (TABLE_SERVICE, Lookup::of_table(table)));
    let queues = queue.clone().map(|queue| (QUEUE_SERVICE, Lookup::of_queue(queue)));
    let keepers = tables.into_iter().chain(queues).collect();
    let routes = browsers(door, calls, keepers, &names_of(identity.accounts.clone()));
    let before = |calls| door.before(calls);
    let compresses = settings.server.azure_gzip;
    let deps = |upstream| trestle_azure::Deps { upstream, identity: identity.clone(), compresses };
    let azure_table = table.map(|table| trestle_azure::tables(deps(table), before));
    let azure_queue = queue.map(|queue| trestle_azure::queues(deps(queue), before));
    Ok(Doors { routes, azure_table, azure_queue })
}

fn bounds(limits: &LimitSettings) -> Limits {
    Limits {
        calls_max: limits.calls_max,
        body_bytes_max: limits.body_bytes_max,
        request_within_max: Duration::from_secs(limits.request_within_seconds),
        answer_within_max: Duration::from_secs(limits.answer_within_seconds),
    }
}

/// The methods that every role of this binary knows.
fn methods() -> Methods {
    Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET)
        .expect("the build wrote the descriptors, and reflection serves the same")
}

/// Health and reflection beside `calls`.
fn edge(health: &Health, calls: CallService) -> Result<CallService, Failure> {
    Ok(CallService::new(Edge::new(health, trestle_proto::FILE_DESCRIPTOR_SET, calls)?))
}

/// The names of the accounts as they are whenever it is asked.
fn names_of(accounts: Accounts) -> trestle_gateway::Accounts {
    Arc::new(move || accounts.now().iter().map(|account| account.name.clone()).collect())
}

/// The layers before a role that only gateways call. No credentials: the gateway vouches for the
/// caller.
fn direct(routes: Routes, limits: Limits, observe: Observe, trusts_all: bool) -> CallService {
    let (methods, bytes_max) = (observe.methods.clone(), limits.body_bytes_max);
    let stack = ServiceBuilder::new()
        // First, so that it sees every call; it continues the trace of the gateway.
        .layer(TraceLayer::new(Observe { access: AccessLog::off(), ..observe }))
        // Before what could answer: the gateway writes the line of the call, with what is told here.
        .layer(FactsLayer::default())
        // Before anything that could fail, and after what has to record the failure.
        .layer(PanicLayer::default())
        // The gateway hands the deadline of the client on; here it ends the work.
        .layer(DeadlineLayer::new(limits.answer_within_max, methods.clone()))
        // Several gateways may call: what one of them admits is not all.
        .layer(AdmissionLayer::new(limits.calls_max, methods.clone()))
        // So is what they hold.
        .layer(BodyBytesLayer::new(bytes_max, limits.request_within_max, methods))
        // Last, before the routes: who calls is believed from here on.
        .layer(peer_authentication::layer(trusts_all))
        .service(routes);
    CallService::new(stack)
}

fn missing(problem: &str) -> Failure {
    let problems = vec![problem.to_owned()];
    ConfigError::Invalid { problems }.into()
}

/// The services that the node answers itself or, as a gateway, passes calls on to, with the roles
/// that own their data.
fn served(settings: &Settings) -> Vec<(Role, &'static str)> {
    let roles = &settings.server.roles;
    let is_gateway = roles.has(Role::Gateway);
    let reaches_queues = is_gateway && settings.gateway.queue_endpoint.is_some();
    let table = (is_gateway || roles.has(Role::Table)).then_some(DATA[0]);
    let queue = (reaches_queues || roles.has(Role::Queue)).then_some(DATA[1]);
    table.into_iter().chain(queue).collect()
}

/// A role in this process.
struct Local {
    upstream: Upstream,
    /// Its work in the background.
    sweep: Task,
    /// What it shows to operators.
    page: Option<Page>,
    /// It itself, if its callers may wait.
    queue: Option<QueueRole>,
}

fn local(
    role: Role,
    settings: &Settings,
    deps: &Deps,
    quotas: &LiveQuotas,
) -> Result<Local, Failure> {
    let engine = deps.engine.clone();
    let engine = engine.ok_or_else(|| missing("storage: a role that owns data needs a store"))?;
    let (clock, random) = (Arc::clone(&deps.clock), deps.random);
    let size = MessageSizeLayer::new(MESSAGE_BYTES_MAX);
    if role == Role::Queue {
        let queue = QueueRole::new(trestle_queue::QueueDeps { engine, clock, random });
        let upstream = Upstream::local(size.layer(queue.server()));
        let sweeper = queue.clone();
        let sweep = Task::new("queue-sweep", SWEEP_EVERY, move || {
            let queue = sweeper.clone();
            async move { queue.sweep().await.map_err(Into::into) }
        });
        return Ok(Local { upstream, sweep, page: None, queue: Some(queue) });
    }
    let (quotas, meter) = (quotas.clone(), deps.meter.clone());
    let table = TableRole::new(trestle_table::Deps { engine, clock, quotas, meter });
    let page = Some(hot_partitions::page(&table, settings.quotas.show_partition_keys));
    let upstream = Upstream::local(size.layer(table.server()));
    let sweep = Task::new("table-sweep", SWEEP_EVERY, move || {
        let table = table.clone();
        async move { table.sweep().await.map_err(Into::into) }
    });
    Ok(Local { upstream, sweep, page, queue: None })
}

/// A store that stopped takes no writes until a restart: callers are sent elsewhere.
fn watch_storage(engine: &Arc<dyn Engine>, roles: &Roles, health: &Health) -> Task {
    let (engine, health) = (Arc::clone(engine), health.clone());
    let owners: Vec<_> = DATA.into_iter().filter(|(role, _)| roles.has(*role)).collect();
    Task::new("storage-watch", STORAGE_WATCH_EVERY, move || {
        let (engine, health, owners) = (Arc::clone(&engine), health.clone(), owners.clone());
        async move {
            let problem = engine.status().stopped;
            let problem =
                problem.map(|reason| format!("storage stopped: {reason}; restart the process"));
            for (_, service) in owners {
                health.report(service, problem.clone()).await;
            }
            Ok(false)
        }
    })
}

/// A gateway is as ready as what stands behind it; while calls wait for a restart, it is ready.
fn watch_upstream(service: &'static str, remote: &Remote, health: &Health) -> Task {
    let (remote, health) = (remote.clone(), health.clone());
    Task::new("upstream-watch", UPSTREAM_WATCH_EVERY, move || {
        let (remote, health) = (remote.clone(), health.clone());
        async move {
            let problem = remote.problem().await.map(str::to_owned);
            health.report(service, problem).await;
            Ok(false)
        }
    })
}
