//! A node behind listeners: binds, spawns, and ends in an order that fails no call.

use std::{io, net::SocketAddr, time::Duration};

use opentelemetry::metrics::Meter;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::info;
use trestle_queue::QueueRole;
use trestle_runtime::{
    admin::Admin,
    health::Health,
    openmetrics::Exposition,
    serve::{self, Bounds, Drained, Ends},
    task::Task,
};
use trestle_service::layer::leave::Leaving;

use crate::{
    compose::Node,
    encryption::Encryption,
    failure::Failure,
    lost::Lost,
    reload::Reload,
    settings::{ServerSettings, Settings},
};

/// The sockets of a process, taken early so that a wrong address fails before the store is touched.
pub struct Listeners {
    grpc: TcpListener,
    /// Encrypted as gRPC is.
    azure_table: Option<TcpListener>,
    /// So is this.
    azure_queue: Option<TcpListener>,
    grpc_encryption: Option<Encryption>,
    admin: TcpListener,
    admin_encryption: Option<Encryption>,
}

impl Listeners {
    /// Takes the addresses in the settings, and reads the certificates.
    ///
    /// # Errors
    /// [`Failure::Tls`], [`Failure::Listen`].
    pub async fn bind(settings: &Settings) -> Result<Self, Failure> {
        let grpc_encryption = settings.tls.grpc().map(Encryption::read).transpose()?;
        let admin_encryption = settings.tls.admin().map(Encryption::read).transpose()?;
        let server = &settings.server;
        let grpc = bind(server, "server.listen", server.listen, ELSEWHERE).await?;
        let azure_table = server.azure(server.azure_table);
        let azure_table = bind_some(server, "server.azure_table", azure_table).await?;
        let azure_queue = server.azure(server.azure_queue);
        let azure_queue = bind_some(server, "server.azure_queue", azure_queue).await?;
        let admin = bind(server, "server.admin", server.admin, ELSEWHERE).await?;
        Ok(Self { grpc, azure_table, azure_queue, grpc_encryption, admin, admin_encryption })
    }

    /// Count the handshakes that fail.
    pub fn count_on(&self, meter: &Meter) {
        let encrypted = [&self.grpc_encryption, &self.admin_encryption].into_iter().flatten();
        encrypted.for_each(|encryption| encryption.tls().count_on(meter));
    }

    /// Keep the certificates up to date with their files.
    pub fn watches(&self) -> impl Iterator<Item = Task> {
        let grpc = self.grpc_encryption.as_ref().map(|grpc| grpc.watch("certificates"));
        let admin = self.admin_encryption.as_ref().map(|admin| admin.watch("admin-certificates"));
        grpc.into_iter().chain(admin)
    }

    /// The line that says where everything is, once calls are taken.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn ready(&self) -> io::Result<String> {
        let azure = [("azure_queue", &self.azure_queue), ("azure_table", &self.azure_table)];
        let mut line = format!("ready grpc={}", self.grpc()?);
        for (name, listener) in azure {
            if let Some(listener) = listener {
                line.push_str(&format!(" {name}={}", listener.local_addr()?));
            }
        }
        Ok(format!("{line} admin={}\n", self.admin()?))
    }

    /// Where tables in the protocol of Azure Storage are, if they are served.
    #[must_use]
    pub fn azure_table(&self) -> Option<SocketAddr> {
        self.azure_table.as_ref()?.local_addr().ok()
    }

    /// Where queues in the protocol of Azure Storage are, if they are served.
    #[must_use]
    pub fn azure_queue(&self) -> Option<SocketAddr> {
        self.azure_queue.as_ref()?.local_addr().ok()
    }

    /// Where gRPC is.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn grpc(&self) -> io::Result<SocketAddr> {
        self.grpc.local_addr()
    }

    /// Where metrics and probes are.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn admin(&self) -> io::Result<SocketAddr> {
        self.admin.local_addr()
    }
}

/// What can be done about an address that cannot be taken.
const ELSEWHERE: &str = "give another address, or port 0 for a free one";
/// The same where nobody needs to listen.
const ELSEWHERE_OR_OFF: &str = "give another address, port 0 for a free one, or `off`";

async fn bind(
    server: &ServerSettings,
    key: &'static str,
    address: SocketAddr,
    remedy: &'static str,
) -> Result<TcpListener, Failure> {
    let bound =
        if server.reuse_port { serve::bind_shared(address) } else { serve::bind(address).await };
    bound.map_err(|source| Failure::Listen { key, remedy, source })
}

async fn bind_some(
    server: &ServerSettings,
    key: &'static str,
    address: Option<SocketAddr>,
) -> Result<Option<TcpListener>, Failure> {
    match address {
        Some(address) => bind(server, key, address, ELSEWHERE_OR_OFF).await.map(Some),
        None => Ok(None),
    }
}

