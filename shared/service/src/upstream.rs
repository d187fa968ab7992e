//! Where a service lives: in this process, or behind a few connections to another. The only type
//! that knows.
//!
//! Both variants are the same service of calls; bodies and trailers pass untouched. To the other
//! process a call takes its headers along, so deadline, caller and request id arrive; the trace
//! context becomes that of the client span.
//!
//! A failure of the connection is told apart: `UNAVAILABLE` where the call was never sent, unknown
//! outcome otherwise. Nothing is retried here beyond what was never sent.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Uri, uri::PathAndQuery};
use http_body::{Frame, SizeHint};
use hyper_util::{
    client::legacy::{Client, Error as ClientError, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tonic::{Status, body::Body};
use tower::{Service, ServiceExt as _};
use tracing::Instrument as _;

use crate::{
    caller::Caller,
    fault::{Fault, Reason},
    forward::Forward,
    layer::{Answer, CallService, Request, Response, refusal, trailers},
};

/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How often an idle connection is probed, and how long a probe may take.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// Bytes that one answer may be ahead of its reader.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// Bytes that all answers of a connection may be ahead.
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// When a client should come back after a connection failed.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// A service, wherever it lives.
#[derive(Clone)]
pub enum Upstream {
    /// In this process.
    Local(CallService),
    /// In another process.
    Remote(Remote),
}

impl Upstream {
    /// A service in this process.
    pub fn local<S>(service: S) -> Self
    where
        S: Service<Request, Response = Response, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        Self::Local(CallService::new(service))
    }
}

impl Service<Request> for Upstream {
    type Response = Response;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match self {
            Self::Local(service) => service.poll_ready(cx),
            Self::Remote(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, request: Request) -> Answer {
        match self {
            Self::Local(service) => service.call(request),
            Self::Remote(remote) => remote.send(request),
        }
    }
}

/// An endpoint that cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("endpoint must be `http://host:port`: value=`{0}`")]
pub struct EndpointError(String);

/// A service in another process, over HTTP/2 connections that calls take in turn. Connects when it
/// is first used.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<Shared>,
}

struct Shared {
    /// One connection each: a single one is a single task, and so a single core.
    connections: Vec<Client<HttpConnector, Body>>,
    next: AtomicUsize,
    scheme: http::uri::Scheme,
    authority: http::uri::Authority,
}

impl Remote {
    /// For an endpoint such as `http://table:50051`, over so many connections (at least one).
    ///
    /// # Errors
    /// A text that is no such endpoint.
    pub fn new(endpoint: &str, connections: usize) -> Result<Self, EndpointError> {
        let error = || EndpointError(endpoint.to_owned());
        let uri: Uri = endpoint.parse().map_err(|_| error())?;
        let parts = uri.into_parts();
        let plain = |scheme: &http::uri::Scheme| *scheme == http::uri::Scheme::HTTP;
        let bare = |path: &PathAndQuery| path.as_str() == "/";
        let (Some(scheme), Some(authority), true) = (
            parts.scheme.filter(plain),
            parts.authority,
            parts.path_and_query.as_ref().is_none_or(bare),
        ) else {
            return Err(error());
        };
        let connections = (0..connections.max(1)).map(|_| connection()).collect();
        let shared = Shared { connections, next: AtomicUsize::new(0), scheme, authority };
        Ok(Self { shared: Arc::new(shared) })
    }

    fn send(&self, mut request: Request) -> Answer {
        let shared = &*self.shared;
        let turn = shared.next.fetch_add(1, Ordering::Relaxed) % shared.connections.len();
        let Some(connection) = shared.connections.get(turn) else {
            return Box::pin(async { Ok(refusal(unreachable())) });
        };
        Caller::export(&mut request);
        let path = request.uri().path_and_query().cloned();
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(shared.scheme.clone());
        uri.authority = Some(shared.authority.clone());
        uri.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        *request.uri_mut() = Uri::from_parts(uri).expect("scheme, authority and path are there");
        *request.version_mut() = http::Version::HTTP_2;

        let host = shared.authority.host();
        let mut forward = Forward::start(&mut request, host, shared.authority.port_u16());
        let span = forward.span.clone();
        let answer = connection.clone().oneshot(request);
        let answering = async move {
            Ok(match answer.await {
                Ok(mut answer) => {
                    forward.answered(answer.headers_mut());
                    answer.map(|body| Body::new(Forwarded { body: Some(body), forward }))
                }
                Err(error) => {
                    let mut answer = refusal(failed(&error));
                    forward.answered(answer.headers_mut());
                    answer
                }
            })
        };
        if span.is_disabled() { Box::pin(answering) } else { Box::pin(answering.instrument(span)) }
    }
}

fn connection() -> Client<HttpConnector, Body> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_WITHIN));
    Client::builder(TokioExecutor::new())
        .http2_only(true)
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(None)
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keep_alive_interval(KEEPALIVE)
        .http2_keep_alive_timeout(KEEPALIVE)
        .http2_keep_alive_while_idle(true)
        .set_host(false)
        .build(connector)
}

fn unreachable() -> Fault {
    let message = "the service cannot be reached; nothing was sent";
    Fault::new(Reason::ServerUnavailable, message).retry_after(RETRY_AFTER)
}

fn outcome_unknown() -> Fault {
    let message = "the connection to the service failed during the call; its outcome is unknown";
    Fault::new(Reason::OutcomeUnknown, message)
}

/// What a call without an answer means: could the service have seen it?
fn failed(error: &ClientError) -> Fault {
    if error.is_connect() || was_never_sent(error) { unreachable() } else { outcome_unknown() }
}

fn was_never_sent(error: &ClientError) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled) {
            return true;
        }
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            // The peer says it took this stream no more: it shuts down, or refuses.
            let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return error.is_remote() && (error.is_go_away() || refused);
        }
        cause = error.source();
    }
    false
}

/// The body of an answer from another process; a connection that breaks meanwhile becomes a failure
/// of the call.
struct Forwarded {
    body: Option<hyper::body::Incoming>,
    forward: Forward,
}

impl http_body::Body for Forwarded {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Self { body, forward } = &mut *self;
        let Some(incoming) = body else {
            return Poll::Ready(None);
        };
        let frame = std::task::ready!(Pin::new(incoming).poll_frame(cx));
        Poll::Ready(match frame {
            Some(Ok(mut frame)) => {
                if let Some(trailers) = frame.trailers_mut() {
                    forward.answered(trailers);
                }
                Some(Ok(frame))
            }
            Some(Err(_broken)) => {
                *body = None;
                let mut trailers = trailers(outcome_unknown());
                forward.answered(&mut trailers);
                Some(Ok(Frame::trailers(trailers)))
            }
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(hyper::body::Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(hyper::body::Incoming::size_hint).unwrap_or_default()
    }
}
