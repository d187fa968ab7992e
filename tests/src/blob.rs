//! The verbs on the blobs of one container.

use bytes::Bytes;
use trestle_proto::blob::v1::{
    self as proto, AcquireLease, Blob, BlobConditions, BlockRef, UploadFinish,
    blob_service_client::BlobServiceClient, lease_blob_request::Action, listed_blob::Item,
};

use crate::{CallError, Transport, World};

/// A container of a world.
#[derive(Debug, Clone)]
pub struct Container {
    client: BlobServiceClient<Transport>,
    name: String,
}

/// The content of a blob, with the first message of the read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadContent {
    /// The blob.
    pub blob: Blob,
    /// The bytes.
    pub data: Bytes,
    /// The range of them, where one was requested.
    pub range: Option<proto::ByteRange>,
    /// Whether there is no content, because the client has it.
    pub not_modified: bool,
    /// How many messages it came in.
    pub messages: usize,
}

/// Conditions that require this etag.
pub fn if_match(etag: &str) -> Option<BlobConditions> {
    Some(BlobConditions { if_match: vec![etag.to_owned()], ..Default::default() })
}

/// Conditions that require another etag than this one.
pub fn if_none_match(etag: &str) -> Option<BlobConditions> {
    Some(BlobConditions { if_none_match: vec![etag.to_owned()], ..Default::default() })
}

impl World {
    /// A client of blobs.
    pub fn blobs(&self) -> BlobServiceClient<Transport> {
        BlobServiceClient::new(self.transport())
    }

    /// A new container.
    pub async fn container(&self, name: &str) -> Container {
        let container = self.existing_container(name);
        container.create().await.expect("the container is created");
        container
    }

    /// A container that may exist or not.
    pub fn existing_container(&self, name: &str) -> Container {
        Container::new(self.blobs(), name)
    }
}

impl Container {
    /// A container over a client.
    pub fn new(client: BlobServiceClient<Transport>, name: &str) -> Self {
        Self { client, name: name.to_owned() }
    }