/// A node that serves. Dropping it does not end it.
pub struct Running {
    health: Health,
    stop_calls: CancellationToken,
    stop_rest: CancellationToken,
    hurry: CancellationToken,
    lost: Lost,
    calls: Vec<JoinHandle<Drained>>,
    rest: TaskTracker,
    queue: Option<QueueRole>,
    leaving: Leaving,
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
        let Listeners { grpc, azure_table, azure_queue, grpc_encryption, .. } = listeners;
        let (admin, admin_encryption) = (listeners.admin, listeners.admin_encryption);
        let tls = |encryption: Option<Encryption>| encryption.map(|encryption| encryption.tls());
        let (stop_calls, stop_rest) = (CancellationToken::new(), CancellationToken::new());
        let rest = TaskTracker::new();
        for task in node.tasks {
            rest.spawn(task.run(stop_rest.clone(), rand::random));
        }
        let answers = Admin { health: node.health.clone(), metrics, pages: node.pages };
        let (lost, hurry) = (Lost::default(), CancellationToken::new());
        let ends = Ends { stop: stop_rest.clone(), hurry: hurry.clone() };
        let admin = answers.serve(admin, tls(admin_encryption), ends);
        rest.spawn(lost.watch("server.admin", stop_rest.clone(), admin));
        rest.close();
        let limits = &settings.limits;
        let bounds = Bounds {
            connections_max: limits.connections_max,
            streams_max: limits.calls_per_connection_max,
            age_max: Duration::from_secs(limits.connection_age_seconds),
            age_grace: Duration::from_secs(limits.connection_grace_seconds),
            keepalive: Duration::from_secs(limits.keepalive_seconds),
            head_within: Duration::from_secs(limits.head_within_seconds),
            headers_max: None,
            reader_within: Duration::from_secs(limits.reader_within_seconds),
            drain_within: Duration::from_secs(settings.server.drain_seconds),
        };
        let tls = tls(grpc_encryption);
        let of_queues = Bounds { headers_max: Some(trestle_azure::QUEUE_HEADERS_MAX), ..bounds };
        let doors = [
            ("server.listen", Some(grpc), Some(node.routes), bounds),
            ("server.azure_table", azure_table, node.azure_table, bounds),
            ("server.azure_queue", azure_queue, node.azure_queue, of_queues),
        ];
        let serve = |(key, listener, calls, bounds): (_, Option<_>, Option<_>, _)| {
            let ends = Ends { stop: stop_calls.clone(), hurry: hurry.clone() };
            let serving = serve::serve(listener?, tls.clone(), calls?, bounds, ends);
            Some(tokio::spawn(lost.watch(key, stop_calls.clone(), serving)))
        };
        let calls = doors.into_iter().filter_map(serve).collect();
        let notice = Duration::from_millis(settings.server.drain_notice_ms);
        let health = node.health;
        let (queue, leaving) = (node.queue, node.leaving);
        Self { health, stop_calls, stop_rest, hurry, lost, calls, rest, queue, leaving, notice }
    }

    /// Which listener ended although nobody asked it to.
    #[must_use]
    pub fn lost(&self) -> Lost {
        self.lost.clone()
    }

    /// Cancelled, it makes [`Running::stop`] wait for nobody: calls that go on are cut.
    #[must_use]
    pub fn hurry(&self) -> CancellationToken {
        self.hurry.clone()
    }

    /// Ends in order: say that we go, serve those who have not heard it yet, take no more
    /// connections, answer who waits for a message, let calls finish, then end the rest.
    pub async fn stop(self) -> Drained {
        self.health.drain().await;
        let _ = self.hurry.run_until_cancelled(tokio::time::sleep(self.notice)).await;
        self.stop_calls.cancel();
        if let Some(queue) = &self.queue {
            queue.shut_down();
        }
        self.leaving.begin();
        self.health.end_watches().await;
        let mut cut = 0;
        for calls in self.calls {
            // One that failed is in what was lost.
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

/// The signals that ask a process to end, or to read its files again.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Takes them over from the system.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn take() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits until one asks to end; meanwhile SIGHUP makes `reload` look at the files.
    pub async fn end(&mut self, reload: &Reload) {
        let name = loop {
            tokio::select! {
                _ = self.terminate.recv() => break "SIGTERM",
                _ = self.interrupt.recv() => break "SIGINT",
                _ = self.hangup.recv() => {
                    info!(signal = "SIGHUP", "asked to read files again");
                    reload.now();
                }
            }
        };
        info!(signal = name, "asked to end");
    }
}
