//! Copies within the server: the progress as a stream, which ends with the blob.

use std::{
    collections::HashMap,
    pin::Pin,
    time::{Duration, Instant},
};

use futures::{Stream, StreamExt as _, stream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::UPLOAD_TIME_MAX;
use trestle_proto::blob::v1 as proto;

use super::{
    BlobApi, failed,
    parse::{CopySource, RequestParser, check_digests},
};
use crate::{
    authorize::{BlobAccess, BlobNeed},
    blobs::{BlobKey, BlobState, CopyCommand, FinishedCopy, OpenedCopy, OpenedUrlCopy},
    conditions::Conditions,
    error::BlobError,
    names::{BlobName, ContainerName},
    record::CopyOrigin,
};

/// How often the progress is reported.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Most bytes of the source of a copy that is for small ones. Azure.
const SMALL_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Responses of a copy.
pub(super) type CopyResponses =
    Pin<Box<dyn Stream<Item = Result<proto::CopyBlobResponse, Status>> + Send>>;

/// A copy that is permitted, of either kind of source.
enum CopyInProgress {
    Within(Box<OpenedCopy>),
    FromUrl(Box<OpenedUrlCopy>),
}

/// What the client states of the content of the source.
struct StatedDigests {
    finish: proto::UploadFinish,
    md5: Option<[u8; 16]>,
}

impl StatedDigests {
    /// None where nothing is stated, so that nothing is computed.
    fn of(finish: Option<proto::UploadFinish>) -> Result<Option<Self>, Fault> {
        let stated = finish.filter(|finish| *finish != proto::UploadFinish::default());
        let stated = stated.map(|finish| {
            let mut parser = RequestParser::default();
            let md5 = parser.md5(&finish.md5, "source_checksums.md5");
            parser.finish(Some(Self { finish, md5 }))
        });
        stated.transpose()
    }
}

impl CopyInProgress {
    fn target(&self) -> &BlobKey {
        match self {
            Self::Within(copy) => copy.target(),
            Self::FromUrl(copy) => copy.target(),
        }
    }

    /// Length of the source, in bytes; 0 where it is not stated.
    fn size(&self) -> u64 {
        match self {
            Self::Within(copy) => copy.size(),
            Self::FromUrl(copy) => copy.size().unwrap_or_default(),
        }
    }

    async fn run(self, report: impl FnMut(u64) + Send) -> Result<FinishedCopy, BlobError> {
        match self {
            Self::Within(copy) => copy.run(report).await,
            Self::FromUrl(copy) => copy.run(report).await,
        }
    }
}

impl BlobApi {
    /// Checks a copy, which takes place with the responses.
    pub(super) async fn copy(
        &self,
        access: BlobAccess,
        request: proto::CopyBlobRequest,
    ) -> Result<CopyResponses, Fault> {
        let mut parser = RequestParser::of(&access);
        let names = parser.names(request.container, request.blob);
        let from = (request.source, request.source_url.as_str());
        let source = parser.copy_source(from, (&self.copy_hosts, access.account()));
        let is_elsewhere = matches!(source, Some(CopySource::Url(_)));
        let stated = request.source_conditions.as_ref().filter(|_| is_elsewhere);
        let source_headers = parser.condition_headers(stated);
        let source_required = parser.source_conditions(request.source_conditions, is_elsewhere);
        let (mut conditions, lease_id) = parser.blob_conditions(request.conditions);
        let has_metadata = !request.metadata.is_empty();
        let metadata = parser.metadata(request.metadata, "metadata");
        let tags = parser.tags(request.tags, "tags");
        if request.copy_source_tags {
            parser.use_tags();
            let rule = "must be false where there are tags, or where another server is the source";
            if is_elsewhere || !tags.is_empty() {
                parser.push(Reason::InvalidInput, "copy_source_tags", rule);
            }
        }
        let properties = request.properties.map(|stated| parser.properties(Some(stated)));
        let text = parser.copy_source_text(request.source_text);
        let tier = parser.tier(request.access_tier);
        let (names, source) = parser.finish(names.zip(source))?;
        let target = self.key_to_create(&access, &names, &mut conditions).await?;
        let id = uuid::Builder::from_random_bytes((self.random)().to_be_bytes()).into_uuid();
        let origin = CopyOrigin { id, source: text.unwrap_or_else(|| source.to_string()) };
        let command = CopyCommand {
            retention: self.retention(&access).await?,
            metadata: (has_metadata || request.is_write).then_some(metadata),
            tags: (!request.copy_source_tags).then_some(tags),
            conditions,
            lease_id,
            tier,
            is_sealed: request.is_sealed,
            properties,
            block_bytes_max: request.is_small_block_blob.then_some(SMALL_BYTES_MAX),
            origin: (!request.is_write).then_some(origin),
        };
        let stated = StatedDigests::of(request.source_checksums)?;
        let copy = match source {
            CopySource::Blob(source) => {
                let readable = access.to_source(BlobNeed::Read)?;
                let source_key = self.key(&readable, &source.names).await?;
                if request.copy_source_tags {
                    self.key(&access.to_source(BlobNeed::Tags)?, &source.names).await?;
                }
                let (conditions, lease_id) = &source_required;
                let source = (source_key, source.state);
                let copy = self.blobs.open_copy(source, (conditions, *lease_id), target, command);
                CopyInProgress::Within(Box::new(copy.await?))
            }
            CopySource::Url(uri) => {
                let open = self.servers.open(uri, source_headers);
                let copy = self.blobs.open_url_copy(open, target, command).await?;
                check_stated_properties(&copy)?;
                let copy = if has_metadata || request.is_write {
                    copy
                } else {
                    with_stated_metadata(copy)?
                };
                CopyInProgress::FromUrl(Box::new(copy))
            }
        };
        Ok(self.clone().responses(access, names, (copy, stated)))
    }

    /// The copy takes place while the client reads the responses, and ends when it leaves.
    fn responses(
        self,
        access: BlobAccess,
        names: (ContainerName, BlobName),
        (opened, stated): (CopyInProgress, Option<StatedDigests>),
    ) -> CopyResponses {
        let (sender, receiver) = mpsc::channel(1);
        let total_bytes = opened.size();
        let work = async move {
            let progress = sender.clone();
            let mut reported = Instant::now();
            let report = move |copied_bytes| {
                if reported.elapsed() >= PROGRESS_EVERY {
                    reported = Instant::now();
                    let response =
                        proto::CopyBlobResponse { copied_bytes, total_bytes, blob: None };
                    // One that waits is enough.
                    let _ = progress.try_send(Ok(response));
                }
            };
            let copied = self.copied(&access, &names, (opened, stated), report);
            let copied = tokio::time::timeout(UPLOAD_TIME_MAX, copied).await;
            let copied = copied.unwrap_or(Err(BlobError::Busy.into()));
            let response = copied.map(|blob| proto::CopyBlobResponse {
                copied_bytes: blob.size,
                total_bytes: blob.size,
                blob: Some(blob),
            });
            // Without a receiver the client has left.
            let _ = sender.send(response.map_err(failed)).await;
        };
        let work = stream::once(work).filter_map(|()| std::future::ready(None));
        Box::pin(stream::select(ReceiverStream::new(receiver), work))
    }

    async fn copied(
        &self,
        access: &BlobAccess,
        names: &(ContainerName, BlobName),
        (opened, stated): (CopyInProgress, Option<StatedDigests>),
        report: impl FnMut(u64) + Send,
    ) -> Result<proto::Blob, Fault> {
        let key = opened.target().clone();
        let computed = match (&opened, &stated) {
            (CopyInProgress::Within(copy), Some(_)) => Some(copy.digests().await?),
            _ => None,
        };
        let finished = opened.run(report).await?;
        if let Some((stated, digests)) = stated.zip(computed.or(finished.digests().copied())) {
            check_digests(&digests, &stated.finish, (stated.md5, None))?;
        }
        // The container may have been deleted meanwhile, and even swept.
        self.check_container(access, names, &key).await?;
        Ok(self.show(access, names, finished.publish().await?))
    }

    /// No copy is ever in progress after its call.
    pub(super) async fn abort_copy(
        &self,
        access: &BlobAccess,
        request: proto::AbortCopyBlobRequest,
    ) -> Result<proto::AbortCopyBlobResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let lease_id = parser.lease_id(&request.lease_id, "lease_id");
        let names = parser.finish(names)?;
        let key = self.key(access, &names).await?;
        let required = (&Conditions::default(), lease_id);
        let found = self.blobs.get((&key, BlobState::Current), required).await?;
        let lease = found.record.lease.check_write(lease_id, self.blobs.now());
        lease.map_err(BlobError::BlobLease)?;
        Err(BlobError::NoPendingCopy.into())
    }
}

/// Whether a blob may have the properties that the server of the source states.
fn check_stated_properties(copy: &OpenedUrlCopy) -> Result<(), Fault> {
    let mut parser = RequestParser::default();
    parser.check_properties(copy.stated_properties(), "properties of the source");
    parser.finish(Some(()))
}

/// With the metadata that the server of the source states.
fn with_stated_metadata(copy: OpenedUrlCopy) -> Result<OpenedUrlCopy, Fault> {
    let mut parser = RequestParser::default();
    let stated = copy.stated_metadata();
    let pairs: HashMap<_, _> = stated.iter().cloned().collect();
    if pairs.len() < stated.len() {
        let rule = "must have each name once";
        parser.push(Reason::InvalidMetadata, "metadata of the source", rule);
    }
    let metadata = parser.metadata(pairs, "metadata of the source");
    Ok(copy.with_metadata(parser.finish(Some(metadata))?))
}
