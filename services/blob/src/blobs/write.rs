//! Writing a blob with its content: the decision, and the change that publishes it.

#[cfg(test)]
mod tests;

use std::{collections::HashSet, time::Duration};

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Lock, Version, Writes, transact};
use trestle_model::time::Ticks;
use uuid::Uuid;

use super::{BlobKey, Blobs, decode_record, replace::ReplacedRows};
use crate::{
    checksum::Crc64,
    conditions::{Conditions, WriteKind},
    error::BlobError,
    etag::ETag,
    keys::{self, BlobRow},
    lease::{LeaseError, ResourceLease},
    pages::CopiedPages,
    record::{
        AppendContent, BlobCopy, BlobHistory, BlobKind, BlobRecord, Content, ContentProperties,
        CopyOrigin, Metadata, PageContent, Part, Retention, Retired, StoredBlock,
    },
    stored::Stored as _,
    tags::{self, Tags},
    tier::{AssignedTier, Tier},
    upload::PublishedBy,
};

/// How long contents are used that were reserved before they are published; shorter than any grace period.
///
/// The sweeper reads the row of a reservation in a change that is at least as late as its grace period ends. So a
/// change after that one finds the reservation too old, and one before it has removed the row.
const RESERVED_FOR: Duration = Duration::from_secs(30);

/// What a write of content sets beside the content, and when it takes place.
#[derive(Debug, Clone, Default)]
pub(crate) struct PutCommand {
    /// The HTTP properties.
    pub(crate) properties: ContentProperties,
    /// The metadata.
    pub(crate) metadata: Metadata,
    /// The conditions.
    pub(crate) conditions: Conditions,
    /// The id of the lease of the client.
    pub(crate) lease_id: Option<Uuid>,
    /// The tags.
    pub(crate) tags: Tags,
    /// The access tier; none: that of the state before.
    pub(crate) tier: Option<Tier>,
    /// The copy that the content is of.
    pub(crate) origin: Option<CopyOrigin>,
    /// What is kept of the state before.
    pub(crate) retention: Retention,
}

/// Content that was uploaded.
#[derive(Debug, Clone)]
pub(crate) enum NewContent {
    /// Small content, as its row: a checksum and the bytes.
    Inline(Bytes),
    /// Content in objects.
    Whole(Part),
    /// A list of blocks that no other blob has.
    Blocks(NewBlocks),
    /// An append blob, which is empty.
    Append,
    /// An append blob that was copied.
    Appended {
        /// Its bytes.
        bytes: Box<NewContent>,
        /// How many blocks it has.
        blocks: u64,
        /// Whether it is sealed.
        is_sealed: bool,
    },
    /// A page blob, without data unless it was copied.
    Pages {
        /// Length, in bytes: whole pages.
        size: u64,
        /// The first sequence number.
        sequence_number: u64,
        /// Its pages.
        copied: Option<CopiedPages>,
    },
}

/// Blocks that were copied.
#[derive(Debug, Clone)]
pub(crate) struct NewBlocks {
    /// The list.
    list: Vec<StoredBlock>,
    /// When their contents were marked as live, if they were.
    pub(super) reserved: Vec<Ticks>,
}

impl NewBlocks {
    /// A list of which no content is marked as live.
    pub(super) fn new(list: Vec<StoredBlock>) -> Self {
        Self { list, reserved: Vec::new() }
    }

    /// Their contents, each once.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut found = HashSet::new();
        let parts = self.list.iter().map(|block| block.part);
        parts.filter(|part| found.insert(part.content)).collect()
    }

    fn size(&self) -> u64 {
        self.list.iter().fold(0, |size, block| size.saturating_add(block.part.size))
    }
}

impl NewContent {
    /// Small content from its pieces.
    pub(crate) fn inline(pieces: &[Bytes]) -> Self {
        let size: usize = pieces.iter().map(Bytes::len).sum();
        let mut crc = Crc64::new();
        pieces.iter().for_each(|piece| crc.update(piece));
        let mut row = Vec::with_capacity(8 + size);
        row.extend_from_slice(&crc.value().to_le_bytes());
        pieces.iter().for_each(|piece| row.extend_from_slice(piece));
        Self::Inline(row.into())
    }

