//! Bodies of OTLP in JSON: the services receive Protocol Buffers alone. A body is decompressed and read as a whole,
//! behind the layers that authenticate its caller and bound its bytes and its time.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};
use trestle_rpc::status::{DOMAIN, IntoStatus as _};

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tonic::{Status, body::Body};
use tower::Service;
use trestle_model::fault::{Fault, Reason, message_too_large};
use trestle_model::json_error::json_problem;
use trestle_rpc::layer::compression::MessageCompression;
use trestle_rpc::layer::middleware::{Middleware, MiddlewareLayer};
use trestle_rpc::layer::{Request, Response, ResponseFuture, error_response};
use trestle_rpc::otlp_json::{OtlpJsonError, OtlpRequest, to_protobuf};

use super::{PREFIX_BYTES, prefix};

/// Marks a request, in its extensions, whose one message is JSON.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonMessage(pub(super) OtlpRequest);

/// Translates the messages of requests that are marked as [`JsonMessage`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonTranslation {
    message_bytes_max: usize,
}

impl JsonTranslation {
    /// For messages of up to so many bytes, as JSON and as Protocol Buffers.
    pub(crate) fn layer(message_bytes_max: usize) -> MiddlewareLayer<Self> {
        MiddlewareLayer(Self { message_bytes_max })
    }
}

impl Middleware for JsonTranslation {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let Some(JsonMessage(message)) = request.extensions_mut().remove() else {
            return inner.call(request);
        };
        let failed = Arc::new(OnceLock::new());
        let (bytes_max, kept) = (self.message_bytes_max, Arc::clone(&failed));
        let mut translated = Translated { inner, message, bytes_max, failed: kept };
        // Decompresses the message before it is translated.
        let answer = MessageCompression::new(bytes_max).call(request, &mut translated);
        Box::pin(async move {
            let answer = answer.await?;
            // The service saw a broken stream only.
            Ok(failed.get().map_or(answer, BodyError::response))
        })
    }
}

/// Why a body is not translated.
#[derive(Debug)]
enum BodyError {
    /// It is malformed or too large.
    Translation(Fault),
    /// It could not be read or decompressed.
    Read(Status),
}

impl BodyError {
    fn status(&self) -> Status {
        match self {
            Self::Translation(fault) => fault.clone().into_status(DOMAIN),
            Self::Read(status) => status.clone(),
        }
    }

    fn response(&self) -> Response {
        match self {
            Self::Translation(fault) => error_response(fault.clone()),
            Self::Read(status) => status.clone().into_http(),
        }
    }
}

/// Calls a service with the message in Protocol Buffers.
struct Translated<'s, S> {
    inner: &'s mut S,
    message: OtlpRequest,
    bytes_max: usize,
    failed: Arc<OnceLock<BodyError>>,
}

impl<S> Service<Request> for Translated<'_, S>
where
    S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        let (message, bytes_max) = (self.message, self.bytes_max);
        let failed = Arc::clone(&self.failed);
        self.inner.call(request.map(|body| translated(body, message, bytes_max, failed)))
    }
}

/// The message of a body, once that has ended. Keeps why it could not be translated.
fn translated(
    body: Body,
    message: OtlpRequest,
    bytes_max: usize,
    failed: Arc<OnceLock<BodyError>>,
) -> Body {
    let read = async move {
        let json = whole(body, bytes_max).await;
        match json.and_then(|json| to_message(message, &json, bytes_max)) {
            Ok(parts) => Ok(stream::iter(parts.map(|part| Ok::<_, Status>(Frame::data(part))))),
            Err(error) => Err(failed.get_or_init(|| error).status()),
        }
    };
    Body::new(StreamBody::new(stream::once(read).try_flatten().boxed()))
}

/// The content of the one message of a body.
async fn whole(mut body: Body, bytes_max: usize) -> Result<Bytes, BodyError> {
    let mut message = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(BodyError::Read)?.into_data() {
            message.extend_from_slice(&data);
        }
        if message.len() > PREFIX_BYTES + bytes_max {
            return Err(BodyError::Translation(message_too_large(bytes_max)));
        }
    }
    Ok(message.split_off(PREFIX_BYTES.min(message.len())).freeze())
}

/// The message of gRPC that a text in JSON is.
fn to_message(
    message: OtlpRequest,
    json: &[u8],
    bytes_max: usize,
) -> Result<[Bytes; 2], BodyError> {
    let json = String::from_utf8_lossy(json);
    let fault = match to_protobuf(message, &json, bytes_max) {
        Ok(encoded) => {
            let prefix = prefix(false, encoded.len() as u64).map_err(BodyError::Translation)?;
            return Ok([prefix, encoded.into()]);
        }
        Err(OtlpJsonError::TooLarge) => message_too_large(bytes_max),
        Err(OtlpJsonError::Malformed(error)) => {
            let problem = json_problem(&json, &error);
            let rule = format!("must be an export request of OTLP in JSON: {problem}");
            Fault::violation(Reason::InvalidInput, "body", rule)
        }
    };
    Err(BodyError::Translation(fault))
}
