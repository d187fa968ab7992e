//! The body of a request of gRPC-Web, as messages of gRPC.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};
use trestle_rpc::status::{DOMAIN, IntoStatus as _};

use bytes::Bytes;
use http_body::Frame;
use tonic::{Status, body::Body};
use trestle_model::fault::{Fault, Reason};

/// The body of a request after its translation.
pub(super) struct TranslatedRequest {
    pub(super) body: Body,
    /// The first error of the body.
    pub(super) failed: Arc<OnceLock<Fault>>,
}

impl http_body::Body for TranslatedRequest {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map_err(|_| self.record())))
    }

    // Neither end nor length of the inner body: base64 is a third longer than its content, and its end
    // is not reached while a part of it is not decoded.
}

impl TranslatedRequest {
    /// Stores the error for the response, and returns it to the reader of the body.
    fn record(&self) -> Status {
        let rule = "must be whole frames of gRPC-Web, of grpc-web-text in base64 as one text";
        let fault = || Fault::violation(Reason::InvalidInput, "message", rule);
        self.failed.get_or_init(fault).clone().into_status(DOMAIN)
    }
}
