//! Requests of OTLP that are no call: their responses are statuses, in the type of the request where there is one.

use http::{HeaderMap, StatusCode};
use tonic::Code;
use trestle_model::fault::{Fault, Reason};
use trestle_rpc::{layer::Response, layer::short_circuit::with_outcome};

use super::body_type::BodyType;
use crate::plain_answer::with_allowed;

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
        text: "OTLP over HTTP needs a body of the type application/x-protobuf or application/json",
    };
    /// Another encoding of a body.
    pub(super) const ENCODING: Self = Self {
        status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
        code: Code::InvalidArgument,
        reason: Reason::InvalidHeaderValue,
        text: "OTLP over HTTP needs a body that is not compressed, or with gzip, deflate or zstd",
    };

    /// The response to a request with these headers.
    pub(crate) fn response(self, headers: &HeaderMap) -> Response {
        let Self { status, code, reason, text } = self;
        let (code, message) = (code.into(), text.to_owned());
        let message = tonic_types::Status { code, message, details: Vec::new() };
        let answer = BodyType::of(headers).failure(status, &message);
        with_outcome(with_allowed(answer), Err(Fault::new(reason, text)))
    }
}
