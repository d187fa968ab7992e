//! Copying a blob within the server. A copy has bytes of its own, and the block list of its source.

mod from_url;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use bytes::Bytes;
use futures::{Stream, TryStreamExt as _};
use trestle_kv::{ChangeSpec, Lock, Writes, transact};
use trestle_model::time::Ticks;
use uuid::Uuid;

pub(crate) use self::from_url::OpenedUrlCopy;
use super::{
    BlobKey, Blobs, NewContent, PutCommand, StateName,
    read::{ContentSource, OpenedBlob},
    write::NewBlocks,
};
use crate::{
    blocks::BlockList,
    checksum::{Digests, UploadDigest},
    conditions::{ConditionError, Conditions, Freshness},
    error::BlobError,
    keys::{self, BlobRow},
    pages::PinnedChunks,
    record::{
        BlobKind, BlobRecord, Content, ContentId, ContentProperties, CopyOrigin, Metadata,
        PageContent, Part, Retention, Retired, StoredBlock,
    },
    stored::Stored as _,
    tags::Tags,
    tier::Tier,
    upload::{PublishedBy, SmallContent, Upload, Uploaded, WrittenObjects},
};

/// Contents that one change publishes; more are recorded as retired before, so that a crash leaves none behind.
const PARTS_AT_ONCE: usize = 900;

/// What a copy sets beside the content of its source, and when it takes place.
#[derive(Debug, Clone)]
pub(crate) struct CopyCommand {
    /// The metadata; absent: that of the source, within the account.
    pub(crate) metadata: Option<Metadata>,
    /// The tags; none: those of the source, within the account.
    pub(crate) tags: Option<Tags>,
    /// The conditions of the blob that is written.
    pub(crate) conditions: Conditions,
    /// The id of its lease.
    pub(crate) lease_id: Option<Uuid>,
    /// The access tier; none: that of the blob that is overwritten.
    pub(crate) tier: Option<Tier>,
    /// Whether it is sealed; of an append blob only.
    pub(crate) is_sealed: bool,
    /// The HTTP properties; none: those of the source.
    pub(crate) properties: Option<ContentProperties>,
    /// Most bytes of the content, which then must be that of a block blob.
    pub(crate) block_bytes_max: Option<u64>,
    /// Names the copy and its source; none: the blob is a block blob that is written, and does not record a copy.
    pub(crate) origin: Option<CopyOrigin>,
    /// What is kept of the state before.
    pub(crate) retention: Retention,
}

/// A copy whose source is open and whose write was permitted when it began.
pub(crate) struct OpenedCopy {
    blobs: Blobs,
    source: OpenedBlob,
    target: BlobKey,
    command: PutCommand,
    is_sealed: bool,
}

impl Blobs {
    /// Opens a source by its conditions, and checks whether the copy may be written.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`] and [`BlobError::SourceUnmet`] of the source; those of a write of the target.
    pub(crate) async fn open_copy(
        &self,
        (source, name): (BlobKey, impl Into<StateName>),
        (conditions, lease_id): (&Conditions, Option<Uuid>),
        target: BlobKey,
        command: CopyCommand,
    ) -> Result<OpenedCopy, BlobError> {
        let opened = self.open_even_archived((source, name), None, (conditions, lease_id)).await;
        let source = opened.map_err(of_source)?;
        if command.tier.is_none_or(|tier| tier == Tier::Archive) {
            source.record.check_online()?;
        }
        if source.freshness == Freshness::NotModified {
            return Err(BlobError::SourceUnmet(conditions.not_modified(source.record.etag)));
        }
        let CopyCommand { is_sealed, metadata, tags, conditions, lease_id, tier, origin, .. } =
            command;
        let block_bytes_max = command.block_bytes_max;
        let kind = source.record.content.kind();
        let is_block = kind == BlobKind::Block;
        let needs_block = origin.is_none() || block_bytes_max.is_some();
        if (is_sealed && kind != BlobKind::Append) || (needs_block && !is_block) {
            return Err(BlobError::OtherKind(target.name));
        }
        check_size(Some(source.record.content.size()), block_bytes_max)?;
        let command = PutCommand {
            properties: command.properties.unwrap_or_else(|| source.record.properties.clone()),
            metadata: metadata.unwrap_or_else(|| source.record.metadata.clone()),
            tags: tags.unwrap_or_else(|| source.record.tags.clone()),
            conditions,
            lease_id,
            tier,
            origin,
            retention: command.retention,
        };
        self.check_put((&target, kind), &command).await?;
        Ok(OpenedCopy { blobs: self.clone(), source, target, command, is_sealed })
    }
}