    /// Creates the container.
    pub async fn create(&self) -> Result<(), CallError> {
        let container = Some(proto::Container { name: self.name(), ..Default::default() });
        let request = proto::CreateContainerRequest { container };
        Ok(self.client().create_container(request).await.map(drop)?)
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// A client.
    pub fn client(&self) -> BlobServiceClient<Transport> {
        self.client.clone()
    }

    /// What writes a blob.
    pub fn spec(&self, blob: &str) -> proto::WriteBlobSpec {
        let (container, blob) = (self.name(), blob.to_owned());
        proto::WriteBlobSpec { container, blob, ..Default::default() }
    }

    /// Writes a blob with one message.
    pub async fn write(&self, blob: &str, data: impl Into<Bytes>) -> Result<Blob, CallError> {
        self.write_with(self.spec(blob), data).await
    }

    /// Writes a blob with one message.
    pub async fn write_with(
        &self,
        spec: proto::WriteBlobSpec,
        data: impl Into<Bytes>,
    ) -> Result<Blob, CallError> {
        let finish = Some(UploadFinish::default());
        let message = proto::WriteBlobRequest { spec: Some(spec), data: data.into(), finish };
        self.send(vec![message]).await.map(|response| response.blob.expect("a blob"))
    }

    /// Writes a blob with these messages.
    pub async fn send(
        &self,
        messages: Vec<proto::WriteBlobRequest>,
    ) -> Result<proto::WriteBlobResponse, CallError> {
        Ok(self.client().write_blob(tokio_stream::iter(messages)).await?.into_inner())
    }

    /// The content of a blob.
    pub async fn read(&self, blob: &str) -> Result<ReadContent, CallError> {
        self.read_with(self.reading(blob)).await
    }

    /// What reads a blob.
    pub fn reading(&self, blob: &str) -> proto::ReadBlobRequest {
        let (container, blob) = (self.name(), blob.to_owned());
        proto::ReadBlobRequest { container, blob, ..Default::default() }
    }

    /// The content of a blob.
    pub async fn read_with(
        &self,
        request: proto::ReadBlobRequest,
    ) -> Result<ReadContent, CallError> {
        let mut messages = self.client().read_blob(request).await?.into_inner();
        let first = messages.message().await?.expect("a first message");
        let (mut data, mut count) = (first.data.to_vec(), 1);
        while let Some(message) = messages.message().await? {
            data.extend_from_slice(&message.data);
            count += 1;
        }
        Ok(ReadContent {
            blob: first.blob.expect("a blob"),
            data: data.into(),
            range: first.range,
            not_modified: first.not_modified,
            messages: count,
        })
    }

    /// A blob without its content.
    pub async fn get(&self, blob: &str) -> Result<Blob, CallError> {
        let (container, blob) = (self.name(), blob.to_owned());
        let request = proto::GetBlobRequest { container, blob, ..Default::default() };
        let response = self.client().get_blob(request).await?.into_inner();
        Ok(response.blob.expect("a blob"))
    }

    /// Deletes a blob.
    pub async fn delete(&self, blob: &str) -> Result<(), CallError> {
        let (container, blob) = (self.name(), blob.to_owned());
        let request = proto::DeleteBlobRequest { container, blob, ..Default::default() };
        Ok(self.client().delete_blob(request).await.map(drop)?)
    }

    /// What deletes a blob.
    pub fn deleting(&self, blob: &str) -> proto::DeleteBlobRequest {
        let (container, blob) = (self.name(), blob.to_owned());
        proto::DeleteBlobRequest { container, blob, ..Default::default() }
    }

    /// Deletes blobs; the outcome of each.
    pub async fn delete_all(
        &self,
        requests: Vec<proto::DeleteBlobRequest>,
    ) -> Result<Vec<Result<(), CallError>>, CallError> {
        let request = proto::DeleteBlobsRequest { requests };
        let response = self.client().delete_blobs(request).await?.into_inner();
        let outcome = |result: proto::DeleteBlobResult| match result.error {
            None => Ok(()),
            Some(error) => Err(CallError::of_item(&error)),
        };
        Ok(response.results.into_iter().map(outcome).collect())
    }

    /// Takes a snapshot of a blob.
    pub async fn snapshot(&self, blob: &str) -> Result<Blob, CallError> {
        let (container, blob) = (self.name(), blob.to_owned());
        let request = proto::SnapshotBlobRequest { container, blob, ..Default::default() };
        let response = self.client().snapshot_blob(request).await?.into_inner();
        Ok(response.snapshot.expect("a snapshot"))
    }

    /// What copies a blob of this container to another one of it.
    pub fn copying(&self, source: &str, blob: &str) -> proto::CopyBlobRequest {
        let (container, source) = (self.name(), source.to_owned());
        let source = proto::BlobSource { container, blob: source, ..Default::default() };
        proto::CopyBlobRequest {
            container: self.name(),
            blob: blob.to_owned(),
            source: Some(source),
            ..Default::default()
        }
    }

    /// Copies a blob.
    pub async fn copy(&self, request: proto::CopyBlobRequest) -> Result<Blob, CallError> {
        let mut messages = self.client().copy_blob(request).await?.into_inner();
        let mut last = None;
        while let Some(message) = messages.message().await? {
            last = Some(message);
        }
        Ok(last.and_then(|message| message.blob).expect("the last message has the blob"))
    }

    /// Stages a block.
    pub async fn stage(
        &self,
        blob: &str,
        id: &'static str,
        data: impl Into<Bytes>,
    ) -> Result<u64, CallError> {
        let spec = Some(proto::StageBlockSpec {
            container: self.name(),
            blob: blob.to_owned(),
            block_id: Bytes::from_static(id.as_bytes()),
            ..Default::default()
        });
        let finish = Some(UploadFinish::default());
        let message = proto::StageBlockRequest { spec, data: data.into(), finish };
        Ok(self.client().stage_block(tokio_stream::iter([message])).await?.into_inner().crc64)
    }

    /// Makes blocks the content of a blob.
    pub async fn commit(&self, blob: &str, ids: &[&'static str]) -> Result<Blob, CallError> {
        let block = |id: &&'static str| BlockRef {
            id: Bytes::from_static(id.as_bytes()),
            ..Default::default()
        };
        let request = proto::CommitBlocksRequest {
            container: self.name(),
            blob: blob.to_owned(),
            blocks: ids.iter().map(block).collect(),
            ..Default::default()
        };
        let response = self.client().commit_blocks(request).await?.into_inner();
        Ok(response.blob.expect("a blob"))
    }

    /// Acquires an infinite lease on a blob, and returns its id.
    pub async fn acquire_lease(&self, blob: &str) -> Result<String, CallError> {
        let request = proto::LeaseBlobRequest {
            container: self.name(),
            blob: blob.to_owned(),
            action: Some(Action::Acquire(AcquireLease::default())),
            ..Default::default()
        };
        Ok(self.client().lease_blob(request).await?.into_inner().lease_id)
    }

    /// Creates an append blob.
    pub async fn create_append(&self, blob: &str) -> Result<Blob, CallError> {
        let (container, blob) = (self.name(), blob.to_owned());
        let request = proto::CreateAppendBlobRequest { container, blob, ..Default::default() };
        let response = self.client().create_append_blob(request).await?.into_inner();
        Ok(response.blob.expect("a blob"))
    }

    /// Creates a page blob.
    pub async fn create_pages(&self, blob: &str, size: u64) -> Result<Blob, CallError> {
        let (container, blob) = (self.name(), blob.to_owned());
        let request = proto::CreatePageBlobRequest { container, blob, size, ..Default::default() };
        let response = self.client().create_page_blob(request).await?.into_inner();
        Ok(response.blob.expect("a blob"))
    }

    /// What appends to a blob.
    pub fn appending(&self, blob: &str) -> proto::AppendBlockSpec {
        let (container, blob) = (self.name(), blob.to_owned());
        proto::AppendBlockSpec { container, blob, ..Default::default() }
    }

    /// Appends with one message.
    pub async fn append(
        &self,
        spec: proto::AppendBlockSpec,
        data: impl Into<Bytes>,
    ) -> Result<proto::AppendBlockResponse, CallError> {
        let finish = Some(UploadFinish::default());
        let message = proto::AppendBlockRequest { spec: Some(spec), data: data.into(), finish };
        Ok(self.client().append_block(tokio_stream::iter([message])).await?.into_inner())
    }

    /// The names of blobs, and groups of them in brackets.
    pub async fn list(&self, prefix: &str, delimiter: &str) -> Result<Vec<String>, CallError> {
        let request = proto::ListBlobsRequest {
            container: self.name(),
            prefix: prefix.to_owned(),
            delimiter: delimiter.to_owned(),
            ..Default::default()
        };
        let items = self.client().list_blobs(request).await?.into_inner().items;
        let name = |item: proto::ListedBlob| match item.item.expect("an item") {
            Item::Blob(blob) => blob.name,
            Item::Prefix(prefix) => format!("[{prefix}]"),
        };
        Ok(items.into_iter().map(name).collect())
    }

    /// Deletes the container.
    pub async fn drop_container(&self) -> Result<(), CallError> {
        let (container, conditions) = (self.name(), None);
        let request = proto::DeleteContainerRequest { container, conditions };
        Ok(self.client().delete_container(request).await.map(drop)?)
    }
}
