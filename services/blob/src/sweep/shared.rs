//! Retired contents that other states of the blob may share.
//!
//! Contents are immutable, and a state has only contents of its own or of the state before it. So the states that share
//! a content follow each other: what the nearest states before and after a retired one do not have, no state has. What
//! was retired later, and is still within its grace period, counts as a state.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use trestle_kv::{Entry, ScanLimit, Snapshot, Span, after_key};
use trestle_model::time::Ticks;

use super::{
    BlobSweeper, STEP,
    reclaim::{DueRow, Reclaimable},
};
use crate::{
    blobs::{BlobKey, decode_stored},
    error::BlobError,
    keys::{self, BlobRow},
    record::{BlobRecord, Content, ContentId, Part, Retired, StoredBlock},
    stored::Stored as _,
};

/// The nearest past state.
const ONE: ScanLimit = ScanLimit { rows: 1, bytes: 1 };

/// Contents of a blob of which some are still in use.
struct Candidates {
    parts: HashMap<ContentId, Part>,
    list: Option<u64>,
    generation: Option<u64>,
}

impl Candidates {
    fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn count(&self) -> usize {
        self.parts.len() + usize::from(self.list.is_some()) + usize::from(self.generation.is_some())
    }

    /// Without what a content has.
    async fn exclude(
        &mut self,
        snapshot: &dyn Snapshot,
        blob: &BlobKey,
        content: Content,
    ) -> Result<(), BlobError> {
        match content {
            Content::Inline { .. } => {}
            Content::Append(content) => self.exclude_generation(content.generation),
            Content::Pages(content) => self.exclude_generation(content.generation),
            Content::Whole(part) => {
                self.parts.remove(&part.content);
            }
            Content::Blocks { list, .. } => {
                let is_found = self.exclude_list(snapshot, blob, list).await?;
                return if is_found { Ok(()) } else { Err(BlobError::corrupt("block list")) };
            }
        }
        Ok(())
    }

    fn exclude_generation(&mut self, generation: u64) {
        if self.generation == Some(generation) {
            self.generation = None;
        }
    }

    /// Without a list and its blocks. Returns false where there is no such list.
    async fn exclude_list(
        &mut self,
        snapshot: &dyn Snapshot,
        blob: &BlobKey,
        list: u64,
    ) -> Result<bool, BlobError> {
        if self.list == Some(list) {
            self.list = None;
        }
        let value = snapshot.get(&blob.row(BlobRow::BlockList, &[list])).await?;
        let Some(value) = value else { return Ok(false) };
        for block in Vec::<StoredBlock>::decode(&value)? {
            self.parts.remove(&block.part.content);
        }
        Ok(true)
    }
}

impl BlobSweeper {
    /// Reclaims what no other state of the blob has. Returns false where a part remains.
    ///
    /// What no state has at one time, no state has later: each takes over contents of the blob only, in a change that
    /// reads its record.
    pub(super) async fn reclaim_shared(
        &self,
        entry: &Entry,
        (blob, retired): (&BlobKey, &Retired),
        due: (Ticks, Duration),
    ) -> Result<bool, BlobError> {
        if retired.generation.is_some_and(|it| self.is_scanning_epochs(blob, it)) {
            return Ok(true);
        }
        let snapshot = self.blobs.engine.snapshot().await?;
        let found = self.reclaimable(&*snapshot, blob, retired).await?;
        let parts = found.parts.iter().map(|part| (part.content, *part)).collect();
        let (list, generation) = (retired.list, retired.generation);
        let mut candidates = Candidates { parts, list, generation };
        exclude_states(&*snapshot, blob, entry, &mut candidates).await?;
        let left_to = exclude_retired(&*snapshot, blob, entry, &mut candidates).await?;
        drop(snapshot);
        // A list names what it shares: it goes with the retired row, for whoever has to read both again.
        let row_of = |list| blob.row(BlobRow::BlockList, &[list]);
        let own_list: Vec<_> = candidates.list.map(row_of).into_iter().collect();
        let list = retired.list.map(row_of);
        let parts = candidates.parts.into_values().collect();
        let rows = found.rows.into_iter().filter(|row| Some(row) != list.as_ref()).collect();
        let shared = retired.generation.filter(|_| candidates.generation.is_none());
        let found = Reclaimable { parts, rows, generation: candidates.generation };
        let is_done = self.delete(blob, found).await?;
        match shared {
            // The scan deletes the row at its end.
            Some(generation) => self.begin_epoch_scan(blob, generation, due).await?,
            None if is_done => {
                self.delete_due(blob, DueRow { entry, beside: own_list, left_to }).await?;
            }
            None => {}
        }
        Ok(is_done)
    }
}

/// Excludes what the blob and the nearest past states have.
async fn exclude_states(
    snapshot: &dyn Snapshot,
    blob: &BlobKey,
    retired: &Entry,
    candidates: &mut Candidates,
) -> Result<(), BlobError> {
    let corrupt = || BlobError::corrupt("key of retired content");
    let at = keys::second_number_of(&retired.key).ok_or_else(corrupt)?;
    let past = |numbers| keys::numbered_rows(BlobRow::Past, (blob.container, &blob.name), numbers);
    for span in [past(0..at).backward(), past(at..u64::MAX)] {
        for entry in snapshot.scan(&span, ONE).await?.entries {
            let content = BlobRecord::decode(&entry.value)?.content;
            candidates.exclude(snapshot, blob, content).await?;
        }
    }
    // Also where it is deleted: it can be restored.
    let value = snapshot.get(&blob.row(BlobRow::Record, &[])).await?;
    match decode_stored(value.as_ref())? {
        Some(record) => candidates.exclude(snapshot, blob, record.content).await,
        None => Ok(()),
    }
}

/// Excludes what else was retired: whichever is reclaimed last deletes what they share. Returns the rows that share it.
async fn exclude_retired(
    snapshot: &dyn Snapshot,
    blob: &BlobKey,
    retired: &Entry,
    candidates: &mut Candidates,
) -> Result<Vec<Bytes>, BlobError> {
    let mut sharing = Vec::new();
    let of_blob = (blob.container, &blob.name);
    let mut span = keys::numbered_rows(BlobRow::SharedRetired, of_blob, 0..u64::MAX);
    while !candidates.is_empty() {
        let scan = snapshot.scan(&span, STEP).await?;
        for entry in scan.entries.iter().filter(|entry| entry.key != retired.key) {
            let Retired { parts, list, generation, .. } = Retired::decode(&entry.value)?;
            let before = candidates.count();
            for part in parts {
                candidates.parts.remove(&part.content);
            }
            if let Some(generation) = generation {
                candidates.exclude_generation(generation);
            }
            if let Some(list) = list {
                // An absent one was reclaimed together with its blocks, up to this row.
                candidates.exclude_list(snapshot, blob, list).await?;
            }
            if candidates.count() < before {
                sharing.push(entry.key.clone());
            }
        }
        match scan.entries.last().filter(|_| scan.more) {
            Some(last) => span = Span::new(after_key(&last.key), span.end),
            None => break,
        }
    }
    Ok(sharing)
}
