//! The blocks of blobs: staging them, making them the content, and listing them.

mod commit;
mod resolve;
mod stage;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use trestle_kv::{ScanLimit, Snapshot, Span, after_key};
use trestle_rpc::layer::shares::Share;
use uuid::Uuid;

pub(crate) use self::{
    resolve::{BlockChoice, BlockSource},
    stage::NewBlock,
};
use crate::{
    blobs::{BlobKey, BlobState, Blobs, StateName, decode_record},
    error::BlobError,
    extent::to_usize,
    keys::{self, BlobRow},
    read_memory::ReadMemory,
    record::{BlobKind, BlobRecord, Content, Part, Staging, StoredBlock},
    stored::Stored as _,
};

/// Most attempts of a change, where the blob is changed meanwhile.
pub(crate) const ATTEMPTS_MAX: usize = 8;
/// Staged blocks that are read at once.
const SCAN: ScanLimit = ScanLimit { rows: 8192, bytes: 4 * 1024 * 1024 };

/// Memory of a block of a list beside its id, in bytes.
const BLOCK_BYTES: usize = size_of::<StoredBlock>();
/// Memory of a block of the new list, and of the entry that finds it a second time, in bytes.
const CHOICE_BYTES: usize = 2 * BLOCK_BYTES + 64;
/// Memory of the entry by which a block is found, in bytes.
const FOUND_BYTES: usize = 2 * BLOCK_BYTES;
/// Bytes of a list in memory for a byte of its row, at most: a row has at least 12 bytes for a block.
const LIST_FACTOR: usize = 6;

/// The blocks of a content, with their memory.
pub(crate) struct BlockList {
    pub(crate) blocks: Vec<StoredBlock>,
    held: Share,
}

impl BlockList {
    /// Reads the list with a number.
    ///
    /// # Errors
    /// Too little memory at present; a failed read, or a corrupt row.
    pub(crate) async fn read(
        snapshot: &dyn Snapshot,
        (blob, number): (&BlobKey, u64),
        memory: &ReadMemory,
    ) -> Result<Self, BlobError> {
        let value = snapshot.get(&blob.row(BlobRow::BlockList, &[number])).await?;
        let value = value.ok_or_else(|| BlobError::corrupt("block list"))?;
        let mut held = memory.list(value.len() * LIST_FACTOR)?;
        let blocks = Vec::<StoredBlock>::decode(&value)?;
        held.resize(value.len() + blocks.len() * BLOCK_BYTES)?;
        Ok(Self { blocks, held })
    }
}

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
    /// The memory of the blocks.
    held: Share,
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
        let (committed, held) = self.committed(&*snapshot, blob, Some(record.content)).await?;
        let (record, staged) = (Some(record), Vec::new());
        Ok((state, BlobBlocks { record, committed, staging: None, staged, held }))
    }

    async fn read_blocks(&self, blob: &BlobKey) -> Result<BlobBlocks, BlobError> {
        let snapshot = self.engine.snapshot().await?;
        let record = decode_record(snapshot.get(&blob.row(BlobRow::Record, &[])).await?.as_ref())?;
        let content = record.as_ref().map(|record| record.content);
        let (committed, mut held) = self.committed(&*snapshot, blob, content).await?;
        let staging = snapshot.get(&blob.row(BlobRow::Staging, &[])).await?;
        let staging = staging.map(|value| Staging::decode(&value)).transpose()?;
        let staged = match staging {
            Some(Staging { generation, count, id_bytes, .. }) => {
                let bytes = BLOCK_BYTES.saturating_add(to_usize(id_bytes));
                held.resize(held.amount().saturating_add(bytes.saturating_mul(to_usize(count))))?;
                staged(&*snapshot, blob, generation).await?
            }
            None => Vec::new(),
        };
        Ok(BlobBlocks { record, committed, staging, staged, held })
    }

    /// The blocks of a content.
    async fn committed(
        &self,
        snapshot: &dyn Snapshot,
        blob: &BlobKey,
        content: Option<Content>,
    ) -> Result<(Vec<StoredBlock>, Share), BlobError> {
        match content {
            Some(Content::Blocks { list, .. }) => {
                let BlockList { blocks, held } =
                    BlockList::read(snapshot, (blob, list), &self.reads).await?;
                Ok((blocks, held))
            }
            _ => Ok((Vec::new(), self.reads.list(0)?)),
        }
    }
}

impl BlobBlocks {
    /// Reserves the memory of choosing from these blocks.
    ///
    /// # Errors
    /// Too little memory at present.
    fn hold_choices(&mut self, choices: usize) -> Result<(), BlobError> {
        let more = choices.saturating_mul(CHOICE_BYTES)
            + (self.committed.len() + self.staged.len()) * FOUND_BYTES;
        Ok(self.held.resize(self.held.amount().saturating_add(more))?)
    }
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