    /// The contents to mark as live in the change that publishes them.
    fn parts(&self) -> Vec<Part> {
        match self {
            Self::Whole(part) => vec![*part],
            Self::Blocks(blocks) if blocks.reserved.is_empty() => blocks.parts(),
            Self::Appended { bytes, .. } => bytes.parts(),
            _ => Vec::new(),
        }
    }

    /// Writes the rows of the content, in place of those of the current one.
    fn write(
        &self,
        blob: &BlobKey,
        (current, put): (Option<&BlobRecord>, &BlobRecord),
        version: Version,
        writes: &mut Writes,
    ) {
        let inline = blob.row(BlobRow::Inline, &[]);
        match self {
            Self::Inline(row) => {
                writes.put(inline, row.clone());
            }
            Self::Whole(_) | Self::Blocks(_) => remove_inline(current, inline, writes),
            Self::Pages { .. } => {}
            Self::Append => blob.forget_compaction(current, writes),
            Self::Appended { bytes, .. } => {
                blob.forget_compaction(current, writes);
                blob.put_piece(bytes, &put.content, writes);
            }
        }
        if let Self::Blocks(blocks) = self {
            let number = version.ticks().get();
            writes.put(blob.row(BlobRow::BlockList, &[number]), blocks.list.encode());
        }
        for part in self.parts() {
            writes.put(keys::live(part.content), keys::encode_number(part.size));
        }
    }

    fn reserved(&self) -> &[Ticks] {
        match self {
            Self::Blocks(blocks) => &blocks.reserved,
            Self::Pages { copied: Some(copied), .. } => std::slice::from_ref(&copied.reserved),
            _ => &[],
        }
    }

    fn content(&self, version: Version) -> Content {
        match self {
            Self::Blocks(blocks) => {
                Content::Blocks { list: version.ticks().get(), size: blocks.size() }
            }
            Self::Inline(row) => Content::Inline { size: row.len().saturating_sub(8) as u64 },
            Self::Whole(part) => Content::Whole(*part),
            Self::Append => Content::Append(AppendContent::new(version.ticks().get())),
            Self::Appended { bytes, blocks, is_sealed } => {
                let generation = version.ticks().get();
                let size = bytes.content(version).size();
                let (row_bytes, compacted_to) = match **bytes {
                    Self::Inline(_) => (size, 0),
                    _ => (0, size),
                };
                let (blocks, is_sealed) = (*blocks, *is_sealed);
                let content =
                    AppendContent { generation, size, blocks, is_sealed, compacted_to, row_bytes };
                Content::Append(content)
            }
            Self::Pages { size, sequence_number, copied } => {
                let (size, sequence_number) = (*size, *sequence_number);
                let generation = copied.map_or(version.ticks().get(), |it| it.generation);
                Content::Pages(PageContent { generation, size, sequence_number })
            }
        }
    }
}

/// The record after a write of content, from the current one.
///
/// # Errors
/// A lease, a condition or a tier that does not permit it.
pub(crate) fn decide_put(
    current: Option<&BlobRecord>,
    command: &PutCommand,
    content: Content,
    version: Version,
) -> Result<BlobRecord, BlobError> {
    let now = version.ticks();
    let lease = match (current, command.lease_id) {
        (Some(current), id) => current.lease.check_write(id, now),
        (None, Some(_)) => Err(LeaseError::NotPresent),
        (None, None) => Ok(ResourceLease::Absent),
    };
    let lease = lease.map_err(BlobError::BlobLease)?;
    command.conditions.check_write(current, WriteKind::Content)?;
    current.map_or(Ok(()), BlobRecord::check_online)?;
    let mut tier = current.and_then(|current| current.tier);
    if let Some(new) = command.tier {
        new.check_kind(content.kind())?;
        tier = Some(AssignedTier::set(tier, new, now));
    }
    let size = Some(content.size());
    let copy = |origin| BlobCopy { origin, completed_at: now, size };
    Ok(BlobRecord {
        etag: ETag(now),
        created_at: now,
        properties: command.properties.clone(),
        metadata: command.metadata.clone(),
        lease,
        content,
        tier,
        copy: command.origin.clone().map(copy),
        deletion: None,
        tags: command.tags.clone(),
        version: command.retention.versions.then_some(now),
        history: BlobHistory {
            snapshots: current.map_or(0, |current| current.history.snapshots),
            // A list of blocks may have blocks that the blob had before.
            newest_shared: match content {
                Content::Blocks { .. } => current.and_then(|it| it.history.newest_shared),
                _ => None,
            },
        },
    })
}

