//! Reclaiming the space of contents that nothing refers to: objects first, then the rows that name them, so that a step
//! that fails is repeated as a whole.

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Domain, Lock, Reads, Snapshot, Span, Version, Writes, transact};

use super::{BlobSweeper, STEP};
use crate::{
    blobs::BlobKey,
    blocks::staged,
    error::BlobError,
    keys::{self, BlobRow, PieceForm},
    record::{Part, Retired, RetiredStaging, StoredBlock},
    stored::Stored as _,
};

/// Rows that are deleted at once.
const ROWS: usize = 500;

/// What is to be deleted.
pub(super) struct Reclaimable {
    /// Contents.
    pub(super) parts: Vec<Part>,
    /// The rows that name them.
    pub(super) rows: Vec<Bytes>,
    /// The pieces of an append blob.
    pub(super) generation: Option<u64>,
}

impl BlobSweeper {
    /// Deletes the objects of retired contents and the rows that name them, but for those in `last`, which are deleted
    /// at the end.
    pub(super) async fn reclaim(
        &self,
        blob: &BlobKey,
        retired: &Retired,
        last: Vec<Bytes>,
    ) -> Result<(), BlobError> {
        let snapshot = self.blobs.engine.snapshot().await?;
        let found = self.reclaimable(&*snapshot, blob, retired).await?;
        drop(snapshot);
        self.delete(blob, found, last).await
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

    /// Deletes contents, then the rows that name them, then those in `last`.
    pub(super) async fn delete(
        &self,
        blob: &BlobKey,
        Reclaimable { parts, rows, generation }: Reclaimable,
        last: Vec<Bytes>,
    ) -> Result<(), BlobError> {
        self.delete_contents(&parts).await?;
        if let Some(generation) = generation {
            self.delete_pieces(blob, generation).await?;
            self.delete_chunks(blob, generation).await?;
        }
        for rows in rows.into_iter().chain(last).collect::<Vec<_>>().chunks(ROWS) {
            self.delete_rows(blob.domain(), rows, &[]).await?;
        }
        Ok(())
    }

    /// Deletes the pieces of an append blob, a part at a time: an object before the row that names it.
    async fn delete_pieces(&self, blob: &BlobKey, generation: u64) -> Result<(), BlobError> {
        let pieces = keys::pieces_after(blob.container, &blob.name, (generation, 0));
        loop {
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
            if !scan.more {
                return Ok(());
            }
        }
    }

    /// Deletes the chunks of a page blob, a part at a time.
    async fn delete_chunks(&self, blob: &BlobKey, generation: u64) -> Result<(), BlobError> {
        let chunks = Span::prefix(&blob.row(BlobRow::Chunk, &[generation]));
        loop {
            let scan = self.blobs.engine.scan(&chunks, STEP).await?;
            let rows: Vec<_> = scan.entries.into_iter().map(|entry| entry.key).collect();
            self.delete_rows(blob.domain(), &rows, &[]).await?;
            if !scan.more {
                return Ok(());
            }
        }
    }

    /// Deletes contents: their objects, then the rows that mark them as live.
    async fn delete_contents(&self, parts: &[Part]) -> Result<(), BlobError> {
        for parts in parts.chunks(ROWS) {
            for part in parts {
                self.blobs.objects.delete(*part).await?;
            }
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
