//! Copying the pages of a page blob to another one, which does not exist yet.

use trestle_kv::{ChangeSpec, Writes, transact, turns::Pace};
use trestle_model::time::Ticks;

use super::{
    chunk::{CHUNK_BYTES, PageChunk},
    pinned::PinnedChunks,
    read::chunk_indices,
};
use crate::{
    blobs::{BlobKey, Blobs, check_reserved},
    error::BlobError,
    keys::{self, BlobRow},
    record::Retired,
    stored::Stored as _,
};

/// Pages that were copied, and are not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopiedPages {
    /// The number in the keys of the chunks.
    pub(crate) generation: u64,
    /// When the last of them were written, which has the sweeper delete them unless they are published soon.
    pub(crate) reserved: Ticks,
}

impl Blobs {
    /// Copies the pages that have data; `progress` gets how many bytes of the source were examined. Each part replaces
    /// the row that has the sweeper delete what was copied, so a crash leaves nothing behind. None: there is no data.
    ///
    /// # Errors
    /// A failed read, a failed commit, or [`BlobError::Busy`] where a part took too long.
    pub(crate) async fn copy_pages(
        &self,
        mut source: PinnedChunks,
        size: u64,
        target: &BlobKey,
        mut progress: impl FnMut(u64) + Send,
    ) -> Result<Option<CopiedPages>, BlobError> {
        let mut indices = chunk_indices(&(0..size));
        let mut copied = None;
        while !indices.is_empty() {
            let part = source.chunks(self, indices.clone(), &mut Pace::default()).await?;
            let epochs = part.chunks.chunk_by(|one, other| one.index == other.index);
            let newest = epochs.filter_map(|epochs| source.view().newest(epochs));
            let chunks: Vec<_> =
                newest.map(|stored| (stored.index, stored.chunk.clone())).collect();
            if !chunks.is_empty() {
                copied = Some(self.copy_chunks(target, copied, chunks).await?);
            }
            indices.start = part.next.unwrap_or(indices.end);
            progress(size.min(indices.start.saturating_mul(CHUNK_BYTES)));
        }
        Ok(copied)
    }

    /// Writes chunks of a content that no blob has.
    async fn copy_chunks(
        &self,
        target: &BlobKey,
        before: Option<CopiedPages>,
        chunks: Vec<(u64, PageChunk)>,
    ) -> Result<CopiedPages, BlobError> {
        let blob = target.clone();
        let mut spec = ChangeSpec::new(blob.domain());
        let row_of = |copied: CopiedPages| blob.row(BlobRow::Retired, &[copied.reserved.get()]);
        let before = before.map(|before| (before, spec.read(row_of(before))));
        transact(&*self.engine, spec, move |reads, version| {
            if let Some((before, row)) = before {
                // Otherwise the first parts may be deleted by now.
                check_reserved(reads.get(row), before.reserved, version)?;
            }
            let reserved = version.ticks();
            let generation = before.map_or(reserved.get(), |(before, _)| before.generation);
            let mut writes = Writes::with_capacity(chunks.len() + 2);
            for (index, chunk) in &chunks {
                let place = (generation, *index, 0);
                writes.put(keys::chunk(blob.container, &blob.name, place), chunk.encode());
            }
            if let Some((_, row)) = before {
                writes.delete(reads.key(row).clone());
            }
            let retired = Retired { generation: Some(generation), ..Retired::default() };
            writes.put(blob.row(BlobRow::Retired, &[reserved.get()]), retired.encode());
            Ok::<_, BlobError>((writes, CopiedPages { generation, reserved }))
        })
        .await?
    }
}
