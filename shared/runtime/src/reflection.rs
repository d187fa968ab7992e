//! Server reflection: the descriptors of the contract, byte by byte as the compiler wrote them, so
//! that options such as `google.api.field_behavior` remain.
//!
//! Both versions of the protocol have the same messages, so one service serves both. An unknown
//! symbol is an `error_response`, after which the stream continues.

mod answer;
mod index;

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{StreamExt as _, stream::BoxStream};
use http::Uri;
use tonic::{Request, Response, Status, Streaming};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, ServerReflectionResponse,
    server_reflection_server::{ServerReflection, ServerReflectionServer},
};
use tower::Service;
use trestle_model::limits::{REFLECTION_HOST_BYTES_MAX, REFLECTION_MESSAGE_BYTES_MAX};
use trestle_rpc::layer::{self, ResponseFuture};

pub use self::index::DescriptorError;
use self::{
    answer::{answer, too_long},
    index::DescriptorIndex,
};

/// The path of the only method, in the version that the service implements.
const V1: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
/// The same in the older version.
const V1_ALPHA: &str = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

/// The reflection of a set of descriptors, in both versions.
#[derive(Clone)]
pub(crate) struct Reflection(ServerReflectionServer<ReflectionApi>);

impl Reflection {
    /// Of an encoded `FileDescriptorSet`. Services in `absent` are not listed; their descriptors are served.
    ///
    /// # Errors
    /// A malformed descriptor set.
    pub(crate) fn new(descriptors: &[u8], absent: &[&str]) -> Result<Self, DescriptorError> {
        let index = Arc::new(DescriptorIndex::new(descriptors, absent)?);
        let service = ServerReflectionServer::new(ReflectionApi { index });
        Ok(Self(service.max_decoding_message_size(REFLECTION_MESSAGE_BYTES_MAX)))
    }
}

impl Service<layer::Request> for Reflection {
    type Response = layer::Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: layer::Request) -> ResponseFuture {
        if request.uri().path() == V1_ALPHA {
            *request.uri_mut() = Uri::from_static(V1);
        }
        self.0.call(request)
    }
}

#[derive(Clone)]
struct ReflectionApi {
    index: Arc<DescriptorIndex>,
}

#[tonic::async_trait]
impl ServerReflection for ReflectionApi {
    type ServerReflectionInfoStream = BoxStream<'static, Result<ServerReflectionResponse, Status>>;

    async fn server_reflection_info(
        &self,
        request: Request<Streaming<ServerReflectionRequest>>,
    ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
        let index = Arc::clone(&self.index);
        let answers = request.into_inner().map(move |request| Ok(answered(&index, request?)));
        Ok(Response::new(answers.boxed()))
    }
}

/// The response to one request, which it contains. A host that cannot be one is not sent back.
fn answered(index: &DescriptorIndex, request: ServerReflectionRequest) -> ServerReflectionResponse {
    if request.host.len() > REFLECTION_HOST_BYTES_MAX {
        let message_response = Some(too_long("host", REFLECTION_HOST_BYTES_MAX));
        return ServerReflectionResponse { message_response, ..Default::default() };
    }
    let message_response = Some(answer(index, request.message_request.as_ref()));
    let valid_host = request.host.clone();
    ServerReflectionResponse { valid_host, original_request: Some(request), message_response }
}
