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
pub(crate) struct BlobProtocol {
    /// Whether the process serves blobs by gRPC.
    pub(crate) is_served: bool,
}

impl RestProtocol for BlobProtocol {
    type Operation = Infallible;

    const SERVICE: &'static str = "blob";
    const UNKNOWN: &'static str = "/trestle.blob.v1.BlobService/";
    const SIGNATURES: &'static ServiceSpec = &BLOB;

    fn unserved(&self) -> Option<Fault> {
        Some(self.by_grpc_only())
    }

    fn route(&self, _: &RequestHead) -> Result<Infallible, RestError> {
        Err(self.by_grpc_only().into())
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

impl BlobProtocol {
    /// Names what would work here: without blobs no command does.
    fn by_grpc_only(&self) -> Fault {
        let message = if self.is_served {
            "blobs are served by gRPC only: use `trestle blob` or trestle.blob.v1.BlobService"
        } else {
            "blobs are served by gRPC only, and not by this server: it has no role blob, and \
             gateway.blob_endpoint is not set"
        };
        Fault::new(Reason::NotImplemented, message)
    }
}
