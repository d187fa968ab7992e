//! A connection that is opened at the first call: mistakes in the arguments and files of a command are found before.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::sync::OnceCell;
use tonic::{
    Status,
    body::Body,
    codegen::{BoxFuture, Service, StdError, http},
    transport::{Channel, Endpoint},
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_types::StatusExt as _;
use trestle_rpc::{rpc_path::service_of, unserved::is_unserved};

use super::CallMetadata;
use crate::{
    endpoint,
    errors::{NO_ANSWER, innermost, of_other_server, unanswered},
};

/// How a gateway begins the message of a service that it does not serve, where it has a reason.
const WITH_REASON: &str = "service is not served here: ";

/// No connection exists, or nothing answers over it: no call of the command was sent.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot connect to {endpoint}: {cause}")]
pub(crate) struct NotConnected {
    /// The endpoint.
    pub(crate) endpoint: String,
    /// The innermost cause.
    pub(crate) cause: String,
}

impl NotConnected {
    /// The reason why a call was not sent, if it was not.
    pub(crate) fn of(status: &Status) -> Option<&Self> {
        std::error::Error::source(status)?.downcast_ref()
    }
}

/// The server answers gRPC, and does not serve the service of a call.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{endpoint} does not serve {service}")]
pub(crate) struct NotServed {
    /// The endpoint.
    pub(crate) endpoint: String,
    /// The full name of the service.
    pub(crate) service: String,
    /// What the server answers.
    #[source]
    pub(crate) answer: Status,
}

impl NotServed {
    /// The reason of a status, if it is this.
    pub(crate) fn of(status: &Status) -> Option<&Self> {
        std::error::Error::source(status)?.downcast_ref()
    }

    /// The error, if the answer to a call at `path` means it.
    fn detect(endpoint: &str, path: &str, headers: &http::HeaderMap) -> Option<Self> {
        let answer = Status::from_header_map(headers).filter(is_unserved)?;
        let service = service_of(path)?;
        Some(Self { endpoint: endpoint.to_owned(), service: service.to_owned(), answer })
    }

    /// The problem of the address, and the remedy.
    pub(crate) fn problem(&self) -> String {
        let Self { endpoint, service, answer } = self;
        let address = endpoint::with_port(endpoint);
        let remedy = match (self.reason(), answer.get_details_error_info()) {
            (Some(reason), _) => {
                format!("{reason}; correct the settings of this gateway, or call another one with --endpoint")
            }
            (None, Some(_)) => {
                "it is a Trestle process without the role for it, or an older one; give the address of a \
                 process with this role, or of a gateway, with --endpoint"
                    .to_owned()
            }
            (None, None) => {
                "another gRPC server answers there; give the address of Trestle with --endpoint"
                    .to_owned()
            }
        };
        format!("the server at {address} does not serve {service}: {remedy}")
    }

    /// Why a gateway does not serve it, such as `gateway.queue_endpoint is not set`. It is only shown.
    fn reason(&self) -> Option<&str> {
        let reason = self.answer.message().strip_prefix(WITH_REASON)?;
        reason.split_once(": service=").map(|(reason, _)| reason)
    }
}

/// A checked address of a server.
#[derive(Debug)]
pub(super) struct ConnectTarget {
    pub(super) endpoint: String,
    pub(super) options: Endpoint,
    /// Longest wait for the connection.
    pub(super) within: Duration,
}

impl ConnectTarget {
    /// Opens a connection.
    pub(super) async fn connect(&self) -> Result<Channel, NotConnected> {
        // The library does not limit the TLS handshake.
        match tokio::time::timeout(self.within, self.options.connect()).await {
            Ok(connected) => {
                connected.map_err(|error| self.failed(of_other_server(innermost(&error))))
            }
            Err(_) => Err(self.failed(NO_ANSWER.to_owned())),
        }
    }

    fn failed(&self, cause: String) -> NotConnected {
        NotConnected { endpoint: self.endpoint.clone(), cause }
    }
}

/// A connection of a session. Clones share it.
#[derive(Clone)]
pub struct LazyChannel(Arc<Opening>);

struct Opening {
    target: ConnectTarget,
    metadata: CallMetadata,
    /// The connection, or why there is none: a command does not try twice.
    opened: OnceCell<Result<Channel, NotConnected>>,
}

impl LazyChannel {
    /// Not opened yet.
    pub(super) fn new(target: ConnectTarget, metadata: CallMetadata) -> Self {
        Self(Arc::new(Opening { target, metadata, opened: OnceCell::new() }))
    }

    /// The connection, opened if it is not yet.
    pub(super) async fn opened(&self) -> Result<Channel, NotConnected> {
        self.0.opened.get_or_init(|| self.0.open()).await.clone()
    }
}

impl Opening {
    /// Connects, and makes a call that every server of gRPC answers, also without the service of later calls: what does
    /// not answer is detected before anything is written, and before a stream, which has no deadline. The answer is not
    /// examined.
    async fn open(&self) -> Result<Channel, NotConnected> {
        let channel = self.target.connect().await?;
        let mut health = HealthClient::with_interceptor(channel.clone(), self.metadata.clone());
        let answer = health.check(HealthCheckRequest::default()).await;
        match answer.err().as_ref().and_then(unanswered) {
            Some(cause) => Err(self.target.failed(cause)),
            None => Ok(channel),
        }
    }
}

impl Service<http::Request<Body>> for LazyChannel {
    type Response = http::Response<Body>;
    type Error = StdError;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let lazy = self.clone();
        Box::pin(async move {
            let mut channel = lazy.opened().await?;
            poll_fn(|context| channel.poll_ready(context)).await?;
            let uri = request.uri().clone();
            let answer = channel.call(request).await?;
            let endpoint = &lazy.0.target.endpoint;
            match NotServed::detect(endpoint, uri.path(), answer.headers()) {
                Some(absent) => Err(absent.into()),
                None => Ok(answer),
            }
        })
    }
}

#[cfg(test)]
mod tests;
