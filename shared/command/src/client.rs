//! The connection to a server.

use std::{sync::Once, time::Duration};

use tonic::{
    Code, GrpcMethod, Request, Status,
    service::{Interceptor, interceptor::InterceptedService},
    transport::Endpoint,
};
use tonic_health::pb::health_client::HealthClient;
use trestle_proto::{
    blob::v1::blob_service_client::BlobServiceClient,
    log::v1::log_service_client::LogServiceClient,
    queue::v1::queue_service_client::QueueServiceClient,
    table::v1::table_service_client::TableServiceClient,
};

use crate::{
    credentials::CallCredentials,
    endpoint,
    errors::{CliError, innermost},
    flags::ClientArgs,
    output::report_line,
    retry::Retries,
    trust::TlsArgs,
};

mod lazy_channel;

use lazy_channel::ConnectTarget;
pub use lazy_channel::LazyChannel;
pub(crate) use lazy_channel::{NotConnected, NotServed};

/// Longest wait for a connection with its TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Largest answer that is accepted: the server's pages end before 4 MiB.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The service of health.
const HEALTH: &str = "grpc.health.v1.Health";

/// Methods without a deadline.
const STREAMS: [&str; 10] = [
    "StreamEntities",
    "ImportEntities",
    "ReadBlob",
    "WriteBlob",
    "StageBlock",
    "AppendStream",
    "ReadRecords",
    "SummarizeRecords",
    "TailRecords",
    "VerifyBlobs",
];

/// A connection whose calls carry credentials.
pub(crate) type AuthorizedChannel = InterceptedService<LazyChannel, CallMetadata>;

/// A generated client over one connection.
pub type TableClient = TableServiceClient<AuthorizedChannel>;

/// The calls of a command to a server.
#[derive(Clone)]
pub struct Session {
    channel: LazyChannel,
    link: AuthorizedChannel,
    timeout: Duration,
}

impl Session {
    /// Connects. A broken connection is reopened automatically.
    ///
    /// # Errors
    /// Malformed arguments, unreadable credentials or certificates, no connection.
    pub async fn connect(args: &ClientArgs) -> Result<Self, CliError> {
        let session = Self::new(args)?;
        session.channel.opened().await?;
        Ok(session)
    }

    /// Connects at the first call, so that a command finds mistakes in its own input without a server.
    ///
    /// # Errors
    /// An address, files for TLS or credentials that cannot be used.
    pub fn new(args: &ClientArgs) -> Result<Self, CliError> {
        Self::with(args, args.credentials.credentials()?)
    }

    /// The same for commands on a queue.
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub fn on_queue(args: &ClientArgs, queue: Option<&str>) -> Result<Self, CliError> {
        Self::with(args, args.credentials.credentials()?.on_queue(queue))
    }

    /// The same for commands on a container or a blob, percent-encoded.
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub fn on_blob(args: &ClientArgs, path: Option<&str>) -> Result<Self, CliError> {
        Self::with(args, args.credentials.credentials()?.on_blob(path))
    }

    fn with(args: &ClientArgs, credentials: CallCredentials) -> Result<Self, CliError> {
        let metadata = CallMetadata { credentials, timeout: args.timeout };
        let target = target(&args.endpoint, &args.tls, args.timeout)?;
        if metadata.credentials.has_secret_key() && endpoint::is_exposed(&target.endpoint) {
            warn_of_plain_key(&target.endpoint);
        }
        let channel = LazyChannel::new(target, metadata.clone());
        let link = InterceptedService::new(channel.clone(), metadata);
        Ok(Self { channel, link, timeout: args.timeout })
    }

    /// A client of the table service.
    #[must_use]
    pub fn table(&self) -> TableClient {
        TableServiceClient::new(self.link.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// A client of the queue service.
    #[must_use]
    pub fn queues(&self) -> QueueServiceClient<AuthorizedChannel> {
        QueueServiceClient::new(self.link.clone())
    }

    /// A client of the blob service.
    pub fn blobs(&self) -> BlobServiceClient<AuthorizedChannel> {
        BlobServiceClient::new(self.link.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// A client of the log service.
    pub fn logs(&self) -> LogServiceClient<AuthorizedChannel> {
        LogServiceClient::new(self.link.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// A client of gRPC health.
    pub fn health(&self) -> HealthClient<AuthorizedChannel> {
        HealthClient::new(self.link.clone())
    }

    /// The tries of a stream until its first answer.
    pub fn first_tries(&self) -> Retries {
        Retries::within(self.timeout)
    }

    /// The connection itself, for calls on encoded messages.
    pub(crate) fn link(&self) -> AuthorizedChannel {
        self.link.clone()
    }
}

/// Warns once in a process, before the first call.
fn warn_of_plain_key(endpoint: &str) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        report_line(&format!(
            "warning: the key of the account is sent in plain text, which others on the network can read: use \
             https:// or a signature: endpoint=`{endpoint}`"
        ));
    });
}

/// Puts credentials and the deadline on calls.
#[derive(Debug, Clone)]
pub struct CallMetadata {
    credentials: CallCredentials,
    timeout: Duration,
}

impl Interceptor for CallMetadata {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let method = request.extensions().get::<GrpcMethod<'static>>().map(GrpcMethod::method);
        let is_stream = method.is_none_or(|method| STREAMS.contains(&method));
        if !is_stream && !request.metadata().contains_key("grpc-timeout") {
            request.set_timeout(self.timeout);
        }
        self.credentials.call(request)
    }
}

/// A client of the health of a server, without credentials; encrypted where the endpoint begins with `https`.
///
/// # Errors
/// An address, files for TLS or certificates that cannot be used; no connection within five seconds, or no answer.
pub async fn health(endpoint: &str, tls: &TlsArgs) -> Result<HealthClient<LazyChannel>, CliError> {
    let credentials = CallCredentials::default();
    let metadata = CallMetadata { credentials, timeout: CONNECT_TIMEOUT };
    let channel = LazyChannel::new(target(endpoint, tls, CONNECT_TIMEOUT)?, metadata);
    channel.opened().await?;
    Ok(HealthClient::new(channel))
}

/// The error of a health check of a service, or of a process: one that a server does not have is named as for a call.
pub fn of_health(status: Status, endpoint: &str, service: &str) -> CliError {
    let service = if service.is_empty() { HEALTH } else { service };
    match status.code() {
        Code::NotFound => {
            let (endpoint, service) = (endpoint.to_owned(), service.to_owned());
            NotServed { endpoint, service, answer: status }.into()
        }
        _ => status.into(),
    }
}

/// A server to connect to in [`CONNECT_TIMEOUT`] or in `timeout`, the shorter one.
fn target(endpoint: &str, tls: &TlsArgs, timeout: Duration) -> Result<ConnectTarget, CliError> {
    let endpoint = endpoint::complete(endpoint, tls.is_given());
    let is_encrypted = endpoint::is_encrypted(&endpoint)?;
    endpoint::reject_plain(&endpoint, tls.is_given())?;
    let usage = |error| CliError::Usage(format!("endpoint=`{endpoint}`: {error}"));
    let mut options = Endpoint::from_shared(endpoint.clone()).map_err(usage)?;
    if is_encrypted {
        let rejected = |error: tonic::transport::Error| {
            let rule = "certificates cannot be used, give those of the CA with --ca-file";
            CliError::Usage(format!("{rule}: {}", innermost(&error)))
        };
        options = options.tls_config(tls.config()?).map_err(rejected)?;
    }
    let within = timeout.min(CONNECT_TIMEOUT);
    let options = options
        .connect_timeout(within)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    Ok(ConnectTarget { endpoint, options, within })
}
