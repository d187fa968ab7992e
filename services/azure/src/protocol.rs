//! The protocol of one Azure service: the rest of the HTTP edge is the same for all.

use http::{HeaderMap, Response};
use tonic::body::Body;
use trestle_identity::spec::ServiceSpec;

use crate::{
    error::{ErrorResponse, RestError},
    grpc_call::GrpcCall,
    head::RequestHead,
    request_body::RequestBody,
};

/// The protocol of a service.
pub(crate) trait RestProtocol: Clone + Send + Sync + 'static {
    /// The operation of a request, as determined from its head.
    type Operation: Clone + Send + Sync + 'static;

    /// The service as Azure names it in hosts: `table`.
    const SERVICE: &'static str;
    /// The label of requests without a valid operation: the path of the called service,
    /// `/trestle.table.v1.TableService/`.
    const UNKNOWN: &'static str;
    /// The specification of its signatures.
    const SIGNATURES: &'static ServiceSpec;

    /// The operation of a request.
    ///
    /// # Errors
    /// An invalid path, method, parameter or header.
    fn route(&self, head: &RequestHead) -> Result<Self::Operation, RestError>;

    /// The target of an operation.
    fn target(&self, operation: &Self::Operation) -> Target;

    /// The body transfer of an operation.
    fn transfer(&self, operation: &Self::Operation) -> BodyTransfer;

    /// Translates the request, makes the call, and translates the response. A body of bounded size
    /// is collected; one of any size becomes a stream of messages.
    fn perform(
        &self,
        operation: Self::Operation,
        head: &RequestHead,
        body: RequestBody,
        call: GrpcCall,
    ) -> impl Future<Output = Result<Response<Body>, RestError>> + Send;

    /// Writes the error of a request with these headers in the form of the service; without a head
    /// if that is invalid.
    fn error_response(
        &self,
        response: &ErrorResponse,
        headers: &HeaderMap,
        head: Option<&RequestHead>,
    ) -> Response<Body>;
}

/// The target of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    /// The path of the method: `/trestle.table.v1.TableService/GetEntity`.
    pub(crate) path: &'static str,
    /// Whether the operation only reads, so that a read-only replica may serve it; also if only the
    /// body determines that.
    pub(crate) reads: bool,
}

/// The body transfer of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BodyTransfer {
    /// Most bytes of the body of a request.
    pub(crate) request_bytes_max: u64,
    /// Whether a body of the request or of the response is streamed. Such a request is admitted as
    /// a bulk transfer, and its time limit counts from the last piece that arrived.
    pub(crate) is_streamed: bool,
}

impl BodyTransfer {
    /// Both bodies are messages: each is in memory as a whole.
    pub(crate) const fn collected(request_bytes_max: u64) -> Self {
        Self { request_bytes_max, is_streamed: false }
    }
}
