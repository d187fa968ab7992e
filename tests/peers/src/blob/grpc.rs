//! Trestle, over gRPC.

use async_trait::async_trait;
use bytes::Bytes;
use tonic::transport::{Channel, Endpoint};
use trestle_proto::blob::v1::{
    ByteRange, Container, CreateContainerRequest, ReadBlobRequest, UploadFinish, WriteBlobRequest,
    WriteBlobSpec, blob_service_client::BlobServiceClient,
};

use super::{CONTAINER, MIB, Store, Target};

/// Data of one message.
const MESSAGE_BYTES: usize = MIB;

/// A connection.
pub(super) struct GrpcStore(BlobServiceClient<Channel>);

impl GrpcStore {
    pub(super) async fn open(port: u16) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"));
        let endpoint = endpoint.expect("an address").tcp_nodelay(true);
        let endpoint = endpoint.initial_stream_window_size(4 << 20);
        let endpoint = endpoint.initial_connection_window_size(4 << 20);
        let channel = endpoint.connect().await.expect("a connection");
        Self(BlobServiceClient::new(channel).max_decoding_message_size(16 << 20))
    }

    /// Creates the container.
    pub(super) async fn create(&mut self) -> Result<(), String> {
        let container = Some(Container { name: CONTAINER.to_owned(), ..Default::default() });
        let created = self.0.create_container(CreateContainerRequest { container }).await;
        created.map(drop).map_err(|status| status.to_string())
    }
}

#[async_trait]
impl Store for GrpcStore {
    async fn put(&mut self, target: &Target, data: &Bytes) {
        let (container, blob) = (CONTAINER.to_owned(), target.name.clone());
        let mut spec = Some(WriteBlobSpec { container, blob, ..Default::default() });
        let (count, data) = (data.len().div_ceil(MESSAGE_BYTES), data.clone());
        let messages = (0..count).map(move |index| {
            let first = index * MESSAGE_BYTES;
            let end = data.len().min(first + MESSAGE_BYTES);
            let finish = (index + 1 == count).then(UploadFinish::default);
            WriteBlobRequest { spec: spec.take(), data: data.slice(first..end), finish }
        });
        let written = self.0.write_blob(futures::stream::iter(messages)).await;
        written.expect("a blob is written");
    }

    async fn get(&mut self, target: &Target) -> usize {
        let range = target.range.map(|(offset, length)| ByteRange {
            offset: offset as u64,
            length: Some(length as u64),
        });
        let (container, blob) = (CONTAINER.to_owned(), target.name.clone());
        let request = ReadBlobRequest { container, blob, range, ..Default::default() };
        let mut parts = self.0.read_blob(request).await.expect("a blob is read").into_inner();
        let mut bytes = 0;
        while let Some(part) = parts.message().await.expect("its parts arrive") {
            bytes += part.data.len();
        }
        bytes
    }
}
