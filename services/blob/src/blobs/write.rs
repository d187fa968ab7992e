//! Writing a blob with its content: the decision, and the change that publishes it.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Lock, Version, Writes, transact};
use trestle_service::clock::Ticks;
use uuid::Uuid;

use super::{BlobKey, Blobs, decode_record};
use crate::{
    checksum::Crc64,
    conditions::{Conditions, WriteKind},
    error::BlobError,
    etag::ETag,
    keys::{self, BlobRow},
    lease::{LeaseError, ResourceLease},
    record::{
        AppendContent, BlobKind, BlobRecord, Content, ContentProperties, Metadata, PageContent,
        Part, Retired, Staging,
    },
    stored::Stored as _,
};

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
}

/// Content that was uploaded.
#[derive(Debug, Clone)]
pub(crate) enum NewContent {
    /// Small content, as its row: a checksum and the bytes.
    Inline(Bytes),
    /// Content in objects.
    Whole(Part),
    /// An append blob, which is empty.
    Append,
    /// A page blob without data.
    Pages {
        /// Length, in bytes: whole pages.
        size: u64,
        /// The first sequence number.
        sequence_number: u64,
    },
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

    fn content(&self, version: Version) -> Content {
        match self {
            Self::Inline(row) => Content::Inline { size: row.len().saturating_sub(8) as u64 },
            Self::Whole(part) => Content::Whole(*part),
            Self::Append => Content::Append(AppendContent::new(version.ticks().get())),
            Self::Pages { size, sequence_number } => {
                let (size, sequence_number) = (*size, *sequence_number);
                let generation = version.ticks().get();
                Content::Pages(PageContent { generation, size, sequence_number })
            }
        }
    }
}

/// The record after a write of content, from the current one.
///
/// # Errors
/// A lease or a condition that does not permit it.
pub(crate) fn decide_put(
    current: Option<&BlobRecord>,
    command: &PutCommand,
    content: Content,
    version: Version,
    now: Ticks,
) -> Result<BlobRecord, BlobError> {
    let lease = match (current, command.lease_id) {
        (Some(current), id) => current.lease.check_write(id, now),
        (None, Some(_)) => Err(LeaseError::NotPresent),
        (None, None) => Ok(ResourceLease::Absent),
    };
    let lease = lease.map_err(BlobError::BlobLease)?;
    let etag = current.map(|current| current.etag);
    command.conditions.check_write(etag, WriteKind::Content)?;
    Ok(BlobRecord {
        etag: ETag(version.ticks()),
        created_at: version.ticks(),
        properties: command.properties.clone(),
        metadata: command.metadata.clone(),
        lease,
        content,
    })
}

impl Blobs {
    /// Whether a write of content would take place now: to reject it before its data is sent.
    ///
    /// # Errors
    /// As [`decide_put`], or a failed read.
    pub(crate) async fn check_put(
        &self,
        blob: &BlobKey,
        command: &PutCommand,
    ) -> Result<(), BlobError> {
        let value = self.engine.get(&blob.row(BlobRow::Record, &[])).await?;
        let current = decode_record(value.as_ref())?;
        let (now, empty) = (self.now(), Content::Inline { size: 0 });
        decide_put(current.as_ref(), command, empty, Version::new(now), now)?;
        blob.check_kind(current.as_ref(), BlobKind::Block, false)
    }

    /// Publishes uploaded content as a blob, in place of what the blob had and of its staged blocks.
    ///
    /// # Errors
    /// As [`decide_put`], or a failed commit.
    pub(crate) async fn put(
        &self,
        blob: BlobKey,
        command: PutCommand,
        new: NewContent,
    ) -> Result<BlobRecord, BlobError> {
        let mut spec = ChangeSpec::new(blob.domain());
        let record = spec.read(blob.row(BlobRow::Record, &[]));
        let staging = spec.read(blob.row(BlobRow::Staging, &[]));
        if let NewContent::Whole(part) = &new {
            spec.also(keys::own_domain(&keys::live(part.content)), Lock::Exclusive);
        }
        let now = self.now();
        transact(&*self.engine, spec, move |reads, version| {
            let current = decode_record(reads.get(record))?;
            let staged = reads.get(staging).map(|value| Staging::decode(value)).transpose()?;
            let put = decide_put(current.as_ref(), &command, new.content(version), version, now)?;
            blob.check_kind(current.as_ref(), put.content.kind(), staged.is_some())?;
            let (mut writes, mut retired) = (Writes::new(), Retired::default());
            writes.put(reads.key(record).clone(), put.encode());
            let inline = blob.row(BlobRow::Inline, &[]);
            match &new {
                NewContent::Inline(row) => {
                    writes.put(inline, row.clone());
                }
                NewContent::Whole(part) => {
                    writes.put(keys::live(part.content), keys::encode_number(part.size));
                    remove_inline(current.as_ref(), inline, &mut writes);
                }
                NewContent::Append => blob.forget_compaction(current.as_ref(), &mut writes),
                NewContent::Pages { .. } => {}
            }
            if staged.is_some() {
                writes.delete(reads.key(staging).clone());
            }
            if let Some(current) = &current {
                retired.content(&current.content);
            }
            retired.staging(staged.as_ref());
            blob.retire(&retired, version, &mut writes);
            Ok::<_, BlobError>((writes, put))
        })
        .await?
    }
}

/// Removes the row of small content, if the blob has one.
pub(crate) fn remove_inline(current: Option<&BlobRecord>, key: Bytes, writes: &mut Writes) {
    if current.is_some_and(|it| matches!(it.content, Content::Inline { .. })) {
        writes.delete(key);
    }
}
