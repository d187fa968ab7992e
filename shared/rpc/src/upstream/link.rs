//! One connection to a role: connects, checks the health of the service before the first call, watches
//! it, and reconnects when it is closed.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize},
    },
    task::{Context, Poll},
    time::Duration,
};

use hyper::{
    body::Incoming,
    client::conn::http2::{self, SendRequest},
    rt::{Read, Write},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    net::{TcpStream, lookup_host},
    sync::watch,
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval_at, timeout},
};
use tonic::{Code, Status, Streaming, body::Body};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_client::HealthClient,
};
use tower::{retry::backoff::Backoff as _, util::MapRequest};

use super::{
    endpoint::Endpoint,
    outgoing_body::OutgoingBody,
    pool::{CONNECT_WITHIN, Pool, UpstreamConnection},
    retry::pauses,
    tls::ClientTls,
};

/// Interval and timeout of TCP keepalive probes.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// Bytes that one response may be ahead of its reader. The client of the gateway may not read: this is what such a call
/// holds.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// Bytes that all responses of a connection may be ahead: as many as there are, so that unread ones never
/// delay others, nor the health of the process.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;
/// Most calls on a connection, where the peer sets no bound: more would only wait for its one task.
const CALLS_MAX: usize = 1024;
/// Calls of the link itself: two health watches, and a probe.
const CALLS_OWN: usize = 3;
/// The first pause before another attempt to connect. Short: a restart takes tens of milliseconds.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// A connection that was closed sooner counts as a failed attempt.
const LIVED_MIN: Duration = Duration::from_secs(1);
/// Interval of health probes.
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// Timeout of a health probe. Generous: a busy process is not a dead one.
const PROBE_WITHIN: Duration = Duration::from_secs(5);

/// Why a connection was not opened.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error("no connection: {0}")]
    Connect(#[from] io::Error),
    #[error("no HTTP/2: {0}")]
    Handshake(#[from] hyper::Error),
    #[error("closed before it was used")]
    Closed,
    #[error("no health status: {0}")]
    Health(Status),
    #[error("the peer does not support HTTP/2")]
    Protocol,
    #[error("timed out")]
    TooLate,
}

/// The configuration of a link.
pub(super) struct UpstreamLink {
    pub(super) pool: Arc<Pool>,
    pub(super) endpoint: Endpoint,
    pub(super) tls: Option<Arc<ClientTls>>,
    /// The service whose health is checked; none: no check.
    pub(super) service: Option<&'static str>,
    /// The name of a limitation whose health is watched too.
    pub(super) limitation: Option<&'static str>,
    /// Spreads links over the addresses of an endpoint.
    pub(super) index: usize,
}

/// An open connection.
pub(super) struct OpenConnection {
    connection: Arc<UpstreamConnection>,
    driver: JoinHandle<()>,
    health: Option<HealthWatch>,
}

impl UpstreamLink {
    /// Maintains a connection until the task is aborted.
    pub(super) async fn keep(self) {
        let mut backoff = pauses(PAUSE_MIN, PAUSE_MAX);
        let mut attempt = self.index;
        loop {
            if let Some(made) = self.open_one(attempt).await {
                let began = Instant::now();
                self.hold(made).await;
                if began.elapsed() >= LIVED_MIN {
                    (backoff, attempt) = (pauses(PAUSE_MIN, PAUSE_MAX), self.index);
                    continue;
                }
                self.pool.failed("closed soon after it was made");
            }
            // The next of several addresses.
            attempt = attempt.wrapping_add(1);
            backoff.next_backoff().await;
        }
    }

    /// Opens a connection, or reports to the pool why it failed.
    pub(super) async fn open_one(&self, attempt: usize) -> Option<OpenConnection> {
        let made = timeout(CONNECT_WITHIN, self.connect(attempt)).await;
        let made = made.unwrap_or(Err(LinkError::TooLate));
        made.map_err(|error| self.pool.failed(&error.to_string())).ok()
    }

    /// Makes a connection available to calls until it accepts no more.
    pub(super) async fn hold(&self, made: OpenConnection) {
        let connection = Arc::clone(&made.connection);
        self.pool.publish(&connection);
        self.watch(made).await;
        self.pool.withdraw(&connection);
    }

    async fn connect(&self, attempt: usize) -> Result<OpenConnection, LinkError> {
        let stream = TcpStream::connect(self.address(attempt).await?).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            return self.open(TokioIo::new(stream)).await;
        };
        let (connector, name) = tls.connector();
        let stream = connector.connect(name, stream).await?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(LinkError::Protocol);
        }
        self.open(TokioIo::new(stream)).await
    }

    /// Resolves the name each time: processes move.
    async fn address(&self, attempt: usize) -> io::Result<SocketAddr> {
        let endpoint = (self.endpoint.host(), self.endpoint.port);
        let mut addresses: Vec<_> = lookup_host(endpoint).await?.collect();
        // Resolvers rotate the list; links would meet at one address.
        addresses.sort_unstable();
        let index = attempt.checked_rem(addresses.len()).unwrap_or_default();
        let address = addresses.get(index).copied();
        address.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"))
    }

    async fn open<T>(&self, io: T) -> Result<OpenConnection, LinkError>
    where
        T: Read + Write + Unpin + Send + 'static,
    {
        let (sender, mut driver) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE)
            .keep_alive_while_idle(true)
            .handshake::<_, OutgoingBody>(io)
            .await?;
        // A response shows that the process has accepted the connection: the backlog of a listener that
        // closes fails, and so would calls on it.
        let (health, is_serving) = match self.service {
            None => (None, true),
            Some(service) => {
                let names = (service, self.limitation);
                let open = HealthWatch::open(sender.clone(), &self.endpoint, names);
                let (health, is_serving) = tokio::select! {
                    opened = open => opened?,
                    _ = &mut driver => return Err(LinkError::Closed),
                };
                (Some(health), is_serving)
            }
        };
        let calls_max = driver.current_max_send_streams().min(CALLS_MAX);
        let (running, end) = watch::channel(());
        let connection = Arc::new(UpstreamConnection {
            sender,
            calls: AtomicUsize::new(0),
            calls_max: calls_max.saturating_sub(CALLS_OWN).max(1),
            end,
            is_serving: AtomicBool::new(is_serving),
            is_limited: AtomicBool::new(false),
        });
        let driver = tokio::spawn(async move {
            // Each call that it has seen gets the error, before the others see the end.
            driver.await.ok();
            drop(running);
        });
        Ok(OpenConnection { connection, driver, health })
    }

    /// Watches the health of the service until the connection accepts no more calls.
    async fn watch(&self, made: OpenConnection) {
        let OpenConnection { connection, mut driver, health } = made;
        let Some(mut health) = health else {
            driver.await.ok();
            return;
        };
        let mut probes = interval_at(Instant::now() + PROBE_EVERY, PROBE_EVERY);
        probes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_published = true;
        loop {
            tokio::select! {
                _ = &mut driver => return,
                change = health.next() => match change {
                    HealthChange::Service(is_serving) => {
                        self.pool.set_serving(&connection, is_serving);
                    }
                    HealthChange::Limitation(is_limited) => {
                        self.pool.set_limited(&connection, is_limited);
                    }
                },
                _ = probes.tick() => {
                    let answers = tokio::select! {
                        _ = &mut driver => return,
                        responds = health.responds() => responds,
                    };
                    match (is_published, answers) {
                        (true, false) => {
                            self.pool.withdraw(&connection);
                            self.pool.failed("does not respond");
                        }
                        (false, true) => self.pool.publish(&connection),
                        _ => {}
                    }
                    is_published = answers;
                }
            }
        }
    }
}

