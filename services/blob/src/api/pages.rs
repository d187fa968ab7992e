//! The calls on page blobs.

use tonic::Status;
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::PAGES_BYTES_MAX;
use trestle_model::page;
use trestle_model::time::Ticks;
use trestle_proto::blob::v1 as proto;
use trestle_rpc::upstream::in_process::RequestMessages;

use super::{
    BlobApi, failed,
    parse::{RequestParser, StatedSource, sequence_conditions},
    upload::{Uploader, first, in_time, of_spec},
};
use crate::{
    authorize::BlobAccess,
    blobs::{NewContent, PutCommand},
    conditions::Freshness,
    containers::position,
    error::BlobError,
    pages::{PAGE_BYTES, PageCommand, PageRange, PageRangesRequest, SequenceConditions},
    record::BlobKind,
    upload::{PublishedBy, SmallContent, Upload, Uploaded},
};

impl BlobApi {
    pub(super) async fn new_page_blob(
        &self,
        access: &BlobAccess,
        request: proto::CreatePageBlobRequest,
    ) -> Result<proto::CreatePageBlobResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let (mut conditions, lease_id) = parser.blob_conditions(request.conditions);
        let properties = parser.properties(request.properties);
        let metadata = parser.metadata(request.metadata, "metadata");
        let tags = parser.tags(request.tags, "tags");
        let tier = parser.tier_of(request.access_tier, BlobKind::Page);
        let size = parser.page_blob_size(request.size);
        let sequence_number = parser.sequence_number(request.sequence_number, "sequence_number");
        let names = parser.finish(names)?;
        let key = self.key_to_create(access, &names, &mut conditions).await?;
        let retention = self.retention(access).await?;
        let origin = None;
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
        let record = self.blobs.put(
            key,
            command,
            NewContent::Pages { size, sequence_number, copied: None },
            PublishedBy::NEVER_LATE,
        );
        let blob = Some(self.show(access, &names, record.await?));
        Ok(proto::CreatePageBlobResponse { blob })
    }

    pub(super) async fn put_pages(
        &self,
        access: &BlobAccess,
        mut messages: RequestMessages<proto::WritePagesRequest>,
        uploader: &Uploader,
    ) -> Result<proto::WritePagesResponse, Status> {
        let (spec, first) = first::<_, proto::WritePagesSpec>(&mut messages).await?;
        uploader.recorder.record(|statistics| statistics.set_container(&spec.container));
        let mut parser = RequestParser::of(access);
        let names = parser.names(spec.container, spec.blob);
        let (conditions, lease_id) = parser.blob_conditions(spec.conditions);
        let offset = parser.pages(spec.offset, "offset");
        let stated = StatedSource {
            blob: spec.source,
            url: spec.source_url,
            range: spec.source_range,
            conditions: spec.source_conditions,
        };
        let source = parser.data_source(stated, (&self.copy_hosts, access.account()));
        let names = parser.finish(names).map_err(of_spec)?;
        let blob = self.key(access, &names).await.map_err(failed)?;
        let sequence = sequence_conditions(spec.sequence_conditions);
        let command = PageCommand { blob, conditions, lease_id, sequence };
        if first.finish.is_none() || source.is_some() {
            // What would be rejected is rejected before its data is sent.
            self.blobs.check_pages(&command).await.map_err(of_spec)?;
        }
        let with_md5 = first.finish.as_ref().is_none_or(|finish| !finish.md5.is_empty());
        let upload = Upload::new(&uploader.blobs, SmallContent::Memory, with_md5);
        let data = (first, &mut messages);
        let received = self.receive_from((access, source), upload, data, PAGES_BYTES_MAX);
        let Uploaded { digests, content, .. } = Box::pin(in_time(received)).await?;
        if digests.size == 0 || !digests.size.is_multiple_of(PAGE_BYTES) {
            let rule =
                format!("must be whole pages of {PAGE_BYTES} bytes: bytes=`{}`", digests.size);
            return Err(failed(Fault::violation(Reason::InvalidPageRange, "data", rule)));
        }
        let NewContent::Inline(row) = content else {
            return Err(failed(BlobError::corrupt("pages in memory")));
        };
        // The row begins with its checksum.
        let record = self.blobs.write_pages(command, offset, row.slice(8..)).await;
        let blob = Some(self.show_changed(access, &names, record.map_err(of_spec)?));
        Ok(proto::WritePagesResponse { blob, crc64: digests.crc64 })
    }

    pub(super) async fn clear(
        &self,
        access: &BlobAccess,
        request: proto::ClearPagesRequest,
    ) -> Result<proto::ClearPagesResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let (conditions, lease_id) = parser.blob_conditions(request.conditions);
        let offset = parser.pages(request.offset, "offset");
        let length = parser.pages_length(request.length, "length");
        let names = parser.finish(names)?;
        let blob = self.key(access, &names).await?;
        let sequence = sequence_conditions(request.sequence_conditions);
        let command = PageCommand { blob, conditions, lease_id, sequence };
        let range = offset..offset.saturating_add(length);
        let record = self.blobs.clear_pages(command, range).await?;
        Ok(proto::ClearPagesResponse { blob: Some(self.show_changed(access, &names, record)) })
    }

    pub(super) async fn update_pages(
        &self,
        access: &BlobAccess,
        request: proto::UpdatePageBlobRequest,
    ) -> Result<proto::UpdatePageBlobResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let (conditions, lease_id) = parser.blob_conditions(request.conditions);
        let update = parser.page_update(request.size, request.sequence_number);
        let names = parser.finish(names)?;
        let blob = self.key(access, &names).await?;
        let sequence = SequenceConditions::default();
        let command = PageCommand { blob, conditions, lease_id, sequence };
        let record = self.blobs.update_pages(command, update).await?;
        Ok(proto::UpdatePageBlobResponse { blob: Some(self.show_changed(access, &names, record)) })
    }

    pub(super) async fn page_ranges(
        &self,
        access: &BlobAccess,
        request: proto::ListPageRangesRequest,
    ) -> Result<proto::ListPageRangesResponse, Fault> {
        let access = &access.to_state(&request.snapshot, &request.version_id);
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let state = parser.state(&request.snapshot, &request.version_id);
        let since = parser.past(&request.previous_snapshot, "previous_snapshot");
        let stated =
            request.range.map_or([u64::MAX; 2], |it| [it.offset, it.length.unwrap_or(u64::MAX)]);
        let range = parser.range(request.range, "range");
        let (conditions, lease_id) = parser.blob_conditions(request.conditions);
        let ranges_max = parser.ranges_max(request.page_size);
        let names = parser.finish(names)?;
        let key = self.key(access, &names).await?;
        let opened = self.blobs.open_pages((&key, state), range, (&conditions, lease_id)).await?;
        let (found, mut chunks, bytes) = opened;
        if found.freshness == Freshness::NotModified {
            let blob = Some(self.show_state(access, &names, found.state, found.record));
            let not_modified = true;
            return Ok(proto::ListPageRangesResponse { blob, not_modified, ..Default::default() });
        }
        let view = chunks.view();
        if let Some(previous) = since {
            self.blobs.check_previous(&key, view, previous).await?;
        }
        let [offset, length] = stated;
        let numbers = [view.generation, since.map_or(0, Ticks::get), offset, length];
        let numbers = numbers.map(u64::to_be_bytes);
        let identity = page::request_identity(&[b"page ranges", &numbers.concat()]);
        let first = match request.page_token.as_str() {
            "" => bytes.start,
            token => offset_of(&position(token, identity)?)?,
        };
        let bytes = (first.max(bytes.start), bytes.end);
        let ranges = PageRangesRequest { since, bytes, ranges_max };
        let list = self.blobs.page_ranges(&mut chunks, ranges).await?;
        let token = list.next.map(|next| page::encode(identity, &next.to_be_bytes()));
        Ok(proto::ListPageRangesResponse {
            blob: Some(self.show_state(access, &names, found.state, found.record)),
            ranges: list.ranges.iter().map(page_range).collect(),
            next_page_token: token.unwrap_or_default(),
            not_modified: false,
        })
    }
}

fn page_range(range: &PageRange) -> proto::PageRange {
    let (offset, length) = (range.bytes.start, range.bytes.end - range.bytes.start);
    proto::PageRange { offset, length, is_cleared: range.is_cleared }
}

/// The offset in a token.
fn offset_of(position: &[u8]) -> Result<u64, Fault> {
    let offset = position.try_into().map(u64::from_be_bytes);
    let reason = Reason::InvalidQueryParameterValue;
    offset.map_err(|_| Fault::violation(reason, "page_token", "is not a token of this call"))
}
