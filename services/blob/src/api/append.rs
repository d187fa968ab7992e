//! The calls on append blobs.

use tonic::Status;
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::APPEND_BYTES_MAX;
use trestle_proto::blob::v1 as proto;
use trestle_rpc::upstream::in_process::RequestMessages;

use super::{
    BlobApi, failed,
    parse::{RequestParser, StatedSource},
    upload::{Uploader, first, in_time, of_spec},
};
use crate::{
    append::{AppendCommand, Appended},
    authorize::BlobAccess,
    blobs::{NewContent, PutCommand},
    upload::{PublishedBy, SmallContent, Upload, Uploaded},
};

impl BlobApi {
    pub(super) async fn new_append_blob(
        &self,
        access: &BlobAccess,
        request: proto::CreateAppendBlobRequest,
    ) -> Result<proto::CreateAppendBlobResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let (mut conditions, lease_id) = parser.blob_conditions(request.conditions);
        let properties = parser.properties(request.properties);
        let metadata = parser.metadata(request.metadata, "metadata");
        let tags = parser.tags(request.tags, "tags");
        let names = parser.finish(names)?;
        let key = self.key_to_create(access, &names, &mut conditions).await?;
        let retention = self.retention(access).await?;
        let (tier, origin) = (None, None);
        let command = PutCommand {
            properties,
            metadata,
            tags,
            conditions,
            lease_id,
            tier,
            origin,
            retention,
        };
        let record =
            self.blobs.put(key, command, NewContent::Append, PublishedBy::NEVER_LATE).await?;
        Ok(proto::CreateAppendBlobResponse { blob: Some(self.show(access, &names, record)) })
    }

    pub(super) async fn append(
        &self,
        access: &BlobAccess,
        mut messages: RequestMessages<proto::AppendBlockRequest>,
        uploader: &Uploader,
    ) -> Result<proto::AppendBlockResponse, Status> {
        let (spec, first) = first::<_, proto::AppendBlockSpec>(&mut messages).await?;
        uploader.recorder.record(|statistics| statistics.set_container(&spec.container));
        let mut parser = RequestParser::of(access);
        let names = parser.names(spec.container, spec.blob);
        let (conditions, lease_id) = parser.blob_conditions(spec.conditions);
        let stated = StatedSource {
            blob: spec.source,
            url: spec.source_url,
            range: spec.source_range,
            conditions: spec.source_conditions,
        };
        let source = parser.data_source(stated, (&self.copy_hosts, access.account()));
        let names = parser.finish(names).map_err(of_spec)?;
        let blob = self.key(access, &names).await.map_err(failed)?;
        let (position, size_max) = (spec.position, spec.size_max);
        let command = AppendCommand { blob, conditions, lease_id, position, size_max };
        let is_long = first.finish.is_none() || source.is_some();
        if is_long {
            // What would be rejected is rejected before its data is sent.
            self.blobs.check_append(&command).await.map_err(of_spec)?;
        }
        let with_md5 = first.finish.as_ref().is_none_or(|finish| !finish.md5.is_empty());
        let upload = Upload::new(&uploader.blobs, SmallContent::Inline, with_md5);
        let data = (first, &mut messages);
        let received = self.receive_from((access, source), upload, data, APPEND_BYTES_MAX);
        let Uploaded { digests, content, written } = Box::pin(in_time(received)).await?;
        if digests.size == 0 {
            let rule = "must have at least 1 byte";
            return Err(failed(Fault::violation(Reason::InvalidHeaderValue, "data", rule)));
        }
        if is_long {
            self.check_container(access, &names, &command.blob).await.map_err(failed)?;
        }
        let appended =
            written.publish(|publish_by| self.blobs.append(command, content, publish_by)).await;
        let Appended { record, offset } = appended.map_err(of_spec)?;
        let blob = Some(self.show_changed(access, &names, record));
        Ok(proto::AppendBlockResponse { blob, offset, crc64: digests.crc64 })
    }

    pub(super) async fn seal(
        &self,
        access: &BlobAccess,
        request: proto::SealBlobRequest,
    ) -> Result<proto::SealBlobResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let (conditions, lease_id) = parser.blob_conditions(request.conditions);
        let names = parser.finish(names)?;
        let blob = self.key(access, &names).await?;
        let (position, size_max) = (request.position, None);
        let command = AppendCommand { blob, conditions, lease_id, position, size_max };
        let record = self.blobs.seal(command).await?;
        Ok(proto::SealBlobResponse { blob: Some(self.show_changed(access, &names, record)) })
    }
}
