//! The protocol of queues: XML in and out.
//!
//! `route` determines the operation of a request, with its parameters; `queues`, `messages` and
//! `account` make its call and write the response; `explain` adds the details to an error that only
//! REST reports.

mod account;
mod explain;

mod messages;

mod operation;
mod queues;
mod route;

use http::{HeaderMap, Response};
use tonic::body::Body;
use trestle_identity::{
    credentials::Identity,
    spec::{QUEUE, ServiceSpec},
};

use self::operation::QueueOperation;
use crate::{
    error::{ErrorResponse, RestError, document},
    grpc_call::GrpcCall,
    head::RequestHead,
    protocol::{BodyTransfer, RestProtocol, Target},
    request_body::RequestBody,
};

/// Most bytes of a request, as Azure has it.
const BODY_BYTES_MAX: u64 = 131_584;

/// See the module.
#[derive(Clone)]
pub(crate) struct QueueProtocol {
    /// For user delegation keys, and for the last sync time of the secondary, whose copy is the primary itself.
    identity: Identity,
}

impl QueueProtocol {
    /// Creates the protocol, with the accounts and the wall clock of `identity`.
    pub(crate) fn new(identity: Identity) -> Self {
        Self { identity }
    }
}

impl RestProtocol for QueueProtocol {
    type Operation = QueueOperation;

    const SERVICE: &'static str = "queue";
    const UNKNOWN: &'static str = "/trestle.queue.v1.QueueService/";
    const SIGNATURES: &'static ServiceSpec = &QUEUE;

    fn route(&self, head: &RequestHead) -> Result<QueueOperation, RestError> {
        route::route(head)
    }

    fn target(&self, operation: &QueueOperation) -> Target {
        operation.target()
    }

    fn transfer(&self, _: &QueueOperation) -> BodyTransfer {
        BodyTransfer::collected(BODY_BYTES_MAX)
    }

    async fn perform(
        &self,
        operation: QueueOperation,
        head: &RequestHead,
        body: RequestBody,
        call: GrpcCall,
    ) -> Result<Response<Body>, RestError> {
        let body = body.collect().await?;
        let performed = match operation {
            QueueOperation::Account(operation) => {
                account::perform(operation, head, &body, call, &self.identity).await
            }
            QueueOperation::Queue(queue, operation) => {
                queues::perform(queue, operation, head, &body, call).await
            }
            QueueOperation::Messages(queue, operation) => {
                messages::perform(queue, operation, &body, call).await
            }
        };
        performed.map_err(|error| explain::explain(error, &head.params))
    }

    fn error_response(
        &self,
        response: &ErrorResponse,
        _: &HeaderMap,
        _: Option<&RequestHead>,
    ) -> Response<Body> {
        document(response)
    }
}
