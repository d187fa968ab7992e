//! What makes the protocol of one Azure service: the rest of a front is the same for all.

use http::{HeaderMap, Response};
use tonic::body::Body;

use crate::{
    error::{ErrorResponse, RestError},
    grpc_call::GrpcCall,
    head::Head,
    request_body::RequestBody,
};

/// How requests to a service are signed with a key of the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signing {
    /// As requests to tables are.
    Table,
    /// As requests to queues and blobs are.
    Queue,
}

/// The protocol of a service.
pub(crate) trait Protocol: Clone + Send + Sync + 'static {
    /// What a request asks for, as far as its head says.
    type Operation: Clone + Send + Sync + 'static;

    /// The service as Azure names it in hosts: `table`.
    const SERVICE: &'static str;
    /// What requests are counted under that are no operation: the path of the service that is
    /// called, `/trestle.table.v1.TableService/`.
    const UNKNOWN: &'static str;
    /// How requests are signed.
    const SIGNING: Signing;
    /// What a request asks for.
    ///
    /// # Errors
    /// A path, a method, a parameter or a header that no operation has.
    fn route(&self, head: &Head) -> Result<Self::Operation, RestError>;

    /// What an operation calls.
    fn target(&self, operation: &Self::Operation) -> Target;

    /// How the bodies of an operation travel.
    fn transfer(&self, operation: &Self::Operation) -> Transfer;

    /// Translates the request, makes the call, and translates the response. A body of bounded size
    /// is collected here; one of any size becomes a stream of messages.
    fn perform(
        &self,
        operation: Self::Operation,
        head: &Head,
        body: RequestBody,
        call: GrpcCall,
    ) -> impl Future<Output = Result<Response<Body>, RestError>> + Send;

    /// Writes the failure of a request with these headers in the form of the service; without a
    /// head where it cannot be read.
    fn error_response(
        &self,
        response: &ErrorResponse,
        headers: &HeaderMap,
        head: Option<&Head>,
    ) -> Response<Body>;
}

/// What an operation calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    /// The path of the method: `/trestle.table.v1.TableService/GetEntity`.
    pub(crate) path: &'static str,
    /// Whether the operation changes nothing, so that a read-only replica may answer it; also where
    /// only the body tells.
    pub(crate) reads: bool,
}

/// How the bodies of an operation travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// Most bytes of the body of a request.
    pub(crate) request_bytes_max: u64,
    /// Whether a body of the request or of the response is streamed. Such a request is admitted as
    /// a bulk transfer, and its time limit counts from the last piece that arrived.
    pub(crate) is_streamed: bool,
}

impl Transfer {
    /// Both bodies are messages: each is in memory as a whole.
    pub(crate) const fn collected(request_bytes_max: u64) -> Self {
        Self { request_bytes_max, is_streamed: false }
    }
}
