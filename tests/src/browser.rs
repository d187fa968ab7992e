//! The requests of browsers: HTTP/1.1 and HTTP/2, and gRPC-Web.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Buf as _, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version, header};
use http_body_util::{BodyExt as _, Full};
use prost::Message;
use tonic::{Code, Status, body::Body};
use tower::{BoxError, ServiceExt as _};

use crate::{CallError, World, wire};

/// The content type of binary messages.
pub const BINARY: &str = "application/grpc-web+proto";
/// The content type of base64 messages.
pub const TEXT: &str = "application/grpc-web-text+proto";
/// The flag of the frame that holds the trailers.
const TRAILERS: u8 = 0x80;

/// The response to a call of gRPC-Web.
#[derive(Debug)]
pub struct WebAnswer {
    /// The headers.
    pub headers: HeaderMap,
    /// The messages.
    pub messages: Vec<Bytes>,
    /// The trailers.
    pub trailers: HeaderMap,
}

impl WebAnswer {
    /// The text of an error; `OK` has none.
    pub fn error(&self) -> CallError {
        CallError::of(&Status::from_header_map(&self.trailers).expect("trailers hold a status"))
    }

    /// The only message of a successful call.
    pub fn message<M: Message + Default>(&self) -> M {
        assert_eq!(self.error().code, Code::Ok, "{:?}", self.error());
        let [message] = &self.messages[..] else { panic!("one message: {self:?}") };
        M::decode(message.clone()).expect("a message")
    }
}

/// A message as gRPC frames it.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a small message");
    [&[0][..], &length.to_be_bytes(), message].concat()
}

/// The path of a method of the table service.
pub fn path_of(method: &str) -> String {
    format!("/trestle.table.v1.TableService/{method}")
}

/// A request of gRPC-Web with any body.
pub fn web_request(path: &str, kind: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    let request = Request::post(path).header(header::CONTENT_TYPE, kind);
    request.header(header::ACCEPT, kind).body(body.into()).expect("a request")
}

impl World {
    /// Sends a request and waits for the whole answer. In the process there is no HTTP, so every
    /// version is the same there.
    ///
    /// # Errors
    /// What breaks the connection.
    pub async fn http(
        &self,
        version: Version,
        mut request: Request<Bytes>,
    ) -> Result<Response<Bytes>, BoxError> {
        *request.version_mut() = version;
        let Some(address) = self.address() else {
            let answer = self.transport().oneshot(request.map(|b| Body::new(Full::new(b)))).await?;
            let (parts, body) = answer.into_parts();
            return Ok(Response::from_parts(parts, body.collect().await?.to_bytes()));
        };
        wire::exchange(&address, request).await
    }

    /// Calls by gRPC-Web with a body of the test's choice, of the given type.
    pub async fn web_body(&self, version: Version, request: Request<Bytes>) -> WebAnswer {
        let kind = request.headers().get(header::ACCEPT).cloned();
        let answer = self.http(version, request).await.expect("an answer");
        let (parts, body) = answer.into_parts();
        assert_eq!(parts.status, StatusCode::OK, "{body:?}");
        assert_eq!(parts.headers.get(header::CONTENT_TYPE), kind.as_ref());
        let body =
            if kind.is_some_and(|kind| kind == TEXT) { untexted(&body) } else { body.to_vec() };
        let (messages, trailers) = unframed(body.into());
        WebAnswer { headers: parts.headers, messages, trailers }
    }

    /// Calls a method of the table service by gRPC-Web.
    pub async fn web(
        &self,
        (version, kind): (Version, &str),
        method: &str,
        message: &impl Message,
    ) -> WebAnswer {
        let body = framed(&message.encode_to_vec());
        let body = if kind == TEXT { STANDARD.encode(body).into_bytes() } else { body };
        self.web_body(version, web_request(&path_of(method), kind, body)).await
    }
}

/// Text back to bytes: each part was encoded on its own, padding included.
fn untexted(text: &[u8]) -> Vec<u8> {
    let groups = text.chunks(4).map(|group| STANDARD.decode(group).expect("base64"));
    groups.collect::<Vec<_>>().concat()
}

/// The messages of a body, and the trailers that must end it.
fn unframed(mut body: Bytes) -> (Vec<Bytes>, HeaderMap) {
    let mut messages = Vec::new();
    loop {
        let (flag, length) = (body.get_u8(), body.get_u32());
        let frame = body.split_to(usize::try_from(length).expect("a length"));
        if flag == TRAILERS {
            assert!(body.is_empty(), "nothing follows the trailers");
            return (messages, trailers(&frame));
        }
        assert_eq!(flag, 0, "messages are not compressed");
        messages.push(frame);
    }
}

fn trailers(frame: &[u8]) -> HeaderMap {
    let text = std::str::from_utf8(frame).expect("trailers are text");
    let trailer = |line: &str| {
        let (name, value) = line.split_once(':').expect("a name and a value");
        let name: HeaderName = name.parse().expect("a name");
        (name, HeaderValue::from_str(value.trim()).expect("a value"))
    };
    text.split_terminator("\r\n").map(trailer).collect()
}
