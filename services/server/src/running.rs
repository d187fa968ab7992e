//! A node behind listeners: binds, spawns, and shuts down in an order that fails no call.

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc, time::Duration};

use opentelemetry::metrics::Meter;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::info;
use trestle_rpc::layer::CallService;
use trestle_rpc::semconv;
use trestle_runtime::{
    admin::{Admin, AllowsHost},
    health::Health,
    openmetrics::Exposition,
    serve::{self, Bounds, Connections, Drained, Listener, StopSignals},
    task::Task,
};

use crate::{
    compose::Node,
    encryption::Encryption,
    process_error::ProcessError,
    reload::{Reload, Reloads},
    roles::DrainAction,
    settings::{LimitSettings, Listen, RoleKey as _, ServerSettings, Settings},
    watchdog::ListenerWatchdog,
};

/// The sockets of a process, bound early so that a wrong address fails before the store is opened.
pub struct Listeners {
    grpc: TcpListener,
    /// By role; encrypted as gRPC is.
    azure: BTreeMap<String, TcpListener>,
    grpc_encryption: Option<Encryption>,
    admin: TcpListener,
    admin_encryption: Option<Encryption>,
}

impl Listeners {
    /// Binds the addresses in the settings, and reads the certificates.
    ///
    /// # Errors
    /// [`ProcessError::Tls`], [`ProcessError::Listen`].
    pub async fn bind(settings: &Settings) -> Result<Self, ProcessError> {
        let grpc_encryption = settings.tls.grpc().map(Encryption::read).transpose()?;
        let admin_encryption = settings.tls.admin().map(Encryption::read).transpose()?;
        let server = &settings.server;
        let grpc = bind(server, "server.listen", server.listen, ELSEWHERE).await?;
        let mut azure = BTreeMap::new();
        for (role, address) in server.azure_listeners().filter(|(role, _)| settings.serves(role)) {
            let listener = bind(server, &Listen::full_key(role), address, ELSEWHERE_OR_OFF).await?;
            azure.insert(role.to_owned(), listener);
        }
        let admin = bind(server, "server.admin", server.admin, ELSEWHERE).await?;
        Ok(Self { grpc, azure, grpc_encryption, admin, admin_encryption })
    }

    /// Counts the handshakes that fail, and reports when certificates expire.
    pub fn count_on(&self, meter: &Meter) {
        let encrypted = [&self.grpc_encryption, &self.admin_encryption].into_iter().flatten();
        encrypted.for_each(|encryption| encryption.tls().count_on(meter));
        let listeners = [(GRPC, &self.grpc_encryption), ("admin", &self.admin_encryption)];
        for (listener, encryption) in listeners {
            if let Some(encryption) = encryption {
                encryption.tls().observe(meter, listener);
            }
        }
    }

    /// Tasks that reload the certificates.
    pub fn watches(&self, reloads: &Reloads) -> impl Iterator<Item = Task> {
        let task = |encryption: &Option<Encryption>, name| {
            encryption.as_ref().map(|encryption| encryption.watch(name, reloads))
        };
        let grpc = task(&self.grpc_encryption, "certificates");
        let admin = task(&self.admin_encryption, "admin-certificates");
        grpc.into_iter().chain(admin)
    }

    /// The line with the address of each listener, once calls are accepted.
    ///
    /// # Errors
    /// When the system does not report an address.
    pub fn ready(&self) -> io::Result<String> {
        let mut line = format!("ready grpc={}", self.grpc()?);
        for (role, listener) in &self.azure {
            line.push_str(&format!(" {}={}", Listen::key(role), listener.local_addr()?));
        }
        Ok(format!("{line} admin={}\n", self.admin()?))
    }

    /// The Azure Storage address of a role, if it has one.
    #[must_use]
    pub fn azure(&self, role: &str) -> Option<SocketAddr> {
        self.azure.get(role)?.local_addr().ok()
    }

    /// The address of gRPC.
    ///
    /// # Errors
    /// When the system does not report it.
    pub fn grpc(&self) -> io::Result<SocketAddr> {
        self.grpc.local_addr()
    }

    /// The address of metrics and probes.
    ///
    /// # Errors
    /// When the system does not report it.
    pub fn admin(&self) -> io::Result<SocketAddr> {
        self.admin.local_addr()
    }
}

/// The name of the listener of gRPC in metrics.
const GRPC: &str = "grpc";
/// Connections whose last call is older are not in use.
const IDLE_MIN: Duration = Duration::from_secs(1);
/// Hint for an address that cannot be bound.
const ELSEWHERE: &str = "set another address, or port 0 for a free one";
/// The same where the listener is optional.
const ELSEWHERE_OR_OFF: &str = "set another address, port 0 for a free one, or `off`";

async fn bind(
    server: &ServerSettings,
    key: &str,
    address: SocketAddr,
    remedy: &'static str,
) -> Result<TcpListener, ProcessError> {
    let bound =
        if server.reuse_port { serve::bind_shared(address) } else { serve::bind(address).await };
    bound.map_err(|source| ProcessError::Listen { key: key.to_owned(), remedy, source })
}

/// A node that serves. Dropping it does not end it.
pub struct Running {
    health: Health,
    signals: StopSignals,
    stop_rest: CancellationToken,
    watchdog: ListenerWatchdog,
    connections: Connections,
    calls: Vec<JoinHandle<Drained>>,
    rest: TaskTracker,
    drains: Vec<DrainAction>,
    notice: Duration,
}

