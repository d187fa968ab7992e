//! Ends the calls that wait at a gateway for a service in another process, when the gateway shuts
//! down.
//!
//! A call that waits gets an empty message, which means that nothing arrived in time, and a stream
//! with client credit ends with a status that makes the client reconnect elsewhere. A response
//! that the service was about to send is dropped, as with a client that disconnects: a message
//! that was received for it becomes visible again after its visibility timeout. A service in this
//! process handles the shutdown itself, and drops nothing.

use std::{
    convert::Infallible,
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Full};
use tokio::sync::watch;
use tonic::{Status, body::Body};
use tower::Service;

use super::{
    Request, Response, ResponseFuture,
    body_wrapper::{BodyWrapper, Next, wrap_body},
    methods::Methods,
    middleware::{Middleware, MiddlewareLayer},
    trailers,
};
use trestle_model::fault::{Fault, Reason};

/// An empty message as gRPC frames it: not compressed, of no bytes.
const EMPTY: &[u8] = &[0; 5];

/// Whether the process shuts down. Clones share it.
#[derive(Debug, Clone)]
pub struct ShutdownSignal(Arc<watch::Sender<bool>>);

impl Default for ShutdownSignal {
    /// The state before a shutdown.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl ShutdownSignal {
    /// Ends every wait, also those that begin later.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    async fn begun(self) {
        // The sender still exists, so this ends for no other reason.
        drop(self.0.subscribe().wait_for(|shutdown| *shutdown).await);
    }
}

/// Ends calls that wait. Clones end together.
pub type ShutdownLayer = MiddlewareLayer<EndWaits>;

/// See the module.
#[derive(Debug, Clone)]
pub struct EndWaits {
    shutdown: ShutdownSignal,
    methods: Methods,
}

impl ShutdownLayer {
    /// Ends calls of those `methods` that wait, and streams of those that push, once `shutdown`
    /// begins.
    #[must_use]
    pub fn new(shutdown: ShutdownSignal, methods: Methods) -> Self {
        Self(EndWaits { shutdown, methods })
    }
}

impl Middleware for EndWaits {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let method = self.methods.find(request.uri().path());
        if method.pushes {
            let [for_request, for_response] =
                [(), ()].map(|()| Box::pin(self.shutdown.clone().begun()));
            let answer =
                inner.call(request.map(|body| wrap_body(body, ClientMessages(for_request))));
            let response = PushedMessages(for_response);
            return Box::pin(
                async move { Ok(answer.await?.map(|body| wrap_body(body, response))) },
            );
        }
        let (waits, answer) = (method.waits, inner.call(request));
        if !waits {
            return answer;
        }
        let begun = self.shutdown.clone().begun();
        Box::pin(async move {
            tokio::select! {
                // A response that is available is sent.
                biased;
                answer = answer => answer,
                () = begun => Ok(empty()),
            }
        })
    }
}

/// The response to a call for which no message arrived.
fn empty() -> Response {
    let mut end = HeaderMap::new();
    end.insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
    let body = Full::new(Bytes::from_static(EMPTY)).with_trailers(ready(Some(Ok(end))));
    let mut answer = Response::new(Body::new(body));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    answer
}

type ShutdownBegun = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The client's messages on a stream, until the process shuts down: as long as the client may send
/// more, the stream is open on both sides, also when its response has ended.
struct ClientMessages(ShutdownBegun);

impl BodyWrapper for ClientMessages {
    const SHORTENS: bool = true;

    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        if let Poll::Ready(part) = body.poll_frame(cx) {
            return Poll::Ready(Next::Part(part));
        }
        self.0.as_mut().poll(cx).map(|()| Next::Part(None))
    }
}

/// The response on a stream, until the process shuts down.
struct PushedMessages(ShutdownBegun);

impl BodyWrapper for PushedMessages {
    const SHORTENS: bool = true;

    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        if let Poll::Ready(part) = body.poll_frame(cx) {
            return Poll::Ready(Next::Part(part));
        }
        self.0.as_mut().poll(cx).map(|()| {
            let message = "the gateway is shutting down: open the stream again";
            let fault = Fault::new(Reason::ServerUnavailable, message);
            Next::Last(Frame::trailers(trailers(fault)))
        })
    }
}

#[cfg(test)]
mod tests;
