//! Making a list of blocks the content of a blob.

use trestle_kv::{ChangeSpec, Writes, transact};
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::BLOB_BYTES_MAX;

use super::{
    ATTEMPTS_MAX, BlobBlocks, BlockChoice,
    resolve::{Resolved, resolve},
};
use crate::{
    blobs::{BlobKey, Blobs, NewContent, PutCommand, ReplacedRows, decide_put, remove_inline},
    error::BlobError,
    keys::BlobRow,
    record::{BlobKind, BlobRecord, Content, Retired, RetiredStaging, Staging},
    stored::Stored as _,
    tags,
    upload::PublishedBy,
};

impl Blobs {
    /// Makes a list of blocks the content of a blob.
    ///
    /// # Errors
    /// A block that does not exist, a lease or a condition that does not permit it, or a failed commit.
    pub(crate) async fn commit_blocks(
        &self,
        blob: BlobKey,
        choices: &[BlockChoice],
        command: PutCommand,
    ) -> Result<BlobRecord, BlobError> {
        if choices.is_empty() {
            return self.put(blob, command, NewContent::inline(&[]), PublishedBy::NEVER_LATE).await;
        }
        for _ in 0..ATTEMPTS_MAX {
            let mut blocks = self.read_blocks(&blob).await?;
            blocks.hold_choices(choices.len())?;
            // The blob as a whole first: a list cannot be resolved where another client committed.
            self.check_put((&blob, BlobKind::Block), &command).await?;
            let resolved = resolve(choices, &blocks.committed, &blocks.staged)?;
            if let Some(record) = self.try_commit(&blob, &command, blocks, resolved).await? {
                return Ok(record);
            }
        }
        Err(BlobError::KeepsChanging(blob.name))
    }

    /// Returns none where blocks were staged or committed meanwhile.
    pub(super) async fn try_commit(
        &self,
        blob: &BlobKey,
        command: &PutCommand,
        blocks: BlobBlocks,
        Resolved { blocks: list, dropped }: Resolved,
    ) -> Result<Option<BlobRecord>, BlobError> {
        let size = list.iter().fold(0_u64, |size, block| size.saturating_add(block.part.size));
        if size > BLOB_BYTES_MAX {
            let rule = format!("must have at most {BLOB_BYTES_MAX} bytes together: bytes=`{size}`");
            return Err(Fault::violation(Reason::InvalidBlockList, "blocks", rule).into());
        }
        let (blob, command, list) = (blob.clone(), command.clone(), list.encode());
        let mut spec = ChangeSpec::new(blob.domain());
        let rows = ReplacedRows::new(&blob, &mut spec, command.retention);
        transact(&*self.engine, spec, move |reads, version| {
            let replaced = rows.get(reads)?;
            let (current, staged) = (replaced.current.as_ref(), replaced.staging);
            let content = |record: Option<&BlobRecord>| record.map(|record| record.content);
            if content(current) != content(blocks.record.as_ref()) || staged != blocks.staging {
                return Ok((Writes::new(), None));
            }
            let number = version.ticks().get();
            let content = Content::Blocks { list: number, size };
            let mut put = decide_put(current, &command, content, version)?;
            blob.check_kind(current, put.content.kind(), false)?;
            let mut writes = Writes::new();
            let kept = replaced.keep(&blob, (command.retention, version), &mut writes)?;
            put.history.newest_shared = kept.or(put.history.newest_shared);
            writes.put(reads.key(rows.record).clone(), put.encode());
            tags::reindex(&blob, tags::indexed(current), &put.tags, &mut writes);
            writes.put(blob.row(BlobRow::BlockList, &[number]), list.clone());
            remove_inline(current, blob.row(BlobRow::Inline, &[]), &mut writes);
            let mut retired = Retired { parts: dropped.clone(), ..Retired::default() };
            match current.map(|current| current.content).filter(|_| kept.is_none()) {
                // Its blocks are in the new list, or dropped one by one.
                Some(Content::Blocks { list, .. }) if !put.is_shared() => {
                    writes.delete(blob.row(BlobRow::BlockList, &[list]));
                }
                Some(content) => retired.content(&content),
                None => {}
            }
            if let Some(Staging { generation, .. }) = staged {
                writes.delete(reads.key(rows.staging).clone());
                retired.staging = Some(RetiredStaging { generation, with_contents: false });
            }
            blob.retire(&retired, put.is_shared(), version, &mut writes);
            Ok::<_, BlobError>((writes, Some(put)))
        })
        .await?
    }
}
