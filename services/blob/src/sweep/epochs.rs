//! Chunks of page blobs that only deleted snapshots read. A scan of the chunks of a blob finds them for all of its
//! snapshots that were deleted long enough ago, a part at a time, and blobs take turns.
//!
//! Whether a chunk is unread is decided by the past states and the chunks of one snapshot of the engine. The past
//! states that a scan has read are used for its next parts while the record of the blob has the same newest one: the
//! others can only have become fewer. The change that deletes chunks reads the record again.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Scan, ScanLimit, Snapshot, Span, Writes, after_key, transact};
use trestle_model::time::Ticks;

use super::{BlobSweeper, ROWS, STEP, reclaim::Reclaimable};
use crate::{
    blobs::{BlobKey, decode_stored},
    error::BlobError,
    keys::{self, BlobRow},
    pages::unread_epochs,
    record::{BlobRecord, ContainerId, Retired},
    stored::Stored as _,
};

/// Most scans in progress; further ones begin once these have ended.
const SCANS_MAX: usize = 64;
/// Most of them in one container, so that an account with many blobs leaves room for the others.
const SCANS_OF_CONTAINER_MAX: usize = 4;
/// Scans that examine a part in one tick.
const PARTS_MAX: usize = 4;
/// Chunks that one part examines. Two of any length fit.
const PART: ScanLimit = ScanLimit { rows: 500, bytes: 4 * 1024 * 1024 };
/// Most deleted snapshots that one scan covers.
const COVERED_MAX: usize = 4096;

/// A scan of the chunks of a blob.
pub(super) struct EpochScan {
    blob: BlobKey,
    generation: u64,
    /// The retired rows whose snapshots read no more, which are deleted at the end.
    covered: BTreeSet<Bytes>,
    /// The first key that is not examined yet.
    next: Bytes,
    states: Option<PastReaders>,
}

/// The past states that may read chunks, as they were with this base.
struct PastReaders {
    base: ChunkBase,
    times: Vec<u64>,
}

/// What the record of a blob declares about the past states of its chunks: it is another one after each new state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkBase {
    /// The blob has other content, or does not exist: there are no new states.
    Absent,
    /// The blob has the chunks; the newest past state that may share them.
    Present(Option<Ticks>),
}

impl ChunkBase {
    fn of(record: Option<&BlobRecord>, generation: u64) -> Self {
        let record = record.filter(|it| it.content.generation() == Some(generation));
        record.map_or(Self::Absent, |it| Self::Present(it.newest_snapshot()))
    }
}

impl EpochScan {
    fn is_of(&self, blob: &BlobKey, generation: u64) -> bool {
        self.generation == generation && self.blob == *blob
    }
}

impl BlobSweeper {
    /// Begins a scan for the snapshots of a blob that were deleted before a grace period, unless there is one or there
    /// are too many: then a later tick begins it.
    pub(super) async fn begin_epoch_scan(
        &self,
        blob: &BlobKey,
        generation: u64,
        (now, grace): (Ticks, Duration),
    ) -> Result<(), BlobError> {
        if !self.with(|positions| has_room(&positions.epochs, blob.container)) {
            return Ok(());
        }
        let snapshot = self.blobs.engine.snapshot().await?;
        let (mut covered, mut span) = (BTreeSet::new(), shared_retired(blob));
        while covered.len() < COVERED_MAX {
            let scan = snapshot.scan(&span, STEP).await?;
            for entry in &scan.entries {
                let is_due = now.since(keys::time_of(&entry.key)?) >= grace;
                if is_due && Retired::decode(&entry.value)?.generation == Some(generation) {
                    covered.insert(entry.key.clone());
                }
            }
            match rest(&scan, span) {
                Some(next) => span = next,
                None => break,
            }
        }
        let (blob, next) = (blob.clone(), blob.row(BlobRow::Chunk, &[generation]));
        let scan = EpochScan { blob, generation, covered, next, states: None };
        self.with(|positions| positions.epochs.push_back(scan));
        Ok(())
    }

    /// Whether a scan for the deleted snapshots of a blob is in progress.
    pub(super) fn is_scanning_epochs(&self, blob: &BlobKey, generation: u64) -> bool {
        self.with(|positions| positions.epochs.iter().any(|scan| scan.is_of(blob, generation)))
    }

