//! Uploads: the data of a blob or a block as a stream of messages.

use bytes::Bytes;
use tonic::Status;
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::{
    BLOB_BYTES_MAX, BLOCK_BYTES_MAX, UPLOAD_MESSAGE_BYTES_MAX, UPLOAD_TIME_MAX,
};
use trestle_proto::blob::v1::{self as proto, UploadFinish};
use trestle_rpc::{call_statistics::StatisticsRecorder, upstream::in_process::RequestMessages};

use super::{
    BlobApi, failed,
    pace::UploadPace,
    parse::{RequestParser, StatedSource, check_digests},
};
use crate::{
    authorize::BlobAccess,
    blobs::{BlobKey, Blobs, NewContent, PutCommand},
    blocks::NewBlock,
    error::BlobError,
    names::{BlobName, ContainerName},
    record::BlobKind,
    upload::{SmallContent, Upload, Uploaded},
};

/// A message of an upload.
pub(super) struct UploadMessage<T> {
    pub(super) spec: Option<T>,
    pub(super) data: Bytes,
    /// Set in the last message.
    pub(super) finish: Option<UploadFinish>,
}

impl From<proto::WriteBlobRequest> for UploadMessage<proto::WriteBlobSpec> {
    fn from(message: proto::WriteBlobRequest) -> Self {
        let proto::WriteBlobRequest { spec, data, finish } = message;
        Self { spec, data, finish }
    }
}

impl From<proto::StageBlockRequest> for UploadMessage<proto::StageBlockSpec> {
    fn from(message: proto::StageBlockRequest) -> Self {
        let proto::StageBlockRequest { spec, data, finish } = message;
        Self { spec, data, finish }
    }
}

impl From<proto::AppendBlockRequest> for UploadMessage<proto::AppendBlockSpec> {
    fn from(message: proto::AppendBlockRequest) -> Self {
        let proto::AppendBlockRequest { spec, data, finish } = message;
        Self { spec, data, finish }
    }
}

impl From<proto::WritePagesRequest> for UploadMessage<proto::WritePagesSpec> {
    fn from(message: proto::WritePagesRequest) -> Self {
        let proto::WritePagesRequest { spec, data, finish } = message;
        Self { spec, data, finish }
    }
}

impl BlobApi {
    pub(super) async fn write(
        &self,
        access: &BlobAccess,
        mut messages: RequestMessages<proto::WriteBlobRequest>,
        uploader: &Uploader,
    ) -> Result<proto::WriteBlobResponse, Status> {
        let (spec, first) = first::<_, proto::WriteBlobSpec>(&mut messages).await?;
        uploader.recorder.record(|statistics| statistics.set_container(&spec.container));
        let mut parser = RequestParser::of(access);
        let names = parser.names(spec.container, spec.blob);
        let (mut conditions, lease_id) = parser.blob_conditions(spec.conditions);
        let mut properties = parser.properties(spec.properties);
        let metadata = parser.metadata(spec.metadata, "metadata");
        let tags = parser.tags(spec.tags, "tags");
        let tier = parser.tier_of(spec.access_tier, BlobKind::Block);
        let names = parser.finish(names).map_err(of_spec)?;
        let key = self.key_to_create(access, &names, &mut conditions).await.map_err(failed)?;
        let stated = properties.md5.take();
        let retention = self.retention(access).await.map_err(failed)?;
        let origin = None;
        let mut command = PutCommand {
            properties,
            metadata,
            tags,
            conditions,
            lease_id,
            tier,
            origin,
            retention,
        };
        let is_long = first.finish.is_none();
        if is_long {
            // What would be rejected is rejected before its data is sent.
            self.blobs.check_put((&key, BlobKind::Block), &command).await.map_err(of_spec)?;
        }
        let upload = Upload::new(&uploader.blobs, SmallContent::Inline, true);
        let received = receive(upload, first, &mut messages, BLOB_BYTES_MAX, stated);
        let Uploaded { digests, content, written } = in_time(received).await?;
        command.properties.md5 = digests.md5;
        if is_long {
            // The container may have been deleted meanwhile, and even swept.
            self.check_container(access, &names, &key).await.map_err(failed)?;
        }
        let published =
            written.publish(|publish_by| self.blobs.put(key, command, content, publish_by));
        let record = published.await.map_err(of_spec)?;
        let blob = Some(self.show(access, &names, record));
        Ok(proto::WriteBlobResponse { blob, crc64: digests.crc64 })
    }