impl Running {
    /// Starts a node behind listeners. Must be called on a Tokio runtime.
    #[must_use]
    pub fn start(
        node: Node,
        listeners: Listeners,
        settings: &Settings,
        metrics: Exposition,
    ) -> Self {
        let Listeners { grpc, mut azure, grpc_encryption, admin, admin_encryption } = listeners;
        let tls = |encryption: Option<Encryption>| encryption.map(|encryption| encryption.tls());
        let (stop_rest, rest) = (CancellationToken::new(), TaskTracker::new());
        let failures = semconv::failed_tasks(&node.meter);
        for task in node.tasks {
            rest.spawn(task.counting(&failures).run(stop_rest.clone(), rand::random));
        }
        let watchdog = ListenerWatchdog::default();
        let signals = StopSignals::default();
        let private = settings.gateway.private_hosts();
        let hosts: AllowsHost = Arc::new(move |host: &str| private.has(host));
        let (health, hosts) = (node.health.clone(), Some(hosts));
        let pages = Admin { health, metrics, pages: node.pages, hosts };
        let until = StopSignals { stop: stop_rest.clone(), ..signals.clone() };
        let admin = pages.serve(admin, tls(admin_encryption), until);
        rest.spawn(watchdog.watch("server.admin".to_owned(), stop_rest.clone(), admin));
        rest.close();

        let (bounds, tls) = (bounds(settings), tls(grpc_encryption));
        // One limit for all listeners: otherwise a peer could exhaust the descriptors over several of them.
        let connections = Connections::at_most(settings.limits.connections_max);
        let names = node.azure.iter().filter(|edge| azure.contains_key(edge.role));
        let names = names.map(|edge| Listen::key(edge.role));
        connections.observe(&node.meter, std::iter::once(GRPC.to_owned()).chain(names).collect());
        let serve = |name: String, key: String, socket, calls: CallService, bounds| {
            let (tls, connections) = (tls.clone(), connections.of_listener(&name));
            let listener = Listener { socket, tls, connections, bounds };
            let serving = serve::serve(listener, calls, signals.clone());
            tokio::spawn(watchdog.watch(key, signals.stop.clone(), serving))
        };
        let mut calls =
            vec![serve(GRPC.to_owned(), "server.listen".to_owned(), grpc, node.routes, bounds)];
        for edge in node.azure {
            if let Some(listener) = azure.remove(edge.role) {
                let (headers_max, keeps_header_case) = (edge.headers_max, edge.keeps_header_case);
                let bounds = Bounds { headers_max, keeps_header_case, ..bounds };
                let (name, key) = (Listen::key(edge.role), Listen::full_key(edge.role));
                calls.push(serve(name, key, listener, edge.calls, bounds));
            }
        }
        let notice = Duration::from_millis(settings.server.drain_notice_ms);
        let (health, drains) = (node.health, node.drains);
        Self { health, signals, stop_rest, watchdog, connections, calls, rest, drains, notice }
    }

    /// Watches the listeners.
    #[must_use]
    pub fn watchdog(&self) -> ListenerWatchdog {
        self.watchdog.clone()
    }

    /// When cancelled, [`Running::stop`] waits for no call: calls in flight are aborted.
    #[must_use]
    pub fn forced(&self) -> CancellationToken {
        self.signals.forced.clone()
    }

    /// Shuts down in order: health reports NOT_SERVING, calls are still accepted from connected
    /// clients that have not received it, listeners close, waiting calls are answered, calls finish, the rest ends.
    pub async fn stop(self) -> Drained {
        self.health.drain().await;
        // Without calls no client needs the notice.
        if !self.connections.idle_for(self.notice.max(IDLE_MIN)) {
            let notice = tokio::time::sleep(self.notice);
            let _ = self.signals.forced.run_until_cancelled(notice).await;
        }
        self.signals.stop.cancel();
        self.drains.into_iter().for_each(|drain| drain());
        self.health.end_watches().await;
        let mut cut = 0;
        for calls in self.calls {
            // The watchdog has one that failed.
            if let Ok(Drained::Cut(open)) = calls.await {
                cut += open;
            }
        }
        let drained = if cut > 0 { Drained::Cut(cut) } else { Drained::Clean };
        self.stop_rest.cancel();
        self.rest.wait().await;
        drained
    }
}

/// The bounds of the connections of calls.
fn bounds(settings: &Settings) -> Bounds {
    let LimitSettings {
        calls_per_connection_max,
        connection_age_seconds,
        connection_grace_seconds,
        keepalive_seconds,
        head_within_seconds,
        reader_within_seconds,
        ..
    } = settings.limits;
    Bounds {
        streams_max: calls_per_connection_max,
        age_max: Duration::from_secs(connection_age_seconds),
        age_grace: Duration::from_secs(connection_grace_seconds),
        keepalive: Duration::from_secs(keepalive_seconds),
        head_within: Duration::from_secs(head_within_seconds),
        headers_max: None,
        keeps_header_case: false,
        reader_within: Duration::from_secs(reader_within_seconds),
        drain_within: Duration::from_secs(settings.server.drain_seconds),
    }
}

/// The signals that shut a process down, or make it reload its files.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Handles them from now on.
    ///
    /// # Errors
    /// An error of the system.
    pub fn take() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal to shut down; SIGHUP reloads files meanwhile.
    pub async fn shutdown(&mut self, reload: &Reload) {
        let name = loop {
            tokio::select! {
                _ = self.terminate.recv() => break "SIGTERM",
                _ = self.interrupt.recv() => break "SIGINT",
                _ = self.hangup.recv() => {
                    info!(signal = "SIGHUP", "reloading files");
                    reload.now();
                }
            }
        };
        info!(signal = name, "shutting down");
    }
}
