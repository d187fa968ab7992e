//! What makes the protocol of one Azure service: the rest of a front is the same for all.

use bytes::Bytes;
use http::{HeaderMap, Response};
use tonic::body::Body;

use crate::{
    call::Upcall,
    failure::{Failure, Refusal},
    head::Head,
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
    /// Most bytes of a body.
    const BODY_BYTES_MAX: usize;

    /// What a request asks for.
    ///
    /// # Errors
    /// A path, a method, a parameter or a header that no operation has.
    fn route(&self, head: &Head) -> Result<Self::Operation, Refusal>;

    /// What an operation calls.
    fn target(&self, operation: &Self::Operation) -> Target;

    /// Translates the body, makes the call, and translates the answer.
    fn perform(
        &self,
        operation: Self::Operation,
        head: &Head,
        body: Bytes,
        upcall: Upcall,
    ) -> impl Future<Output = Result<Response<Body>, Refusal>> + Send;

    /// Writes the failure of a request with these headers in the form of the service; without a
    /// head where it cannot be read.
    fn failure(
        &self,
        failure: &Failure,
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