/// Whether a source has at most this many bytes, as far as its length is stated.
fn check_size(size: Option<u64>, bytes_max: Option<u64>) -> Result<(), BlobError> {
    match size.zip(bytes_max).filter(|(size, bytes_max)| size > bytes_max) {
        None => Ok(()),
        Some((size, bytes_max)) => {
            let what = format!("it has more than {bytes_max} bytes: size=`{size}`");
            Err(BlobError::CopySource(what))
        }
    }
}

impl OpenedCopy {
    /// Length of the content, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.source.record.content.size()
    }

    /// The blob that is written.
    pub(crate) fn target(&self) -> &BlobKey {
        &self.target
    }

    /// Reads the content once, for its checksums.
    ///
    /// # Errors
    /// As [`OpenedCopy::run`].
    pub(crate) async fn digests(&self) -> Result<Digests, BlobError> {
        let mut digest = UploadDigest::new(true);
        let mut pieces = self.blobs.clone().bytes(&self.source);
        while let Some(piece) = pieces.try_next().await.map_err(of_source)? {
            digest.update(&piece);
        }
        Ok(digest.finish())
    }

    /// Copies the content; `progress` gets how many bytes were copied. What is not published is deleted.
    ///
    /// # Errors
    /// [`BlobError::SourceCondition`] where the source was deleted too long ago; those of the object store.
    pub(crate) async fn run(
        self,
        progress: impl FnMut(u64) + Send,
    ) -> Result<FinishedCopy, BlobError> {
        let Self { blobs, source, target, command, is_sealed } = self;
        let written = WrittenObjects::none(&blobs);
        let copied = Copied { blobs: &blobs, is_sealed, written, progress, bytes: 0 };
        let (content, written) = copied.content(&source, &target).await.map_err(of_source)?;
        Ok(FinishedCopy { blobs, target, command, content, written, digests: None })
    }
}

/// Content that was copied and is not published.
pub(crate) struct FinishedCopy {
    blobs: Blobs,
    target: BlobKey,
    command: PutCommand,
    content: NewContent,
    written: WrittenObjects,
    /// Those of content that another server sent.
    digests: Option<Digests>,
}

impl FinishedCopy {
    /// The checksums of content that another server sent.
    pub(crate) fn digests(&self) -> Option<&Digests> {
        self.digests.as_ref()
    }

    /// Publishes the copy.
    ///
    /// # Errors
    /// Those of a write.
    pub(crate) async fn publish(self) -> Result<BlobRecord, BlobError> {
        let Self { blobs, target, command, content, written, .. } = self;
        let publish = async |publish_by| {
            let content = match content {
                NewContent::Blocks(blocks) => {
                    NewContent::Blocks(blobs.reserve_parts(&target, blocks, publish_by).await?)
                }
                content => content,
            };
            blobs.put(target, command, content, publish_by).await
        };
        written.publish(publish).await
    }
}

/// A condition or a range of a read is one of the source.
pub(crate) fn of_source(error: BlobError) -> BlobError {
    match error {
        BlobError::Condition(ConditionError::Unmet(unmet)) => BlobError::SourceUnmet(unmet),
        BlobError::Condition(ConditionError::NotMet) => BlobError::SourceCondition,
        BlobError::PastEnd { size, .. } => BlobError::PastEnd { field: "source_range", size },
        error => error,
    }
}

/// What was copied so far.
struct Copied<'a, P> {
    blobs: &'a Blobs,
    is_sealed: bool,
    written: WrittenObjects,
    progress: P,
    bytes: u64,
}

