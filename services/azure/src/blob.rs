//! The port of blobs, which are served by gRPC only: every request is answered with an error that
//! reports it. Without it a client of Azure Storage reports that no server is running.

use std::convert::Infallible;

use http::{HeaderMap, Response};
use tonic::body::Body;
use trestle_identity::spec::{BLOB, ServiceSpec};
use trestle_service::fault::{Fault, Reason};

use crate::{
    error::{ErrorResponse, RestError, document},
    grpc_call::GrpcCall,
    head::RequestHead,
    protocol::{BodyTransfer, RestProtocol, Target},
    request_body::RequestBody,
};

/// See the module.
#[derive(Clone)]
pub(crate) struct BlobProtocol;

impl RestProtocol for BlobProtocol {
    type Operation = Infallible;

    const SERVICE: &'static str = "blob";
    const UNKNOWN: &'static str = "/trestle.blob.v1.BlobService/";
    const SIGNATURES: &'static ServiceSpec = &BLOB;

    fn unserved() -> Option<Fault> {
        Some(by_grpc_only())
    }

    fn route(&self, _: &RequestHead) -> Result<Infallible, RestError> {
        Err(by_grpc_only().into())
    }

    fn target(&self, operation: &Infallible) -> Target {
        match *operation {}
    }

    fn transfer(&self, operation: &Infallible) -> BodyTransfer {
        match *operation {}
    }

    async fn perform(
        &self,
        operation: Infallible,
        _: &RequestHead,
        _: RequestBody,
        _: GrpcCall,
    ) -> Result<Response<Body>, RestError> {
        match operation {}
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

fn by_grpc_only() -> Fault {
    let message =
        "blobs are served by gRPC only: use `trestle blob` or trestle.blob.v1.BlobService";
    Fault::new(Reason::NotImplemented, message)
}
