//! Reclaiming the space of contents that nothing refers to: objects first, then the rows that name them, so that a step
//! that fails is repeated as a whole.

use bytes::Bytes;
use trestle_kv::{
    ChangeSpec, Domain, Entry, Lock, Reads, Snapshot, Span, Version, Writes, transact,
};

use super::{BlobSweeper, ROWS, STEP};
use crate::{
    blobs::BlobKey,
    blocks::staged,
    error::BlobError,
    keys::{self, BlobRow, PieceForm},
    record::{Part, Retired, RetiredStaging, StoredBlock},
    stored::Stored as _,
};

/// What is to be deleted.
pub(super) struct Reclaimable {
    /// Contents.
    pub(super) parts: Vec<Part>,
    /// The rows that name them.
    pub(super) rows: Vec<Bytes>,
    /// The pieces of an append blob.
    pub(super) generation: Option<u64>,
}

/// The row that a reclaim is due to, and rows that are deleted with it, at the end: unless it was changed meanwhile.
pub(super) struct DueRow<'e> {
    /// It.
    pub(super) entry: &'e Entry,
    /// The others.
    pub(super) beside: Vec<Bytes>,
    /// The retired rows that must be there still, since they delete what this one left to them. Another process may
    /// reclaim them at the same time, and leave it to this one.
    pub(super) left_to: Vec<Bytes>,
}

impl<'e> DueRow<'e> {
    /// A row alone.
    pub(super) fn of(entry: &'e Entry) -> Self {
        Self { entry, beside: Vec::new(), left_to: Vec::new() }
    }
}

impl BlobSweeper {
    /// Deletes the objects of retired contents and the rows that name them, then the row that it is due to. Returns
    /// false where a part remains, for the next tick.
    pub(super) async fn reclaim(
        &self,
        blob: &BlobKey,
        retired: &Retired,
        due: DueRow<'_>,
    ) -> Result<bool, BlobError> {
        let snapshot = self.blobs.engine.snapshot().await?;
        let found = self.reclaimable(&*snapshot, blob, retired).await?;
        drop(snapshot);
        let is_done = self.delete(blob, found).await?;
        if is_done {
            self.delete_due(blob, due).await?;
        }
        Ok(is_done)
    }

    /// The contents that were retired, with the rows that name them.
    pub(super) async fn reclaimable(
        &self,
        snapshot: &dyn Snapshot,
        blob: &BlobKey,
        retired: &Retired,
    ) -> Result<Reclaimable, BlobError> {
        let (mut parts, mut rows) = (retired.parts.clone(), Vec::new());
        if let Some(list) = retired.list {
            let key = blob.row(BlobRow::BlockList, &[list]);
            if let Some(value) = snapshot.get(&key).await? {
                parts.extend(Vec::<StoredBlock>::decode(&value)?.iter().map(|block| block.part));
                rows.push(key);
            }
        }
        if let Some(RetiredStaging { generation, with_contents }) = retired.staging {
            for block in staged(snapshot, blob, generation).await? {
                rows.push(keys::staged_block(blob.container, &blob.name, generation, &block.id));
                parts.extend(with_contents.then_some(block.part));
            }
        }
        Ok(Reclaimable { parts, rows, generation: retired.generation })
    }

    /// Deletes contents, then the rows that name them. Returns false where a part remains.
    pub(super) async fn delete(
        &self,
        blob: &BlobKey,
        Reclaimable { parts, rows, generation }: Reclaimable,
    ) -> Result<bool, BlobError> {
        self.delete_contents(&parts).await?;
        for rows in rows.chunks(ROWS) {
            self.delete_rows(blob.domain(), rows, &[]).await?;
        }
        match generation {
            Some(generation) => Ok(self.delete_pieces(blob, generation).await?
                && self.delete_chunks(blob, generation).await?),
            None => Ok(true),
        }
    }

    /// Deletes a row and those beside it, unless it was changed since it was read, or one that has to follow is gone.
    pub(super) async fn delete_due(
        &self,
        blob: &BlobKey,
        DueRow { entry, beside, left_to }: DueRow<'_>,
    ) -> Result<(), BlobError> {
        let mut spec = ChangeSpec::new(blob.domain());
        let (row, read) = (spec.read(entry.key.clone()), entry.value.clone());
        let left_to: Vec<_> = left_to.into_iter().map(|row| spec.read(row)).collect();
        transact(&*self.blobs.engine, spec, move |reads, _| {
            let mut writes = Writes::new();
            let follow = left_to.iter().all(|row| reads.get(*row).is_some());
            if reads.get(row) == Some(&read) && follow {
                for row in beside.iter().chain([reads.key(row)]) {
                    writes.delete(row.clone());
                }
            }
            Ok::<_, BlobError>((writes, ()))
        })
        .await?
    }

    /// Deletes a part of the pieces of an append blob that no state has: an object before the row that names it.
    /// Returns whether it was the last one.
    async fn delete_pieces(&self, blob: &BlobKey, generation: u64) -> Result<bool, BlobError> {
        let pieces = keys::pieces_after(blob.container, &blob.name, (generation, 0));
        let scan = self.blobs.engine.scan(&pieces, STEP).await?;
        let mut parts = Vec::new();
        for entry in &scan.entries {
            if keys::piece_of(&entry.key)?.1 == PieceForm::Object {
                parts.push(Part::decode(&entry.value)?);
            }
        }
        self.delete_contents(&parts).await?;
        let rows: Vec<_> = scan.entries.into_iter().map(|entry| entry.key).collect();
        self.delete_rows(blob.domain(), &rows, &[]).await?;
        Ok(!scan.more)
    }

    /// Deletes a part of the chunks of a page blob that no state has. Returns whether it was the last one.
    async fn delete_chunks(&self, blob: &BlobKey, generation: u64) -> Result<bool, BlobError> {
        let chunks = Span::prefix(&blob.row(BlobRow::Chunk, &[generation]));
        let scan = self.blobs.engine.scan(&chunks, STEP).await?;
        let rows: Vec<_> = scan.entries.into_iter().map(|entry| entry.key).collect();
        self.delete_rows(blob.domain(), &rows, &[]).await?;
        Ok(!scan.more)
    }

    /// Deletes contents: their objects, then the rows that mark them as live.
    async fn delete_contents(&self, parts: &[Part]) -> Result<(), BlobError> {
        for parts in parts.chunks(ROWS) {
            for part in parts {
                self.blobs.objects.delete(*part).await?;
            }
            // The rows that name the objects must not be deleted before the names of the files.
            self.blobs.objects.sync_deletes().await?;
            let rows: Vec<_> = parts.iter().map(|part| keys::live(part.content)).collect();
            let domains: Vec<_> = rows.iter().map(keys::own_domain).collect();
            if let Some((first, others)) = domains.split_first() {
                self.delete_rows(first.clone(), &rows, others).await?;
            }
        }
        Ok(())
    }

    /// Deletes rows in one change.
    pub(super) async fn delete_rows(
        &self,
        domain: Domain,
        rows: &[Bytes],
        also: &[Domain],
    ) -> Result<(), BlobError> {
        let mut spec = ChangeSpec::new(domain);
        for domain in also {
            spec.also(domain.clone(), Lock::Exclusive);
        }
        let mut writes = Writes::with_capacity(rows.len());
        for row in rows {
            writes.delete(row.clone());
        }
        let delete = move |_: &Reads<'_>, _: Version| Ok::<_, BlobError>((writes.clone(), ()));
        transact(&*self.blobs.engine, spec, delete).await?
    }
}
