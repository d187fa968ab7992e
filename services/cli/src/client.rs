//! The connection to a server.

use std::time::Duration;

use tonic::{
    GrpcMethod, Request, Status,
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use trestle_proto::{
    blob::v1::blob_service_client::BlobServiceClient,
    log::v1::log_service_client::LogServiceClient,
    queue::v1::queue_service_client::QueueServiceClient,
    table::v1::table_service_client::TableServiceClient,
};

use crate::{
    credentials::CallCredentials,
    endpoint,
    errors::{CliError, NO_ANSWER, innermost, of_other_server, unanswered},
    flags::ClientArgs,
    retry::Retries,
    trust::TlsArgs,
};

/// Longest wait for a connection with its TLS handshake.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Largest answer that is accepted: the server's pages end before 4 MiB.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Methods without a deadline.
const STREAMS: [&str; 8] = [
    "StreamEntities",
    "ImportEntities",
    "ReadBlob",
    "WriteBlob",
    "StageBlock",
    "AppendStream",
    "ReadRecords",
    "TailRecords",
];

/// A connection whose calls carry credentials.
pub(crate) type AuthorizedChannel = InterceptedService<Channel, CallMetadata>;

/// A generated client over one connection.
pub(crate) type TableClient = TableServiceClient<AuthorizedChannel>;

/// A connection.
#[derive(Clone)]
pub struct Session {
    link: AuthorizedChannel,
    timeout: Duration,
}

impl Session {
    /// Connects. A broken connection is reopened automatically.
    ///
    /// # Errors
    /// Malformed arguments, unreadable credentials or certificates, no connection.
    pub async fn connect(args: &ClientArgs) -> Result<Self, CliError> {
        Self::open(args, args.credentials.credentials()?).await
    }

    /// The same for commands on a queue.
    pub(crate) async fn on_queue(args: &ClientArgs, queue: Option<&str>) -> Result<Self, CliError> {
        Self::open(args, args.credentials.credentials()?.on_queue(queue)).await
    }

    /// The same for commands on a container or a blob, percent-encoded.
    pub(crate) async fn on_blob(args: &ClientArgs, path: Option<&str>) -> Result<Self, CliError> {
        Self::open(args, args.credentials.credentials()?.on_blob(path)).await
    }

    async fn open(args: &ClientArgs, credentials: CallCredentials) -> Result<Self, CliError> {
        let metadata = CallMetadata { credentials, timeout: args.timeout };
        let channel = connect(&args.endpoint, &args.tls, args.timeout).await?;
        let link = InterceptedService::new(channel, metadata);
        let session = Self { link, timeout: args.timeout };
        session.require_answer(&args.endpoint).await?;
        Ok(session)
    }

    /// Makes a call that every server of gRPC answers, also without the service of the call: what does not answer is
    /// detected before anything is written, and before a stream, which has no deadline. An answer is not examined.
    async fn require_answer(&self, endpoint: &str) -> Result<(), CliError> {
        match self.health().check(HealthCheckRequest::default()).await {
            Err(status) => match unanswered(&status) {
                Some(cause) => Err(CliError::Connect { endpoint: endpoint.to_owned(), cause }),
                None => Ok(()),
            },
            Ok(_) => Ok(()),
        }
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
    pub(crate) fn blobs(&self) -> BlobServiceClient<AuthorizedChannel> {
        BlobServiceClient::new(self.link.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// A client of the log service.
    pub(crate) fn logs(&self) -> LogServiceClient<AuthorizedChannel> {
        LogServiceClient::new(self.link.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// A client of gRPC health.
    pub(crate) fn health(&self) -> HealthClient<AuthorizedChannel> {
        HealthClient::new(self.link.clone())
    }

    /// The tries of a stream until its first answer.
    pub(crate) fn first_tries(&self) -> Retries {
        Retries::within(self.timeout)
    }

    /// The connection itself, for calls on encoded messages.
    pub(crate) fn link(&self) -> AuthorizedChannel {
        self.link.clone()
    }
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

/// Opens one connection, encrypted where the endpoint begins with `https`, in [`CONNECT_TIMEOUT`] or in `timeout`, the
/// shorter one.
pub(crate) async fn connect(
    endpoint: &str,
    tls: &TlsArgs,
    timeout: Duration,
) -> Result<Channel, CliError> {
    let endpoint = &endpoint::complete(endpoint, tls.is_given());
    let is_encrypted = endpoint::is_encrypted(endpoint)?;
    endpoint::reject_plain(endpoint, tls.is_given())?;
    let usage = |error| CliError::Usage(format!("endpoint=`{endpoint}`: {error}"));
    let mut target = Endpoint::from_shared(endpoint.to_owned()).map_err(usage)?;
    if is_encrypted {
        let rejected = |error: tonic::transport::Error| {
            let rule = "certificates cannot be used, give those of the CA with --ca-file";
            CliError::Usage(format!("{rule}: {}", innermost(&error)))
        };
        target = target.tls_config(tls.config()?).map_err(rejected)?;
    }
    let within = timeout.min(CONNECT_TIMEOUT);
    let target = target
        .connect_timeout(within)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    let failed = |cause| CliError::Connect { endpoint: endpoint.to_owned(), cause };
    // The library does not limit the TLS handshake.
    match tokio::time::timeout(within, target.connect()).await {
        Ok(connected) => connected.map_err(|error| failed(of_other_server(innermost(&error)))),
        Err(_) => Err(failed(NO_ANSWER.to_owned())),
    }
}