    /// Examines a part of the chunks of some blobs, and deletes those that are unread.
    pub(super) async fn sweep_epochs(&self) -> Result<bool, BlobError> {
        let turns: Vec<_> = self.with(|positions| {
            let count = positions.epochs.len().min(PARTS_MAX);
            positions.epochs.drain(..count).collect()
        });
        let mut failed = None;
        for scan in turns {
            match self.sweep_part(scan).await {
                Ok(rest) => self.with(|positions| positions.epochs.extend(rest)),
                // It begins again with the retired rows.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let more = self.with(|positions| !positions.epochs.is_empty());
        failed.map_or(Ok(more), Err)
    }

    /// Returns the scan unless it has ended.
    async fn sweep_part(&self, mut scan: EpochScan) -> Result<Option<EpochScan>, BlobError> {
        let snapshot = self.blobs.engine.snapshot().await?;
        let record = snapshot.get(&scan.blob.row(BlobRow::Record, &[])).await?;
        let base = ChunkBase::of(decode_stored(record.as_ref())?.as_ref(), scan.generation);
        let states = match scan.states.take().filter(|states| states.base == base) {
            Some(states) => states,
            None => PastReaders { base, times: past_readers(&*snapshot, &scan).await? },
        };
        if base == ChunkBase::Absent && states.times.is_empty() {
            drop(snapshot);
            return self.sweep_all(scan).await;
        }
        let end = Span::prefix(&scan.blob.row(BlobRow::Chunk, &[scan.generation])).end;
        let chunks = snapshot.scan(&Span::new(scan.next.clone(), end), PART).await?;
        drop(snapshot);
        let rows = unread_rows(&scan, &chunks, &states.times)?;
        if !rows.is_empty() && !self.delete_unread(&scan, base, rows).await? {
            // The part is examined again with the new state.
            return Ok(Some(scan));
        }
        let Some(last) = chunks.entries.last().filter(|_| chunks.more) else {
            return self.forget_covered(scan).await;
        };
        // Once more: the epoch that follows decides about it.
        let next = last.key.clone();
        Ok(Some(EpochScan { next, states: Some(states), ..scan }))
    }

    /// Deletes a part of the chunks, or of the pieces, of a content that no state has, unless a backup reads objects.
    async fn sweep_all(&self, scan: EpochScan) -> Result<Option<EpochScan>, BlobError> {
        // After the backup it begins again with the retired rows.
        let Some(_deletes) = self.blobs.objects.hold().begin_delete() else { return Ok(None) };
        let generation = Some(scan.generation);
        let all = Reclaimable { parts: Vec::new(), rows: Vec::new(), generation };
        match self.delete(&scan.blob, all).await? {
            true => self.forget_covered(scan).await,
            false => Ok(Some(scan)),
        }
    }

    /// Ends a scan.
    async fn forget_covered(&self, scan: EpochScan) -> Result<Option<EpochScan>, BlobError> {
        let covered: Vec<_> = scan.covered.into_iter().collect();
        for rows in covered.chunks(ROWS) {
            self.delete_rows(scan.blob.domain(), rows, &[]).await?;
        }
        Ok(None)
    }

    /// Deletes chunks that are unread unless there is a new past state; returns whether it did.
    async fn delete_unread(
        &self,
        scan: &EpochScan,
        base: ChunkBase,
        rows: Vec<Bytes>,
    ) -> Result<bool, BlobError> {
        let (blob, generation) = (&scan.blob, scan.generation);
        let mut spec = ChangeSpec::new(blob.domain());
        let record = spec.read(blob.row(BlobRow::Record, &[]));
        transact(&*self.blobs.engine, spec, move |reads, _| {
            let current = decode_stored(reads.get(record))?;
            let mut writes = Writes::with_capacity(rows.len());
            if ChunkBase::of(current.as_ref(), generation) != base {
                return Ok((writes, false));
            }
            for row in &rows {
                writes.delete(row.clone());
            }
            Ok::<_, BlobError>((writes, true))
        })
        .await?
    }
}

fn has_room<'s>(scans: impl IntoIterator<Item = &'s EpochScan>, container: ContainerId) -> bool {
    let (mut all, mut of_container) = (0, 0);
    for scan in scans {
        all += 1;
        of_container += usize::from(scan.blob.container == container);
    }
    all < SCANS_MAX && of_container < SCANS_OF_CONTAINER_MAX
}

fn shared_retired(blob: &BlobKey) -> Span {
    Span::prefix(&blob.row(BlobRow::SharedRetired, &[]))
}

/// What of a span is behind a scan, if there may be more.
fn rest(scan: &Scan, span: Span) -> Option<Span> {
    let last = scan.entries.last().filter(|_| scan.more)?;
    Some(Span::new(after_key(&last.key), span.end))
}

/// The generation of the content that a row refers to.
type GenerationOf = fn(&Bytes) -> Result<Option<u64>, BlobError>;

/// The times of the past states of a blob with this content, in order. What was deleted and is not covered counts: a
/// read of it may be in progress.
async fn past_readers(snapshot: &dyn Snapshot, scan: &EpochScan) -> Result<Vec<u64>, BlobError> {
    let of_past: GenerationOf = |value| Ok(BlobRecord::decode(value)?.content.generation());
    let of_retired: GenerationOf = |value| Ok(Retired::decode(value)?.generation);
    let kinds = [(scan.blob.past(), of_past), (shared_retired(&scan.blob), of_retired)];
    let mut times = Vec::new();
    for (mut span, generation_of) in kinds {
        loop {
            let found = snapshot.scan(&span, STEP).await?;
            for entry in found.entries.iter().filter(|entry| !scan.covered.contains(&entry.key)) {
                if generation_of(&entry.value)? == Some(scan.generation) {
                    let time = keys::last_number_of(&entry.key);
                    times.push(time.ok_or_else(|| BlobError::corrupt("key of a past state"))?);
                }
            }
            match rest(&found, span) {
                Some(next) => span = next,
                None => break,
            }
        }
    }
    times.sort_unstable();
    Ok(times)
}

/// The keys of the chunks of a part that neither the blob nor a past state reads.
fn unread_rows(scan: &EpochScan, part: &Scan, times: &[u64]) -> Result<Vec<Bytes>, BlobError> {
    let places = part.entries.iter().map(|entry| keys::chunk_of(&entry.key));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    for chunk in places.chunk_by(|one, other| one.0 == other.0) {
        let index = chunk.first().map_or(0, |(index, _)| *index);
        let epochs: Vec<_> = chunk.iter().map(|(_, epoch)| *epoch).collect();
        rows.extend(unread_epochs(&epochs, times).into_iter().map(|epoch| {
            let place = (scan.generation, index, epoch);
            keys::chunk(scan.blob.container, &scan.blob.name, place)
        }));
    }
    Ok(rows)
}
