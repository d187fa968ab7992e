//! Staging a block.

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Lock, ReadId, Reads, Version, Writes, transact};
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::{BLOB_BYTES_MAX, STAGED_BLOCKS_MAX};
use trestle_model::time::Ticks;
use uuid::Uuid;

use super::ATTEMPTS_MAX;
use crate::{
    blobs::{BlobKey, Blobs, decode_record},
    error::BlobError,
    keys::{self, BlobRow},
    lease::{LeaseError, ResourceLease},
    record::{BlobKind, BlobRecord, Part, Retired, Staging},
    stored::Stored as _,
    upload::PublishedBy,
};

/// A block to stage.
#[derive(Debug, Clone)]
pub(crate) struct NewBlock {
    /// The blob.
    pub(crate) blob: BlobKey,
    /// The id of the block.
    pub(crate) id: Bytes,
    /// The id of the lease of the client.
    pub(crate) lease_id: Option<Uuid>,
}

impl Blobs {
    /// Whether a block could be staged now: to reject it before its data is sent.
    ///
    /// # Errors
    /// As [`Blobs::stage`].
    pub(crate) async fn check_stage(&self, block: &NewBlock) -> Result<(), BlobError> {
        let value = self.engine.get(&block.blob.row(BlobRow::Record, &[])).await?;
        let now = self.now();
        let record = decode_record(value.as_ref())?;
        check_lease(record.as_ref(), block.lease_id, now)?;
        block.blob.check_kind(record.as_ref(), BlobKind::Block, false)?;
        record.as_ref().map_or(Ok(()), BlobRecord::check_online)?;
        let staging = self.engine.get(&block.blob.row(BlobRow::Staging, &[])).await?;
        let staging = staging.map(|value| Staging::decode(&value)).transpose()?;
        decide_stage(staging, None, &block.id, 0, Version::new(now)).map(drop)
    }

    /// Stages a block, in time, in place of one with the same id.
    ///
    /// # Errors
    /// A lease that does not permit it, an id of another length than the others, too many blocks, or a failed commit.
    pub(crate) async fn stage(
        &self,
        block: NewBlock,
        part: Part,
        publish_by: PublishedBy,
    ) -> Result<(), BlobError> {
        for _ in 0..ATTEMPTS_MAX {
            if self.try_stage(&block, part, publish_by).await? {
                return Ok(());
            }
        }
        Err(BlobError::KeepsChanging(block.blob.name))
    }

    /// Returns false where other staged blocks began or ended meanwhile.
    async fn try_stage(
        &self,
        block: &NewBlock,
        part: Part,
        publish_by: PublishedBy,
    ) -> Result<bool, BlobError> {
        let NewBlock { blob, id, lease_id } = block.clone();
        let staging = self.engine.get(&blob.row(BlobRow::Staging, &[])).await?;
        let staging = staging.map(|value| Staging::decode(&value)).transpose()?;
        let generation = staging.map(|staging| staging.generation);
        let live = keys::live(part.content);
        let mut spec = ChangeSpec::new(blob.domain());
        spec.also(keys::own_domain(&live), Lock::Exclusive);
        let key = |generation| keys::staged_block(blob.container, &blob.name, generation, &id);
        let rows = StageRows {
            record: spec.read(blob.row(BlobRow::Record, &[])),
            staging: spec.read(blob.row(BlobRow::Staging, &[])),
            block: generation.map(|generation| spec.read(key(generation))),
        };
        transact(&*self.engine, spec, move |reads, version| {
            publish_by.check(version)?;
            let (record, staging, replaced) = rows.get(reads)?;
            if staging.map(|staging| staging.generation) != generation {
                return Ok((Writes::new(), false));
            }
            let lease = check_lease(record.as_ref(), lease_id, version.ticks())?;
            blob.check_kind(record.as_ref(), BlobKind::Block, false)?;
            record.as_ref().map_or(Ok(()), BlobRecord::check_online)?;
            let staging = decide_stage(staging, replaced, &id, part.size, version)?;
            let mut writes = Writes::new();
            if let Some(record) = record.filter(|record| record.lease != lease) {
                let record = BlobRecord { lease, ..record };
                writes.put(reads.key(rows.record).clone(), record.encode());
            }
            let key = keys::staged_block(blob.container, &blob.name, staging.generation, &id);
            writes.put(reads.key(rows.staging).clone(), staging.encode());
            writes.put(key, part.encode());
            writes.put(live.clone(), keys::encode_number(part.size));
            let retired = Retired { parts: replaced.into_iter().collect(), ..Retired::default() };
            blob.retire(&retired, false, version, &mut writes);
            Ok::<_, BlobError>((writes, true))
        })
        .await?
    }
}

/// What the change reads.
#[derive(Clone, Copy)]
struct StageRows {
    record: ReadId,
    staging: ReadId,
    block: Option<ReadId>,
}

/// The record, the staged blocks as a whole, and the block with the id.
type CurrentRows = (Option<BlobRecord>, Option<Staging>, Option<Part>);

impl StageRows {
    fn get(self, reads: &Reads<'_>) -> Result<CurrentRows, BlobError> {
        let record = decode_record(reads.get(self.record))?;
        let staging = reads.get(self.staging).map(|value| Staging::decode(value)).transpose()?;
        let block = self.block.and_then(|block| reads.get(block));
        let block = block.map(|value| Part::decode(value)).transpose()?;
        Ok((record, staging, block))
    }
}

/// The lease after the block is staged: as any other write without its id, it ends one that is expired or broken.
fn check_lease(
    record: Option<&BlobRecord>,
    lease_id: Option<Uuid>,
    now: Ticks,
) -> Result<ResourceLease, BlobError> {
    match (record, lease_id) {
        (Some(record), id) => record.lease.check_write(id, now),
        (None, Some(_)) => Err(LeaseError::NotPresent),
        (None, None) => Ok(ResourceLease::Absent),
    }
    .map_err(BlobError::BlobLease)
}

/// The staged blocks with one of this length more, in place of `replaced`.
///
/// # Errors
/// An id of another length than the others, or too many blocks or bytes.
pub(super) fn decide_stage(
    staging: Option<Staging>,
    replaced: Option<Part>,
    id: &Bytes,
    size: u64,
    version: Version,
) -> Result<Staging, BlobError> {
    let changed_at = version.ticks();
    let (generation, id_bytes) = (changed_at.get(), id.len() as u64);
    let first = Staging { generation, changed_at, id_bytes, count: 0, size: 0 };
    let staging = staging.unwrap_or(first);
    if staging.id_bytes != id_bytes {
        let rule = "must be as long as the other ids";
        let rule = format!("{rule}: bytes=`{id_bytes}`, theirs=`{}`", staging.id_bytes);
        return Err(Fault::violation(Reason::InvalidBlobOrBlock, "block_id", rule).into());
    }
    let count = staging.count + u64::from(replaced.is_none());
    let size = staging.size.saturating_sub(replaced.map_or(0, |part| part.size)) + size;
    let rule = if count > STAGED_BLOCKS_MAX {
        format!("a blob has at most {STAGED_BLOCKS_MAX} staged blocks: count=`{count}`")
    } else if size > BLOB_BYTES_MAX {
        format!("the staged blocks of a blob have at most {BLOB_BYTES_MAX} bytes: bytes=`{size}`")
    } else {
        return Ok(Staging { changed_at, count, size, ..staging });
    };
    Err(Fault::new(Reason::BlockCountExceedsLimit, rule).into())
}
