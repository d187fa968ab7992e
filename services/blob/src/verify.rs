//! Reading the blobs of a container to their ends, with all that can be restored or committed: snapshots, versions,
//! deleted states, and staged blocks. What cannot be read is named, and the others are read nevertheless.

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use trestle_kv::{Entry, ScanLimit, Snapshot, Span, after_key};

use crate::{
    blobs::{BlobKey, BlobState, Blobs, decode_stored, pieces_of_part},
    blocks::staged,
    error::BlobError,
    keys::{self, BlobRow},
    record::{BlobRecord, ContainerId, Staging},
    stored::Stored as _,
};

/// The kinds of rows that are read, in the order of their keys.
const KINDS: [BlobRow; 3] = [BlobRow::Record, BlobRow::Staging, BlobRow::Past];
/// Rows that are read at once.
const STEP: ScanLimit = ScanLimit { rows: 256, bytes: 1024 * 1024 };

/// Content that was read.
#[derive(Debug)]
pub(crate) struct VerifiedContent {
    /// The blob.
    pub(crate) blob: BlobKey,
    /// The state that has it; none for staged blocks.
    pub(crate) state: Option<(BlobState, BlobRecord)>,
    /// How much of it could be read, in bytes.
    pub(crate) bytes: u64,
    /// Why the rest could not; none where there is no rest.
    pub(crate) error: Option<BlobError>,
    /// The key of its row. The next one continues behind it.
    pub(crate) row: Bytes,
}

impl Blobs {
    /// Reads the contents of the blobs whose names begin so, from a row on; so many at a time. What is deleted
    /// meanwhile is left out.
    pub(crate) fn verify(
        &self,
        (container, prefix): (ContainerId, &str),
        behind: Option<&[u8]>,
        at_once: usize,
    ) -> impl Stream<Item = Result<VerifiedContent, BlobError>> + Send + use<> {
        let spans: Vec<_> = KINDS
            .into_iter()
            .map(|kind| keys::named(kind, container, prefix))
            .filter_map(|span| rest_of(span, behind))
            .collect();
        let blobs = self.clone();
        let parts = stream::iter(spans).flat_map(move |span| {
            let blobs = blobs.clone();
            stream::try_unfold(Some(span), move |span| {
                let blobs = blobs.clone();
                async move {
                    let Some(span) = span else { return Ok(None) };
                    let scan = blobs.engine.scan(&span, STEP).await?;
                    let last = scan.entries.last().filter(|_| scan.more);
                    let rest = last.map(|last| Span::new(after_key(&last.key), span.end));
                    let entries = stream::iter(scan.entries.into_iter().map(Ok));
                    Ok::<_, BlobError>(Some((entries, rest)))
                }
            })
        });
        let blobs = self.clone();
        let verified = parts.try_flatten().map_ok(move |entry| {
            let blobs = blobs.clone();
            async move { blobs.verify_row(entry).await }
        });
        verified.try_buffered(at_once).try_filter_map(|found| std::future::ready(Ok(found)))
    }

    /// Reads the content of a row; none where it was changed since.
    async fn verify_row(&self, entry: Entry) -> Result<Option<VerifiedContent>, BlobError> {
        let (container, name) = keys::blob_of(&entry.key)?;
        let (blob, row) = (BlobKey { container, name }, entry.key.clone());
        let snapshot: Arc<dyn Snapshot> = self.engine.snapshot().await?.into();
        if snapshot.get(&row).await? != Some(entry.value.clone()) {
            return Ok(None);
        }
        let (mut bytes, mut state) = (0, None);
        let read = match keys::kind_of(&row) {
            Some(BlobRow::Staging) => self.verify_staged(snapshot, &blob, &entry, &mut bytes).await,
            _ => self.verify_state(snapshot, &blob, (&entry, &mut state), &mut bytes).await,
        };
        let error = read.err();
        if error.is_some() && self.engine.get(&row).await? != Some(entry.value) {
            return Ok(None);
        }
        Ok(Some(VerifiedContent { blob, state, bytes, error, row }))
    }

    async fn verify_state(
        &self,
        snapshot: Arc<dyn Snapshot>,
        blob: &BlobKey,
        (entry, found): (&Entry, &mut Option<(BlobState, BlobRecord)>),
        bytes: &mut u64,
    ) -> Result<(), BlobError> {
        let state = match keys::kind_of(&entry.key) {
            Some(BlobRow::Past) => BlobState::Past(keys::time_of(&entry.key)?),
            _ => BlobState::Current,
        };
        let Some(record) = decode_stored(Some(&entry.value))? else { return Ok(()) };
        *found = Some((state, record.clone()));
        let opened = self.open_stored(snapshot, (blob.clone(), state, record)).await?;
        let mut pieces = std::pin::pin!(self.clone().bytes(&opened));
        while let Some(piece) = pieces.try_next().await? {
            *bytes += piece.len() as u64;
        }
        Ok(())
    }

    async fn verify_staged(
        &self,
        snapshot: Arc<dyn Snapshot>,
        blob: &BlobKey,
        entry: &Entry,
        bytes: &mut u64,
    ) -> Result<(), BlobError> {
        let staging = Staging::decode(&entry.value)?;
        let mut first = None;
        let blocks = staged(&*snapshot, blob, staging.generation).await?;
        // Their objects take long to read, and what is removed meanwhile is found by the row.
        drop(snapshot);
        for block in blocks {
            for (extent, range) in pieces_of_part(block.part, 0..block.part.size) {
                match self.objects.read(extent, range).await {
                    Ok(Some(piece)) => *bytes += piece.len() as u64,
                    Ok(None) => {
                        let object = extent.id.object();
                        let missing = BlobError::corrupt(format!("object {object} is missing"));
                        first = first.or(Some(missing));
                    }
                    Err(error) => first = first.or(Some(error)),
                }
            }
        }
        first.map_or(Ok(()), Err)
    }
}

/// What of a span is behind a row: all of it where the row is of an earlier kind, nothing where it is of a later one.
fn rest_of(span: Span, behind: Option<&[u8]>) -> Option<Span> {
    let Some(behind) = behind else { return Some(span) };
    let start = span.start.max(after_key(behind).into());
    let rest = Span::new(start, span.end);
    (!rest.is_empty()).then_some(rest)
}
