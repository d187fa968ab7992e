//! Requests of OTLP that are no call: their responses are statuses, in the type of the request where there is one.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use prost::Message as _;
use tonic::{Code, body::Body};
use trestle_service::{
    fault::{Fault, Reason},
    layer::{Response, short_circuit::with_outcome},
};

use super::PROTOBUF;
use crate::web::{plain, with_allowed};

/// The type of a body in JSON.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyType {
    Protobuf,
    Json,
    Other,
}

impl BodyType {
    /// The type that a request states, in any case and with any parameters.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let kind = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let is = |known: &HeaderValue| kind.eq_ignore_ascii_case(known.as_bytes());
        match () {
            () if is(&PROTOBUF) => Self::Protobuf,
            () if is(&JSON) => Self::Json,
            () => Self::Other,
        }
    }
}

/// Why a request is rejected before it is a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rejection {
    status: StatusCode,
    code: Code,
    reason: Reason,
    text: &'static str,
}

impl Rejection {
    /// A method of HTTP that is not POST.
    pub(super) const METHOD: Self = Self {
        status: StatusCode::METHOD_NOT_ALLOWED,
        code: Code::Unimplemented,
        reason: Reason::UnsupportedHttpVerb,
        text: "OTLP over HTTP needs POST",
    };
    /// Another type of body.
    pub(super) const CONTENT_TYPE: Self = Self {
        status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
        code: Code::InvalidArgument,
        reason: Reason::InvalidHeaderValue,
        text: "OTLP over HTTP needs a body of the type application/x-protobuf",
    };
    /// Another encoding of a body.
    pub(super) const ENCODING: Self = Self {
        status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
        code: Code::InvalidArgument,
        reason: Reason::InvalidHeaderValue,
        text: "OTLP over HTTP needs a body that is not compressed, or with gzip",
    };

    /// The response to a request with these headers.
    pub(crate) fn response(self, headers: &HeaderMap) -> Response {
        let Self { status, code, reason, text } = self;
        let answer = match BodyType::of(headers) {
            BodyType::Protobuf => {
                let (code, message) = (code.into(), text.to_owned());
                let message = tonic_types::Status { code, message, details: Vec::new() };
                answer_of(status, PROTOBUF, message.encode_to_vec().into())
            }
            BodyType::Json => {
                let object = serde_json::json!({ "code": i32::from(code), "message": text });
                answer_of(status, JSON, object.to_string().into())
            }
            BodyType::Other => plain(status, text.to_owned()),
        };
        with_outcome(with_allowed(answer), Err(Fault::new(reason, text)))
    }
}

fn answer_of(status: StatusCode, kind: HeaderValue, body: Bytes) -> Response {
    let mut answer = Response::new(Body::new(http_body_util::Full::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}