    pub(super) async fn stage(
        &self,
        access: &BlobAccess,
        mut messages: RequestMessages<proto::StageBlockRequest>,
        uploader: &Uploader,
    ) -> Result<proto::StageBlockResponse, Status> {
        let (spec, first) = first::<_, proto::StageBlockSpec>(&mut messages).await?;
        uploader.recorder.record(|statistics| statistics.set_container(&spec.container));
        let mut parser = RequestParser::of(access);
        let names = parser.names(spec.container, spec.blob);
        let lease_id = parser.lease_id(&spec.lease_id, "lease_id");
        parser.block_id(&spec.block_id);
        let stated = StatedSource {
            blob: spec.source,
            url: spec.source_url,
            range: spec.source_range,
            conditions: spec.source_conditions,
        };
        let source = parser.data_source(stated, (&self.copy_hosts, access.account()));
        let names = parser.finish(names).map_err(of_spec)?;
        let blob = self.key(access, &names).await.map_err(failed)?;
        let block = NewBlock { blob, id: spec.block_id, lease_id };
        let is_long = first.finish.is_none() || source.is_some();
        if is_long {
            self.blobs.check_stage(&block).await.map_err(of_spec)?;
        }
        let with_md5 = first.finish.as_ref().is_none_or(|finish| !finish.md5.is_empty());
        let upload = Upload::new(&uploader.blobs, SmallContent::Object, with_md5);
        let data = (first, &mut messages);
        let received = self.receive_from((access, source), upload, data, BLOCK_BYTES_MAX);
        let Uploaded { digests, content, written } = in_time(Box::pin(received)).await?;
        let NewContent::Whole(part) = content else {
            let rule = "a block must have at least 1 byte";
            return Err(failed(Fault::violation(Reason::InvalidHeaderValue, "data", rule)));
        };
        if is_long {
            self.check_container(access, &names, &block.blob).await.map_err(failed)?;
        }
        written
            .publish(|publish_by| self.blobs.stage(block, part, publish_by))
            .await
            .map_err(of_spec)?;
        Ok(proto::StageBlockResponse { crc64: digests.crc64 })
    }
}

impl BlobApi {
    /// Whether the blob is still in the container that the upload began in.
    pub(super) async fn check_container(
        &self,
        access: &BlobAccess,
        names: &(ContainerName, BlobName),
        key: &BlobKey,
    ) -> Result<(), BlobError> {
        let found = self.containers.open(access, &names.0, Some(&names.1)).await?;
        let is_same = found.id == key.container;
        if is_same { Ok(()) } else { Err(BlobError::ContainerNotFound(names.0.clone())) }
    }
}

/// What an upload needs beside the service.
pub(super) struct Uploader {
    /// The blobs, with the memory for uploads of the peer.
    pub(super) blobs: Blobs,
    /// Records what is uploaded.
    pub(super) recorder: StatisticsRecorder,
}

/// The spec and the rest of the first message.
pub(super) async fn first<M: Into<UploadMessage<T>>, T>(
    messages: &mut RequestMessages<M>,
) -> Result<(T, UploadMessage<T>), Status> {
    let missing = || invalid("spec", "required in the first message");
    let first = UploadPace::default().next(messages, 0).await?;
    let mut first: UploadMessage<T> = first.ok_or_else(missing)?.into();
    let spec = first.spec.take();
    Ok((spec.ok_or_else(missing)?, first))
}

/// The data of an upload, up to its `finish`, verified against what the client states of it.
pub(super) async fn receive<M: Into<UploadMessage<T>>, T>(
    mut upload: Upload,
    first: UploadMessage<T>,
    messages: &mut RequestMessages<M>,
    bytes_max: u64,
    stated: Option<[u8; 16]>,
) -> Result<Uploaded, Status> {
    let (mut message, mut pace) = (first, UploadPace::default());
    let finish = loop {
        if message.data.len() > UPLOAD_MESSAGE_BYTES_MAX {
            return Err(too_large(UPLOAD_MESSAGE_BYTES_MAX as u64));
        }
        if upload.size().saturating_add(message.data.len() as u64) > bytes_max {
            return Err(too_large(bytes_max));
        }
        if !message.data.is_empty() {
            upload.push(message.data).await.map_err(failed)?;
        }
        if let Some(finish) = message.finish {
            break finish;
        }
        let ended = || invalid("finish", "required in the last message");
        message = pace.next(messages, upload.size()).await?.ok_or_else(ended)?.into();
        if message.spec.is_some() {
            return Err(invalid("spec", "must be in the first message only"));
        }
    };
    end(messages).await?;
    finished(upload, &finish, stated).await
}

/// That the client sends no more: data behind the end would be lost.
pub(super) async fn end<M>(messages: &mut RequestMessages<M>) -> Result<(), Status> {
    match UploadPace::default().next(messages, 0).await? {
        None => Ok(()),
        Some(_) => Err(invalid("finish", "must be in the last message only")),
    }
}

/// The MD5 that the client states, if it does.
pub(super) fn check_finish(finish: &UploadFinish) -> Result<Option<[u8; 16]>, Status> {
    let mut parser = RequestParser::default();
    let md5 = parser.md5(&finish.md5, "finish.md5");
    parser.finish(Some(md5)).map_err(failed)
}

/// The data of an upload, verified against what the client states of it.
pub(super) async fn finished(
    upload: Upload,
    finish: &UploadFinish,
    stated: Option<[u8; 16]>,
) -> Result<Uploaded, Status> {
    let md5 = check_finish(finish)?;
    let uploaded = upload.finish().await.map_err(failed)?;
    check_digests(&uploaded.digests, finish, (md5, stated)).map_err(failed)?;
    Ok(uploaded)
}

pub(super) async fn in_time(
    received: impl Future<Output = Result<Uploaded, Status>>,
) -> Result<Uploaded, Status> {
    let late = |_| failed(BlobError::Busy);
    tokio::time::timeout(UPLOAD_TIME_MAX, received).await.map_err(late)?
}

/// The error of what the spec of an upload states.
pub(super) fn of_spec(error: impl Into<Fault>) -> Status {
    failed(error.into().below("spec"))
}

pub(super) fn invalid(field: &str, rule: &str) -> Status {
    failed(Fault::violation(Reason::InvalidInput, field, rule))
}

pub(super) fn too_large(max: u64) -> Status {
    let rule = format!("must have at most {max} bytes");
    failed(Fault::violation(Reason::RequestBodyTooLarge, "data", rule))
}
