//! The response of another process, as it is forwarded to the client.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::uri::PathAndQuery;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tonic::Status;

use super::{failed_call, kind::kind_of, pool::Lease};
use crate::{forward::Forward, layer::trailers};

/// The body of a response from another process; a connection that breaks meanwhile fails the call. The
/// connection counts the call until the body ends.
pub(super) struct ForwardedBody {
    pub(super) body: Option<Incoming>,
    /// The path of the method.
    pub(super) path: PathAndQuery,
    pub(super) forward: Forward,
    pub(super) _lease: Lease,
}

impl http_body::Body for ForwardedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        Poll::Ready(match frame {
            Some(Ok(mut frame)) => {
                if let Some(trailers) = frame.trailers_mut() {
                    this.forward.answered(trailers);
                }
                Some(Ok(frame))
            }
            Some(Err(_broken)) => {
                this.body = None;
                let fault = failed_call::broken(kind_of(this.path.path()).is_read);
                let mut trailers = trailers(fault);
                this.forward.answered(&mut trailers);
                Some(Ok(Frame::trailers(trailers)))
            }
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Incoming::size_hint).unwrap_or_default()
    }
}
