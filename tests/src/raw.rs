//! Calls below the generated client: any method, any bytes.

use bytes::{Buf as _, BufMut as _, Bytes};
use http::uri::PathAndQuery;
use tonic::{
    Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use crate::{Refusal, World};

impl World {
    /// Sends bytes as the one message of a call to a method, such as `GetTable`.
    pub async fn raw(&self, method: &str, message: Bytes) -> Result<Bytes, Refusal> {
        let path = format!("/trestle.table.v1.TableService/{method}");
        let path = PathAndQuery::try_from(path).expect("a path");
        let mut grpc = Grpc::new(self.transport());
        grpc.ready().await.expect("the transport is ready");
        grpc.unary(Request::new(message), path, BytesCodec)
            .await
            .map(tonic::Response::into_inner)
            .map_err(|status| Refusal::of(&status))
    }
}

/// Passes messages as they are.
struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(source.copy_to_bytes(source.remaining())))
    }
}
