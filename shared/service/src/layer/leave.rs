//! Lets nobody wait any longer at a gateway that is about to end for what a service in another
//! process may have to say.
//!
//! A call that waits is answered with an empty message, which says that nothing came in time, and a
//! stream that goes on for as long as its client gives credit ends as one that should be opened
//! elsewhere. What the service was just about to answer is lost with it, as with a client that goes
//! away: a message that was taken for it comes back when its time is over. The service that is in
//! this process is told itself, and loses nothing.

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
    Answer, Request, Response,
    frame::{Step, StepLayer},
    methods::Methods,
    passage::{Next, Passage, passing},
    trailers,
};
use crate::fault::{Fault, Reason};

/// An empty message as gRPC frames it: not compressed, of no bytes.
const EMPTY: &[u8] = &[0; 5];

/// Whether the process is about to end. Clones share it.
#[derive(Debug, Clone)]
pub struct Leaving(Arc<watch::Sender<bool>>);

impl Default for Leaving {
    /// It is not.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Leaving {
    /// Ends every wait, also those that begin later.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    async fn begun(self) {
        // The sender is here, so this ends for no other reason.
        drop(self.0.subscribe().wait_for(|leaving| *leaving).await);
    }
}

/// Ends what waits. Clones end together.
pub type LeaveLayer = StepLayer<Leave>;

/// See the module.
#[derive(Debug, Clone)]
pub struct Leave {
    leaving: Leaving,
    methods: Methods,
}

impl LeaveLayer {
    /// Ends calls of those `methods` that wait, and streams of those that push, once `leaving`
    /// begins.
    #[must_use]
    pub fn new(leaving: Leaving, methods: Methods) -> Self {
        Self(Leave { leaving, methods })
    }
}

impl Step for Leave {
    fn call<S>(&self, request: Request, inner: &mut S) -> Answer
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = Answer>,
    {
        let method = self.methods.find(request.uri().path());
        if method.pushes {
            let [asked, pushed] = [(), ()].map(|()| Box::pin(self.leaving.clone().begun()));
            let answer = inner.call(request.map(|body| passing(body, Asked(asked))));
            let pushed = Pushed(pushed);
            return Box::pin(async move { Ok(answer.await?.map(|body| passing(body, pushed))) });
        }
        let (waits, answer) = (method.waits, inner.call(request));
        if !waits {
            return answer;
        }
        let begun = self.leaving.clone().begun();
        Box::pin(async move {
            tokio::select! {
                // What is there is told.
                biased;
                answer = answer => answer,
                () = begun => Ok(empty()),
            }
        })
    }
}

/// The answer to a call for which nothing came.
fn empty() -> Response {
    let mut end = HeaderMap::new();
    end.insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
    let body = Full::new(Bytes::from_static(EMPTY)).with_trailers(ready(Some(Ok(end))));
    let mut answer = Response::new(Body::new(body));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    answer
}

type Begun = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What the client says on a stream, until the process is about to end: as long as it may say more,
/// the stream is open on both sides, also when its answer has ended.
struct Asked(Begun);

impl Passage for Asked {
    const SHORTENS: bool = true;

    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        if let Poll::Ready(part) = body.poll_frame(cx) {
            return Poll::Ready(Next::Part(part));
        }
        self.0.as_mut().poll(cx).map(|()| Next::Part(None))
    }
}

/// The answer on a stream, until the process is about to end.
struct Pushed(Begun);

impl Passage for Pushed {
    const SHORTENS: bool = true;

    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        if let Poll::Ready(part) = body.poll_frame(cx) {
            return Poll::Ready(Next::Part(part));
        }
        self.0.as_mut().poll(cx).map(|()| {
            let message = "the gateway is about to end: open the stream again";
            let fault = Fault::new(Reason::ServerUnavailable, message);
            Next::Last(Frame::trailers(trailers(fault)))
        })
    }
}
