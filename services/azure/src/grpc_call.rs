//! The gRPC call of a request: one message each way. `streaming` has the calls of bulk data.

use std::sync::Arc;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, header};
use http_body_util::{BodyExt as _, Full};
use prost::Message;
use tonic::{Status, body::Body};
use tower::Service as _;
use trestle_identity::caller::Caller;
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::MESSAGE_BYTES_MAX;
use trestle_rpc::layer::Request;
use trestle_rpc::layer::body_bytes::CollectedResponses;
use trestle_rpc::layer::compression::{ACCEPT_ENCODING, ENCODING};
use trestle_rpc::layer::trace::REQUEST_ID_HEADER;
use trestle_rpc::status::{DOMAIN, IntoStatus as _};
use trestle_rpc::upstream::Upstream;
use trestle_rpc::upstream::kind::kind_of;

use crate::collected::CollectedBytes;

/// Bytes before a message: one for the flag, four for the length.
const HEAD_BYTES: usize = 5;

/// One call on behalf of a request: in its trace, for its caller, until its deadline.
pub(crate) struct GrpcCall {
    pub(crate) upstream: Upstream,
    pub(crate) headers: HeaderMap,
    pub(crate) extensions: http::Extensions,
}

impl GrpcCall {
    /// A call on behalf of `request`, which has passed all layers.
    pub(crate) fn of(mut request: http::request::Parts, upstream: Upstream) -> Self {
        // They are about the messages of a call, and these are not those of the client.
        for name in [ENCODING, ACCEPT_ENCODING] {
            request.headers.remove(name);
        }
        Self { upstream, headers: request.headers, extensions: request.extensions }
    }

    /// Another call on behalf of the same request.
    pub(crate) fn again(&self) -> Self {
        Self {
            upstream: self.upstream.clone(),
            headers: self.headers.clone(),
            extensions: self.extensions.clone(),
        }
    }

    /// The call for another caller.
    pub(crate) fn for_caller(self, caller: Arc<Caller>) -> Self {
        let mut request = Request::new(Body::empty());
        *request.headers_mut() = self.headers;
        *request.extensions_mut() = self.extensions;
        caller.insert(&mut request);
        Self::of(request.into_parts().0, self.upstream)
    }

    /// The unique id of the request.
    pub(crate) fn request_id(&self) -> &str {
        let id = self.headers.get(REQUEST_ID_HEADER);
        id.and_then(|id| id.to_str().ok()).unwrap_or_default()
    }

    /// Makes the call.
    ///
    /// # Errors
    /// The error of the call, or a malformed response.
    pub(crate) async fn unary<Q, A>(mut self, path: &'static str, message: &Q) -> Result<A, Status>
    where
        Q: Message,
        A: Message + Default,
    {
        let mut request = Request::new(Body::new(Full::new(framed(message))));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = http::Uri::from_static(path);
        *request.headers_mut() = self.headers;
        *request.extensions_mut() = self.extensions;
        let collected = CollectedResponses::of(request.extensions(), kind_of(path).is_read);
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        let Ok(answer) = self.upstream.call(request).await;
        ended(answer.headers())?;
        let (message, trailers) = collect(answer.into_body(), &collected).await?;
        trailers.as_ref().map_or(Ok(()), ended)?;
        A::decode(unframed(message)?).map_err(|_| unreadable())
    }
}

/// The bytes of a response, which count for `held`, and its trailers.
async fn collect(
    mut body: Body,
    held: &CollectedResponses,
) -> Result<(Bytes, Option<HeaderMap>), Status> {
    let (mut collected, mut room, mut trailers) = (CollectedBytes::default(), None, None);
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => {
                let room = match room {
                    Some(room) => room,
                    None => {
                        let bytes = announced(&data);
                        held.add(bytes).map_err(|fault| fault.into_status(DOMAIN))?;
                        *room.insert(bytes)
                    }
                };
                collected.add(data, room);
            }
            Err(other) => trailers = other.into_trailers().ok(),
        }
    }
    Ok((collected.bytes(), trailers))
}

/// The length of a response by its first bytes, within the bound.
fn announced(start: &[u8]) -> usize {
    let length = start.get(1..HEAD_BYTES).and_then(|bytes| bytes.try_into().ok());
    let length = length.map_or(0, u32::from_be_bytes) as usize;
    HEAD_BYTES + length.min(MESSAGE_BYTES_MAX)
}

/// A message in gRPC framing.
fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(HEAD_BYTES + length);
    bytes.put_u8(0);
    // A message of 4 GiB is impossible: bodies are bounded far below.
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // Fails only without room, which was reserved above.
    let _ = message.encode(&mut bytes);
    bytes.freeze()
}

fn unframed(mut bytes: Bytes) -> Result<Bytes, Status> {
    if bytes.len() < HEAD_BYTES || bytes.get_u8() != 0 {
        return Err(unreadable());
    }
    let length = bytes.get_u32() as usize;
    if length == bytes.len() { Ok(bytes) } else { Err(unreadable()) }
}

/// Returns the error in headers or trailers, if the call failed.
fn ended(headers: &HeaderMap) -> Result<(), Status> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() != tonic::Code::Ok => Err(status),
        _ => Ok(()),
    }
}

fn unreadable() -> Status {
    Fault::new(Reason::InternalError, "the service returned an unreadable response")
        .into_status(DOMAIN)
}

#[cfg(test)]
mod tests {
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    #[tokio::test]
    async fn a_response_is_collected_with_its_trailers() {
        let bytes = framed(&"é".repeat(50_000));
        let trailers = HeaderMap::from_iter([(header::TE, HeaderValue::from_static("x"))]);
        let held = CollectedResponses::of(&http::Extensions::new(), false);
        for size in [1, 16_384, bytes.len()] {
            let pieces = (0..bytes.len()).step_by(size);
            let pieces = pieces.map(|at| bytes.slice(at..bytes.len().min(at + size)));
            let frames = pieces.map(Frame::data).chain([Frame::trailers(trailers.clone())]);
            let frames: Vec<_> = frames.map(Ok::<_, Status>).collect();
            let body = Body::new(StreamBody::new(futures::stream::iter(frames)));

            assert_eq!(
                collect(body, &held).await.expect("whole"),
                (bytes.clone(), Some(trailers.clone()))
            );
        }
        assert_eq!(announced(&bytes), bytes.len());
        assert_eq!(announced(&[0, 1]), HEAD_BYTES);
        assert_eq!(announced(&[0, 255, 255, 255, 255]), HEAD_BYTES + MESSAGE_BYTES_MAX);
    }

    #[test]
    fn a_message_survives_a_round_trip_and_a_damaged_one_is_rejected() {
        let message = "twelve bytes".to_owned();
        let bytes = framed(&message);

        let read = unframed(bytes.clone()).expect("a message");
        assert_eq!(String::decode(read).expect("decodes"), message);
        for damaged in [bytes.slice(..4), bytes.slice(..bytes.len() - 1), Bytes::from(vec![1; 19])]
        {
            assert!(unframed(damaged).is_err());
        }
    }
}