impl<P: FnMut(u64) + Send> Copied<'_, P> {
    async fn content(
        mut self,
        source: &OpenedBlob,
        target: &BlobKey,
    ) -> Result<(NewContent, WrittenObjects), BlobError> {
        let content = match &source.source {
            ContentSource::Row(bytes) => NewContent::inline(std::slice::from_ref(bytes)),
            ContentSource::Whole(part) => self.part(source, *part, SmallContent::Inline).await?,
            ContentSource::Appended(_) => {
                let Content::Append(appended) = source.record.content else {
                    return Err(BlobError::corrupt("content of an append blob"));
                };
                let pieces = self.blobs.clone().bytes(source);
                let bytes = self.upload(pieces, SmallContent::Inline).await?;
                let (bytes, blocks) = (Box::new(bytes), appended.blocks);
                NewContent::Appended { bytes, blocks, is_sealed: self.is_sealed }
            }
            ContentSource::Paged(chunks) => self.pages(source, chunks, target).await?,
            ContentSource::Blocks(BlockList { blocks, .. }) => {
                let mut copies: HashMap<ContentId, Part> = HashMap::new();
                let mut list = Vec::with_capacity(blocks.len());
                for StoredBlock { id, part } in blocks {
                    let copy = match copies.get(&part.content) {
                        Some(copy) => *copy,
                        None => {
                            let copy = self.part(source, *part, SmallContent::Object).await?;
                            let NewContent::Whole(copy) = copy else {
                                return Err(BlobError::corrupt("block without data"));
                            };
                            *copies.entry(part.content).or_insert(copy)
                        }
                    };
                    // A copy: a slice would keep the whole list of the source in memory.
                    list.push(StoredBlock { id: Bytes::copy_from_slice(id), part: copy });
                }
                NewContent::Blocks(NewBlocks::new(list))
            }
        };
        Ok((content, self.written))
    }

    /// Copies the pages of a page blob as they were when it was opened.
    async fn pages(
        &mut self,
        source: &OpenedBlob,
        chunks: &PinnedChunks,
        target: &BlobKey,
    ) -> Result<NewContent, BlobError> {
        let Content::Pages(PageContent { size, sequence_number, .. }) = source.record.content
        else {
            return Err(BlobError::corrupt("content of a page blob"));
        };
        let (chunks, progress) = (chunks.clone(), &mut self.progress);
        let copied = self.blobs.copy_pages(chunks, size, target, progress).await?;
        Ok(NewContent::Pages { size, sequence_number, copied })
    }

    /// Copies one content.
    async fn part(
        &mut self,
        source: &OpenedBlob,
        part: Part,
        small: SmallContent,
    ) -> Result<NewContent, BlobError> {
        let pieces = self.blobs.clone().pieces(source, vec![part], 0..part.size);
        self.upload(pieces, small).await
    }

    async fn upload(
        &mut self,
        pieces: impl Stream<Item = Result<Bytes, BlobError>> + Send,
        small: SmallContent,
    ) -> Result<NewContent, BlobError> {
        let mut upload = Upload::new(self.blobs, small, false);
        let mut pieces = Box::pin(pieces);
        while let Some(piece) = pieces.try_next().await? {
            self.bytes = self.bytes.saturating_add(piece.len() as u64);
            upload.push(piece).await?;
            (self.progress)(self.bytes);
        }
        let Uploaded { content, written, .. } = upload.finish().await?;
        self.written.merge(written);
        Ok(content)
    }
}

impl Blobs {
    /// Marks the contents of many blocks as live, together with rows that have the sweeper delete them unless the
    /// change that publishes them comes soon. A few are left to that change.
    async fn reserve_parts(
        &self,
        blob: &BlobKey,
        mut blocks: NewBlocks,
        publish_by: PublishedBy,
    ) -> Result<NewBlocks, BlobError> {
        let parts = blocks.parts();
        if parts.len() <= PARTS_AT_ONCE {
            return Ok(blocks);
        }
        for parts in parts.chunks(PARTS_AT_ONCE) {
            let (blob, parts) = (blob.clone(), parts.to_vec());
            let mut spec = ChangeSpec::new(blob.domain());
            for part in &parts {
                spec.also(keys::own_domain(&keys::live(part.content)), Lock::Exclusive);
            }
            let reserved = transact(&*self.engine, spec, move |_, version| {
                publish_by.check(version)?;
                let mut writes = Writes::with_capacity(parts.len() + 1);
                for part in &parts {
                    writes.put(keys::live(part.content), keys::encode_number(part.size));
                }
                let retired = Retired { parts: parts.clone(), ..Retired::default() };
                let at: Ticks = version.ticks();
                writes.put(blob.row(BlobRow::Retired, &[at.get()]), retired.encode());
                Ok::<_, BlobError>((writes, at))
            });
            blocks.reserved.push(reserved.await??);
        }
        Ok(blocks)
    }
}
