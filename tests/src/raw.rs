//! Calls below the generated client: any method, any bytes.

use bytes::Bytes;
use http::uri::PathAndQuery;
use tonic::{Request, client::Grpc};
use trestle_proto::RawCodec;

use crate::{CallError, World};

impl World {
    /// Sends bytes as the one message of a call to a method, such as `GetTable`.
    pub async fn raw(&self, method: &str, message: Bytes) -> Result<Bytes, CallError> {
        let path = format!("/trestle.table.v1.TableService/{method}");
        let path = PathAndQuery::try_from(path).expect("a path");
        let mut grpc = Grpc::new(self.transport());
        grpc.ready().await.expect("the transport is ready");
        grpc.unary(Request::new(message), path, RawCodec)
            .await
            .map(tonic::Response::into_inner)
            .map_err(|status| CallError::of(&status))
    }
}
