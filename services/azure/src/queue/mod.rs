//! The protocol of queues.

use bytes::Bytes;
use http::{Response, StatusCode};
use tonic::body::Body;
use trestle_service::fault::{Fault, Reason, quoted};

use crate::{
    call::Upcall,
    failure::{Failure, Refusal},
    head::Head,
    protocol::{Protocol, Signing, Target},
    reply,
};

/// Most bytes of a request, as Azure has it.
const BODY_BYTES_MAX: usize = 131_584;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queue;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {}

impl Protocol for Queue {
    type Operation = Operation;

    const SERVICE: &'static str = "queue";
    const UNKNOWN: &'static str = "/trestle.queue.v1.QueueService/";
    const SIGNING: Signing = Signing::Queue;
    const BODY_BYTES_MAX: usize = BODY_BYTES_MAX;

    fn route(&self, head: &Head) -> Result<Operation, Refusal> {
        let message = format!("not an operation of queues: path=`{}`", quoted(&head.path));
        Err(Fault::new(Reason::NotImplemented, message).into())
    }

    fn target(&self, operation: &Operation) -> Target {
        match *operation {}
    }

    async fn perform(
        &self,
        operation: Operation,
        _: &Head,
        _: Bytes,
        _: Upcall,
    ) -> Result<Response<Body>, Refusal> {
        match operation {}
    }

    fn failure(&self, _: &Failure, _: Option<&Head>) -> Response<Body> {
        reply::empty(StatusCode::OK)
    }
}
