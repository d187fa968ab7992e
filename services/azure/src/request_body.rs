//! The body of a request: collected whole up to a bound, or read in pieces as its client sends them.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures::Stream;
use http::{HeaderValue, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tonic::{Status, body::Body};
use tonic_types::StatusExt as _;
use trestle_identity::caller::Denied;
use trestle_service::fault::{Fault, Reason};

use crate::{collected::CollectedBytes, error::RestError, gzip::Encoding, head::Head};

/// Most bytes that are reserved for a body before they arrive: a client need not send what it declares.
const RESERVED_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of a piece of a streamed body, whatever the connection delivers at once.
pub(crate) const PIECE_BYTES_MAX: usize = 128 * 1024;

/// The body of a request, with its bounds.
pub(crate) struct RequestBody {
    body: Body,
    bytes_max: u64,
    declared: Option<u64>,
    content_encoding: Option<HeaderValue>,
    /// The error of the call in place of any error of the body: a check of the credentials that
    /// comes after that of their stored access policy has failed.
    denied: Option<Denied>,
}

impl RequestBody {
    /// A body of at most `bytes_max` bytes.
    pub(crate) fn new(head: &Head, body: Body, bytes_max: u64, denied: Option<Denied>) -> Self {
        let declared = head.header(header::CONTENT_LENGTH).and_then(|text| text.parse().ok());
        let content_encoding = head.headers.get(header::CONTENT_ENCODING).cloned();
        Self { body, bytes_max, declared, content_encoding, denied }
    }

    /// The whole body, decompressed if it is compressed. Its bytes, and those that it decompresses
    /// to, stay within the bound.
    ///
    /// # Errors
    /// A body that is too large, ends early, or is not encoded as its headers say. Up to twice the
    /// bound is read before that: a client that is still sending may never read the response.
    pub(crate) async fn collect(self) -> Result<Bytes, RestError> {
        let Self { body, bytes_max, declared, content_encoding, denied } = self;
        let limit = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let collected = async {
            let encoding = Encoding::of(content_encoding.as_ref())?;
            let declared = declared.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
            let body = collect(body, limit, declared).await?;
            let body = body.ok_or_else(|| too_large(bytes_max))?;
            encoding.decode(body, limit)?.ok_or_else(|| too_large(bytes_max))
        };
        collected.await.map_err(|error| instead(denied.as_ref(), error))
    }

    /// The body in pieces of at most [`PIECE_BYTES_MAX`], as it is sent: compressed, if it is.
    /// A piece is read from the connection only when it is polled for.
    ///
    /// # Errors
    /// A declared length beyond the bound.
    #[cfg_attr(not(test), expect(dead_code, reason = "tables and queues collect theirs"))]
    pub(crate) fn pieces(self) -> Result<BodyPieces, RestError> {
        let Self { body, bytes_max, declared, denied, .. } = self;
        if declared.is_some_and(|declared| declared > bytes_max) {
            return Err(instead(denied.as_ref(), too_large(bytes_max)));
        }
        let (left, rest, denied) = (bytes_max, Bytes::new(), denied.map(Box::new));
        Ok(BodyPieces { body, bytes_max, left, rest, denied })
    }
}

/// The pieces of a body. The first error is the last item.
pub(crate) struct BodyPieces {
    body: Body,
    bytes_max: u64,
    /// Bytes that may still come.
    left: u64,
    /// What the connection delivered beyond the last piece.
    rest: Bytes,
    denied: Option<Box<Denied>>,
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

fn instead(denied: Option<&Denied>, error: RestError) -> RestError {
    denied.map_or(error, |denied| Fault::from(denied.clone()).into())
}

fn too_large(bytes_max: u64) -> RestError {
    let rule = format!("must have at most {bytes_max} bytes");
    let fault = Fault::violation(Reason::RequestBodyTooLarge, "body", rule);
    RestError::from(fault).with("MaxLimit", bytes_max.to_string())
}

/// The bytes of a body; none where there are more than the limit.
async fn collect(body: Body, limit: usize, declared: usize) -> Result<Option<Bytes>, RestError> {
    let mut body = std::pin::pin!(body);
    let (mut kept, mut read, mut is_too_large) =
        (CollectedBytes::default(), 0_usize, declared > limit);
    let reserved = declared.min(RESERVED_BYTES_MAX);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        read = read.saturating_add(data.len());
        is_too_large |= read > limit;
        if is_too_large {
            kept = CollectedBytes::default();
        } else {
            kept.add(data, reserved);
        }
        if read > limit.saturating_mul(2) {
            break;
        }
    }
    Ok((!is_too_large).then(|| kept.bytes()))
}

/// A body that ends early: the error of a layer, or a client that has disconnected.
fn broken(status: Status) -> RestError {
    if status.get_error_details().error_info().is_some() {
        return status.into();
    }
    Fault::violation(Reason::InvalidInput, "body", "ended too early").into()
}

#[cfg(test)]
mod tests;
