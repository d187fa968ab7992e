//! Calls on encoded messages: requests are encoded by the caller before, and responses decoded by
//! it after.

use bytes::Bytes;
use futures::Stream;
use tonic::{Request, Status, Streaming, client::Grpc};
use trestle_proto::RawCodec;

use crate::client::Link;

/// Largest answer that is accepted.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A method of the table service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RpcMethod(&'static str);

impl RpcMethod {
    pub(crate) const GET_ENTITY: Self = Self("/trestle.table.v1.TableService/GetEntity");
    pub(crate) const INSERT_ENTITY: Self = Self("/trestle.table.v1.TableService/InsertEntity");
    pub(crate) const UPSERT_ENTITY: Self = Self("/trestle.table.v1.TableService/UpsertEntity");
    pub(crate) const EXECUTE_BATCH: Self = Self("/trestle.table.v1.TableService/ExecuteBatch");
    pub(crate) const QUERY_ENTITIES: Self = Self("/trestle.table.v1.TableService/QueryEntities");
    pub(crate) const STREAM_ENTITIES: Self = Self("/trestle.table.v1.TableService/StreamEntities");
    pub(crate) const IMPORT_ENTITIES: Self = Self("/trestle.table.v1.TableService/ImportEntities");
}

/// A client of encoded messages over one connection.
#[derive(Debug, Clone)]
pub(crate) struct RawClient(Grpc<Link>);

impl RawClient {
    pub(crate) fn new(link: Link) -> Self {
        Self(Grpc::new(link).max_decoding_message_size(ANSWER_BYTES_MAX))
    }

    /// One request, one answer.
    pub(crate) async fn unary(
        &mut self,
        method: RpcMethod,
        request: Request<Bytes>,
    ) -> Result<Bytes, Status> {
        self.ready().await?;
        let path = http::uri::PathAndQuery::from_static(method.0);
        Ok(self.0.unary(request, path, RawCodec).await?.into_inner())
    }

    /// One request, a stream of answers.
    pub(crate) async fn server_stream(
        &mut self,
        method: RpcMethod,
        request: Bytes,
    ) -> Result<Streaming<Bytes>, Status> {
        self.ready().await?;
        let path = http::uri::PathAndQuery::from_static(method.0);
        Ok(self.0.server_streaming(Request::new(request), path, RawCodec).await?.into_inner())
    }

    /// A stream of requests, a stream of answers.
    pub(crate) async fn both_stream(
        &mut self,
        method: RpcMethod,
        requests: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Result<Streaming<Bytes>, Status> {
        self.ready().await?;
        let path = http::uri::PathAndQuery::from_static(method.0);
        Ok(self.0.streaming(Request::new(requests), path, RawCodec).await?.into_inner())
    }

    async fn ready(&mut self) -> Result<(), Status> {
        // The channel itself is always ready unless its connection cannot be made.
        self.0.ready().await.map_err(|error| Status::from_error(Box::new(error)))
    }
}
