//! The types of bodies: a response has that of its request.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use prost::Message as _;
use serde_json::{Map, json};
use tonic::body::Body;
use trestle_proto::opentelemetry::proto::collector::logs::v1::ExportLogsServiceResponse;
use trestle_rpc::layer::Response;

use crate::plain_answer::plain;

/// The type of a body in Protocol Buffers.
pub(super) const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
/// The type of a body in JSON.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

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

    /// The response of an export that succeeded. `rejected` is the field of JSON that counts what was rejected.
    pub(super) fn success(self, message: Bytes, rejected: &'static str) -> Response {
        match self {
            Self::Json => response(StatusCode::OK, JSON, json_of(&message, rejected)),
            Self::Protobuf | Self::Other => response(StatusCode::OK, PROTOBUF, message),
        }
    }

    /// The response of a status.
    pub(super) fn failure(self, http: StatusCode, status: &tonic_types::Status) -> Response {
        match self {
            Self::Protobuf => response(http, PROTOBUF, status.encode_to_vec().into()),
            Self::Json => {
                let object = json!({ "code": status.code, "message": status.message });
                response(http, JSON, object.to_string().into())
            }
            Self::Other => plain(http, status.message.clone()),
        }
    }
}

/// The message of an export in JSON. The messages of the three services have the same fields, but for one name.
fn json_of(message: &Bytes, rejected: &'static str) -> Bytes {
    let message = ExportLogsServiceResponse::decode(message.clone()).unwrap_or_default();
    let mut object = Map::new();
    if let Some(partial) = message.partial_success {
        // Numbers of 64 bits are texts.
        let count = partial.rejected_log_records.to_string();
        let partial = json!({ rejected: count, "errorMessage": partial.error_message });
        object.insert("partialSuccess".to_owned(), partial);
    }
    serde_json::Value::Object(object).to_string().into()
}

fn response(status: StatusCode, kind: HeaderValue, body: Bytes) -> Response {
    let mut answer = Response::new(Body::new(http_body_util::Full::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}
