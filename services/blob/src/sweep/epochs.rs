//! Chunks of page blobs that only deleted snapshots read.

use bytes::Bytes;
use trestle_kv::{Span, after_key};

use super::{BlobSweeper, STEP};
use crate::{
    blobs::BlobKey,
    error::BlobError,
    keys::{self, BlobRow},
    pages::unread_epochs,
};

/// Rows that are deleted at once.
const ROWS: usize = 500;

impl BlobSweeper {
    /// Deletes the chunks that neither the blob nor a snapshot reads. Content that was retired, but for that of
    /// `retired`, counts as a snapshot: a read of it may be in progress.
    pub(super) async fn delete_unread_chunks(
        &self,
        blob: &BlobKey,
        generation: u64,
        retired: &Bytes,
    ) -> Result<(), BlobError> {
        let mut snapshots = self.numbers(blob, BlobRow::Past, retired).await?;
        snapshots.extend(self.numbers(blob, BlobRow::SharedRetired, retired).await?);
        snapshots.sort_unstable();
        let (mut first, mut rows) = (0, Vec::new());
        loop {
            let part = self.blobs.chunks(blob, generation, first..u64::MAX).await?;
            for epochs in part.chunks.chunk_by(|one, other| one.index == other.index) {
                let numbers: Vec<_> = epochs.iter().map(|stored| stored.epoch).collect();
                let index = epochs.first().map_or(0, |stored| stored.index);
                rows.extend(unread_epochs(&numbers, &snapshots).into_iter().map(|epoch| {
                    keys::chunk(blob.container, &blob.name, (generation, index, epoch))
                }));
            }
            for rows in rows.chunks(ROWS) {
                self.delete_rows(blob.domain(), rows, &[]).await?;
            }
            rows.clear();
            match part.next {
                Some(next) => first = next,
                None => return Ok(()),
            }
        }
    }

    /// The times of past states of a blob: the last number in the keys of rows.
    async fn numbers(
        &self,
        blob: &BlobKey,
        row: BlobRow,
        except: &Bytes,
    ) -> Result<Vec<u64>, BlobError> {
        let mut span = Span::prefix(&blob.row(row, &[]));
        let mut numbers = Vec::new();
        loop {
            let scan = self.blobs.engine.scan(&span, STEP).await?;
            for entry in scan.entries.iter().filter(|entry| entry.key != *except) {
                let number = keys::last_number_of(&entry.key);
                numbers.push(number.ok_or_else(|| BlobError::corrupt("key of a past state"))?);
            }
            match scan.entries.last().filter(|_| scan.more) {
                Some(last) => span = Span::new(after_key(&last.key), span.end),
                None => return Ok(numbers),
            }
        }
    }
}
