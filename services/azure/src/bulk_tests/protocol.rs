//! A protocol that streams bodies both ways.

use futures::TryStreamExt as _;
use http::{HeaderMap, Method, Response, StatusCode};
use tonic::body::Body;
use trestle_identity::spec::{QUEUE, ServiceSpec};
use trestle_model::fault::{Fault, Reason};

use super::service::{Chunk, READ, ReadRequest, WRITE, Written};
use crate::{
    error::{ErrorResponse, RestError},
    grpc_call::GrpcCall,
    head::RequestHead,
    protocol::{BodyTransfer, RestProtocol, Target},
    reply,
    request_body::RequestBody,
    streaming,
};

/// See the module.
#[derive(Clone)]
pub(super) struct Bulk;

#[derive(Debug, Clone, Copy)]
pub(super) enum BulkOperation {
    /// `PUT`: the body becomes messages.
    Write,
    /// `GET`: messages become the body.
    Read,
}

impl RestProtocol for Bulk {
    type Operation = BulkOperation;

    const SERVICE: &'static str = "blob";
    const UNKNOWN: &'static str = "/trestle.test.v1.Bulk/";
    const SIGNATURES: &'static ServiceSpec = &QUEUE;

    fn route(&self, head: &RequestHead) -> Result<BulkOperation, RestError> {
        match head.method {
            Method::PUT => Ok(BulkOperation::Write),
            Method::GET => Ok(BulkOperation::Read),
            _ => Err(Fault::new(Reason::UnsupportedHttpVerb, "neither PUT nor GET").into()),
        }
    }

    fn target(&self, operation: &BulkOperation) -> Target {
        match operation {
            BulkOperation::Write => Target { path: WRITE, reads: false },
            BulkOperation::Read => Target { path: READ, reads: true },
        }
    }

    fn transfer(&self, _: &BulkOperation) -> BodyTransfer {
        BodyTransfer { request_bytes_max: 1 << 30, is_streamed: true }
    }

    async fn perform(
        &self,
        operation: BulkOperation,
        _: &RequestHead,
        body: RequestBody,
        call: GrpcCall,
    ) -> Result<Response<Body>, RestError> {
        match operation {
            BulkOperation::Write => {
                let chunks = body.pieces()?.map_ok(|data| Chunk { data });
                let written: Written = call.client_streaming(WRITE, chunks).await?;
                let mut response = reply::empty(StatusCode::CREATED);
                response.headers_mut().insert("x-size", written.size.into());
                Ok(response)
            }
            BulkOperation::Read => {
                let chunks = call.server_streaming::<_, Chunk>(READ, ReadRequest {}).await?;
                let pieces = chunks.map_ok(|chunk| chunk.data);
                Ok(streaming::streamed(StatusCode::OK, None, pieces))
            }
        }
    }

    fn error_response(
        &self,
        error: &ErrorResponse,
        _: &HeaderMap,
        _: Option<&RequestHead>,
    ) -> Response<Body> {
        reply::whole(StatusCode::OK, "text/plain", error.code.clone())
    }
}