/// The health of a service as reported over one connection.
struct HealthWatch {
    client: HealthClient<Own>,
    service: &'static str,
    /// None where the process does not report it, or no longer does.
    statuses: Option<Streaming<HealthCheckResponse>>,
    /// The same for the limitation.
    limitations: Option<Streaming<HealthCheckResponse>>,
}

/// What a process reported.
enum HealthChange {
    /// Whether the service serves.
    Service(bool),
    /// Whether the limitation applies.
    Limitation(bool),
}

/// A connection as the generated client takes one.
type Own = MapRequest<Sender, fn(http::Request<Body>) -> http::Request<OutgoingBody>>;

impl HealthWatch {
    /// Opens a health watch of a service and perhaps of a limitation, and reads the current status of the service.
    async fn open(
        sender: SendRequest<OutgoingBody>,
        endpoint: &Endpoint,
        (service, limitation): (&'static str, Option<&'static str>),
    ) -> Result<(Self, bool), LinkError> {
        let own: fn(http::Request<Body>) -> http::Request<OutgoingBody> =
            |request| request.map(OutgoingBody::Own);
        let origin = http::Uri::builder()
            .scheme(endpoint.scheme.clone())
            .authority(endpoint.authority.clone())
            .path_and_query("/")
            .build()
            .map_err(|_| LinkError::Protocol)?;
        let mut client = HealthClient::with_origin(MapRequest::new(Sender(sender), own), origin);
        let request = HealthCheckRequest { service: service.to_owned() };
        let (statuses, is_serving) = match client.watch(request).await {
            Ok(answer) => {
                let mut statuses = answer.into_inner();
                let first = statuses.message().await.map_err(LinkError::Health)?;
                (Some(statuses), first.is_some_and(|first| serves(&first)))
            }
            // It responds; more is not required.
            Err(status) if status.code() == Code::Unimplemented => (None, true),
            Err(status) => return Err(LinkError::Health(status)),
        };
        let limitations = match limitation.filter(|_| statuses.is_some()) {
            Some(name) => {
                let request = HealthCheckRequest { service: name.to_owned() };
                client.watch(request).await.ok().map(tonic::Response::into_inner)
            }
            None => None,
        };
        Ok((Self { client, service, statuses, limitations }, is_serving))
    }

    /// The next change. Never, once the watches have ended: the connection closes soon then.
    async fn next(&mut self) -> HealthChange {
        tokio::select! {
            status = next_of(&mut self.statuses) => HealthChange::Service(serves(&status)),
            status = next_of(&mut self.limitations) => {
                HealthChange::Limitation(status.status() == ServingStatus::NotServing)
            }
        }
    }

    /// Whether the process still responds at all.
    async fn responds(&mut self) -> bool {
        let request = HealthCheckRequest { service: self.service.to_owned() };
        timeout(PROBE_WITHIN, self.client.check(request)).await.is_ok()
    }
}

/// The next status of a watch.
async fn next_of(watch: &mut Option<Streaming<HealthCheckResponse>>) -> HealthCheckResponse {
    if let Some(statuses) = watch {
        if let Ok(Some(status)) = statuses.message().await {
            return status;
        }
        *watch = None;
    }
    std::future::pending().await
}

fn serves(answer: &HealthCheckResponse) -> bool {
    answer.status() == ServingStatus::Serving
}

/// A connection as a tower service.
#[derive(Clone)]
struct Sender(SendRequest<OutgoingBody>);

impl tower::Service<http::Request<OutgoingBody>> for Sender {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<OutgoingBody>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
