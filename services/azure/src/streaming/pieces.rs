//! The body of a request in pieces, as its client sends them.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures::Stream;
use http_body::Body as _;
use tonic::body::Body;
use trestle_model::fault::Fault;

use crate::{
    error::RestError,
    request_body::{RequestBody, broken, instead, too_large},
};

/// Most bytes of a piece of a streamed body, for any size of a read.
pub(crate) const PIECE_BYTES_MAX: usize = 128 * 1024;

impl RequestBody {
    /// The body in pieces of at most [`PIECE_BYTES_MAX`], as it is sent: compressed, if it is.
    /// A piece is read from the connection only when it is polled for.
    ///
    /// # Errors
    /// A declared length beyond the bound.
    pub(crate) fn pieces(self) -> Result<BodyPieces, RestError> {
        let Self { body, bytes_max, declared, denied, .. } = self;
        if declared.is_some_and(|declared| declared > bytes_max) {
            return Err(instead(denied.as_deref(), too_large(bytes_max)));
        }
        let (left, rest) = (bytes_max, Bytes::new());
        Ok(BodyPieces { body, bytes_max, left, rest, denied })
    }
}

/// The pieces of a body. The first error is the last item.
pub(crate) struct BodyPieces {
    body: Body,
    bytes_max: u64,
    /// Bytes that may follow.
    left: u64,
    /// What the connection delivered beyond the last piece.
    rest: Bytes,
    denied: Option<Box<Fault>>,
}

impl BodyPieces {
    fn fail(&mut self, error: RestError) -> Poll<Option<Result<Bytes, RestError>>> {
        self.body = Body::empty();
        Poll::Ready(Some(Err(instead(self.denied.as_deref(), error))))
    }
}

impl Stream for BodyPieces {
    type Item = Result<Bytes, RestError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        while this.rest.is_empty() {
            let data = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(status)) => return this.fail(broken(status)),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            match this.left.checked_sub(data.len() as u64) {
                Some(left) => this.left = left,
                None => return this.fail(too_large(this.bytes_max)),
            }
            this.rest = data;
        }
        let bytes = this.rest.len().min(PIECE_BYTES_MAX);
        Poll::Ready(Some(Ok(this.rest.split_to(bytes))))
    }
}