impl Blobs {
    /// Whether a write of content would take place now: to reject it before its data is sent.
    ///
    /// # Errors
    /// As [`decide_put`], or a failed read.
    pub(crate) async fn check_put(
        &self,
        (blob, kind): (&BlobKey, BlobKind),
        command: &PutCommand,
    ) -> Result<(), BlobError> {
        let value = self.engine.get(&blob.row(BlobRow::Record, &[])).await?;
        let current = decode_record(value.as_ref())?;
        let (version, empty) = (Version::new(self.now()), Content::empty(kind));
        decide_put(current.as_ref(), command, empty, version)?;
        blob.check_kind(current.as_ref(), kind, false)
    }

    /// Publishes uploaded content as a blob, in time, in place of what the blob had and of its staged blocks.
    ///
    /// # Errors
    /// As [`decide_put`], or a failed commit.
    pub(crate) async fn put(
        &self,
        blob: BlobKey,
        command: PutCommand,
        new: NewContent,
        publish_by: PublishedBy,
    ) -> Result<BlobRecord, BlobError> {
        let mut spec = ChangeSpec::new(blob.domain());
        let rows = ReplacedRows::new(&blob, &mut spec, command.retention);
        for part in new.parts() {
            spec.also(keys::own_domain(&keys::live(part.content)), Lock::Exclusive);
        }
        let reserved = new.reserved().iter();
        let reserved: Vec<_> =
            reserved.map(|at| (*at, spec.read(blob.row(BlobRow::Retired, &[at.get()])))).collect();
        transact(&*self.engine, spec, move |reads, version| {
            publish_by.check(version)?;
            let replaced = rows.get(reads)?;
            let current = replaced.current.as_ref();
            let put = decide_put(current, &command, new.content(version), version)?;
            blob.check_kind(current, put.content.kind(), replaced.staging.is_some())?;
            let (mut writes, mut retired) = (Writes::new(), Retired::default());
            let kept = replaced.keep(&blob, (command.retention, version), &mut writes)?;
            writes.put(reads.key(rows.record).clone(), put.encode());
            tags::reindex(&blob, tags::indexed(current), &put.tags, &mut writes);
            new.write(&blob, (current, &put), version, &mut writes);
            for (at, row) in &reserved {
                check_reserved(reads.get(*row), *at, version)?;
                writes.delete(reads.key(*row).clone());
            }
            if replaced.staging.is_some() {
                writes.delete(reads.key(rows.staging).clone());
            }
            let left = current.filter(|_| kept.is_none());
            if let Some(current) = left {
                retired.content(&current.content);
            }
            retired.staging(replaced.staging.as_ref());
            blob.retire(&retired, left.is_some_and(BlobRecord::is_shared), version, &mut writes);
            Ok::<_, BlobError>((writes, put))
        })
        .await?
    }
}

/// Whether contents that were reserved at a time may still be used by a change of this version: the sweeper may be
/// reclaiming what was reserved long ago.
///
/// # Errors
/// [`BlobError::Busy`].
pub(crate) fn check_reserved(
    row: Option<&Bytes>,
    at: Ticks,
    version: Version,
) -> Result<(), BlobError> {
    let is_usable = row.is_some() && version.ticks().since(at) <= RESERVED_FOR;
    if is_usable { Ok(()) } else { Err(BlobError::Busy) }
}

/// Removes the row of small content, if the blob has one.
pub(crate) fn remove_inline(current: Option<&BlobRecord>, key: Bytes, writes: &mut Writes) {
    if current.is_some_and(|it| matches!(it.content, Content::Inline { .. })) {
        writes.delete(key);
    }
}
