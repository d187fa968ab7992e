//! The blocks of blobs: staging them, making them the content, and listing them.

mod commit;
mod resolve;
mod stage;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use trestle_kv::{ScanLimit, Snapshot, Span, after_key};
use uuid::Uuid;

pub(crate) use self::{
    resolve::{BlockChoice, BlockSource},
    stage::NewBlock,
};
use crate::{
    blobs::{BlobKey, BlobState, Blobs, StateName, decode_record},
    error::BlobError,
    keys::{self, BlobRow},
    record::{BlobKind, BlobRecord, Content, Part, Staging, StoredBlock},
    stored::Stored as _,
};

/// Most attempts of a change, where the blob is changed meanwhile.
pub(crate) const ATTEMPTS_MAX: usize = 8;
/// Staged blocks that are read at once.
const SCAN: ScanLimit = ScanLimit { rows: 8192, bytes: 4 * 1024 * 1024 };

/// A blob with its blocks, of one moment.
pub(crate) struct BlobBlocks {
    /// Its record, if it has content.
    pub(crate) record: Option<BlobRecord>,
    /// The blocks of its content.
    pub(crate) committed: Vec<StoredBlock>,
    /// Its staged blocks as a whole.
    pub(crate) staging: Option<Staging>,
    /// Its staged blocks, by id.
    pub(crate) staged: Vec<StoredBlock>,
}

impl Blobs {
    /// The blocks of a blob, by the lease.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`] where it has neither content nor staged blocks; the lease; a failed read.
    pub(crate) async fn blocks(
        &self,
        blob: &BlobKey,
        lease_id: Option<Uuid>,
    ) -> Result<BlobBlocks, BlobError> {
        let blocks = self.read_blocks(blob).await?;
        match &blocks.record {
            Some(record) => {
                record.lease.check_read(lease_id, self.now()).map_err(BlobError::BlobLease)?;
                blob.check_kind(Some(record), BlobKind::Block, false)?;
            }
            None if blocks.staging.is_none() => return Err(blob.not_found()),
            None => {}
        }
        Ok(blocks)
    }

    /// The blocks of a snapshot or a version, and which state it is.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`], a blob of another kind, or a failed read.
    pub(crate) async fn past_blocks(
        &self,
        blob: &BlobKey,
        name: StateName,
    ) -> Result<(BlobState, BlobBlocks), BlobError> {
        let snapshot = self.engine.snapshot().await?;
        let (state, record) = name.find(&*snapshot, blob).await?;
        blob.check_kind(Some(&record), BlobKind::Block, false)?;
        let committed = committed(&*snapshot, blob, Some(record.content)).await?;
        let record = Some(record);
        Ok((state, BlobBlocks { record, committed, staging: None, staged: Vec::new() }))
    }

    async fn read_blocks(&self, blob: &BlobKey) -> Result<BlobBlocks, BlobError> {
        let snapshot = self.engine.snapshot().await?;
        let record = decode_record(snapshot.get(&blob.row(BlobRow::Record, &[])).await?.as_ref())?;
        let content = record.as_ref().map(|record| record.content);
        let committed = committed(&*snapshot, blob, content).await?;
        let staging = snapshot.get(&blob.row(BlobRow::Staging, &[])).await?;
        let staging = staging.map(|value| Staging::decode(&value)).transpose()?;
        let staged = match staging {
            Some(Staging { generation, .. }) => staged(&*snapshot, blob, generation).await?,
            None => Vec::new(),
        };
        Ok(BlobBlocks { record, committed, staging, staged })
    }
}

/// The blocks of a content.
async fn committed(
    snapshot: &dyn Snapshot,
    blob: &BlobKey,
    content: Option<Content>,
) -> Result<Vec<StoredBlock>, BlobError> {
    let Some(Content::Blocks { list, .. }) = content else { return Ok(Vec::new()) };
    let value = snapshot.get(&blob.row(BlobRow::BlockList, &[list])).await?;
    let value = value.ok_or_else(|| BlobError::corrupt("block list"))?;
    Vec::<StoredBlock>::decode(&value)
}

/// The staged blocks of one generation, by id.
///
/// # Errors
/// A failed read, or a corrupt row.
pub(crate) async fn staged(
    snapshot: &dyn Snapshot,
    blob: &BlobKey,
    generation: u64,
) -> Result<Vec<StoredBlock>, BlobError> {
    let mut span = keys::staged_blocks(blob.container, &blob.name, generation);
    let mut blocks = Vec::new();
    loop {
        let scan = snapshot.scan(&span, SCAN).await?;
        for entry in &scan.entries {
            // A copy: a slice would keep the whole part of the scan in memory.
            let id = Bytes::copy_from_slice(&keys::block_of(&entry.key)?);
            blocks.push(StoredBlock { id, part: Part::decode(&entry.value)? });
        }
        match scan.entries.last().filter(|_| scan.more) {
            Some(last) => span = Span::new(after_key(&last.key), span.end),
            None => return Ok(blocks),
        }
    }
}
