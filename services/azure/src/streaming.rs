//! Bulk data: bodies of any size as streams of messages, in both directions, with constant memory.
//!
//! `bulk_tests` has a protocol that checks it without a service.

mod calls;
mod pieces;

use bytes::Bytes;
use futures::{Stream, TryStreamExt as _};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::StreamBody;
use tonic::{Status, body::Body};

pub(crate) use self::pieces::BodyPieces;
#[cfg(test)]
pub(crate) use self::pieces::PIECE_BYTES_MAX;

/// A response whose body is streamed, of `length` bytes if the length is set. It is cut off at an error
/// of `pieces`.
pub(crate) fn streamed(
    status: StatusCode,
    length: Option<u64>,
    pieces: impl Stream<Item = Result<Bytes, Status>> + Send + 'static,
) -> Response<Body> {
    let mut answer = Response::new(Body::new(StreamBody::new(pieces.map_ok(Frame::data))));
    *answer.status_mut() = status;
    if let Some(length) = length {
        answer.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    answer
}
