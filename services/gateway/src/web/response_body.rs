//! The body of a response of gRPC-Web, with the status of the call in its trailers.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use tonic::{Status, body::Body};
use trestle_rpc::layer::Response;

/// Prefix of the headers that belong into the trailers.
const STATUS_PREFIX: &str = "grpc-";
/// Exceptions, which describe the messages.
const ENCODINGS: [&str; 2] = ["grpc-encoding", "grpc-accept-encoding"];

/// A response with its status in the body, where every page can read it: a page of another origin can
/// read only the headers that a rule names.
pub(super) fn with_status_in_body(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    let is_status = |name: &&http::HeaderName| {
        let name = name.as_str();
        name.starts_with(STATUS_PREFIX) && !ENCODINGS.contains(&name)
    };
    let names: Vec<_> = headers.keys().filter(is_status).cloned().collect();
    let moved = names.into_iter().filter_map(|name| Some((name.clone(), headers.remove(name)?)));
    let trailers: HeaderMap = moved.collect();
    let trailers = (!trailers.is_empty()).then_some(trailers);
    answer.map(|body| Body::new(TranslatedResponse { body, trailers }))
}

/// The body of a response before its translation.
struct TranslatedResponse {
    body: Body,
    /// What follows the body.
    trailers: Option<HeaderMap>,
}

impl http_body::Body for TranslatedResponse {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.or_else(|| self.trailers.take().map(|map| Ok(Frame::trailers(map)))))
    }

    // Neither end nor length: the trailers become a part of the body.
}
