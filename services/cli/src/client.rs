//! The connection to a server.

use std::time::Duration;

use tonic::{
    Request,
    service::interceptor::InterceptedService,
    transport::{Channel, Endpoint},
};
use trestle_proto::table::v1::table_service_client::TableServiceClient;

use crate::{
    args::ClientArgs,
    credentials::CallCredentials,
    endpoint,
    errors::{CliError, innermost},
    trust::TlsArgs,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Largest answer that is accepted: the server's pages end before 4 MiB.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A connection whose calls carry credentials.
pub(crate) type Link = InterceptedService<Channel, CallCredentials>;

/// A generated client over one connection.
pub(crate) type TableClient = TableServiceClient<Link>;

/// A connection and how long a call over it may take.
#[derive(Clone)]
pub(crate) struct Session {
    link: Link,
    timeout: Duration,
}

impl Session {
    /// Connects. A broken connection is reopened automatically.
    pub(crate) async fn connect(args: &ClientArgs) -> Result<Self, CliError> {
        Self::on_queue(args, None).await
    }

    /// The same for commands on a queue.
    pub(crate) async fn on_queue(args: &ClientArgs, queue: Option<&str>) -> Result<Self, CliError> {
        let credentials = args.credentials.credentials()?.on_queue(queue);
        let link = InterceptedService::new(connect(&args.endpoint, &args.tls).await?, credentials);
        Ok(Self { link, timeout: args.timeout })
    }

    /// A client of the table service.
    pub(crate) fn table(&self) -> TableClient {
        TableServiceClient::new(self.link.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// The connection itself, for calls on encoded messages.
    pub(crate) fn link(&self) -> Link {
        self.link.clone()
    }

    /// A request with the deadline of a single call. Streams have none.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.timeout);
        request
    }
}

/// Opens one connection whose calls carry the credentials.
pub(crate) async fn link(args: &ClientArgs) -> Result<Link, CliError> {
    let credentials = args.credentials.credentials()?;
    Ok(InterceptedService::new(connect(&args.endpoint, &args.tls).await?, credentials))
}

/// Opens one connection, encrypted where the endpoint begins with `https`.
pub(crate) async fn connect(endpoint: &str, tls: &TlsArgs) -> Result<Channel, CliError> {
    let is_encrypted = endpoint::is_encrypted(endpoint)?;
    let usage = |error| CliError::Usage(format!("endpoint=`{endpoint}`: {error}"));
    let mut target = Endpoint::from_shared(endpoint.to_owned()).map_err(usage)?;
    if is_encrypted {
        let refused = |error: tonic::transport::Error| {
            CliError::Usage(format!("certificates cannot be used: {}", innermost(&error)))
        };
        target = target.tls_config(tls.config()?).map_err(refused)?;
    }
    target
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .connect()
        .await
        .map_err(|error| CliError::Connect {
            endpoint: endpoint.to_owned(),
            cause: innermost(&error),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rejects_invalid_endpoints_as_usage_errors() {
        for endpoint in ["", "not an address", "https://localhost:1", "localhost:50051"] {
            let error = connect(endpoint, &TlsArgs::default()).await.unwrap_err();
            assert!(matches!(error, CliError::Usage(_)), "{endpoint}: {error}");
        }
    }
}
