//! Compacting the rows of an append blob into objects.

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Lock, ScanLimit, Writes, transact};

use super::{
    COMPACTED_FROM,
    pieces::{PieceSource, StoredPiece},
};
use crate::{
    blobs::{BlobKey, Blobs, NewContent, decode_record},
    error::BlobError,
    extent::EXTENT_BYTES,
    keys::{self, BlobRow, PieceForm},
    record::{AppendContent, Content, Part},
    stored::Stored as _,
    upload::{PublishedBy, SmallContent, Upload, Uploaded},
};

/// Rows that are read at once.
const SCAN: ScanLimit = ScanLimit { rows: 1024, bytes: 1024 * 1024 };
/// Most rows that become one object: they are deleted in one change.
const ROWS_MAX: usize = 2048;
/// Fewer bytes between two objects stay as they are.
const BYTES_MIN: u64 = 256 * 1024;

/// Rows that follow each other.
#[derive(Debug, Default)]
struct RowRun {
    /// The offset behind the last one, and behind an object that follows.
    end: u64,
    /// Their ends.
    ends: Vec<u64>,
    /// Their bytes.
    rows: Vec<Bytes>,
    /// Length, in bytes.
    bytes: u64,
    /// Whether no row can be added: it has an object's length, or an object follows.
    is_complete: bool,
}

/// What becomes of a run.
#[derive(Debug, Clone)]
enum CompactedRun {
    /// It becomes this content.
    Object(Part),
    /// It stays as it is.
    Kept,
}

impl Blobs {
    /// Compacts the rows of a blob, if they are enough.
    ///
    /// # Errors
    /// A failed read, a failed commit, or an error of the object store; what was compacted remains.
    pub(crate) async fn compact(&self, blob: &BlobKey) -> Result<(), BlobError> {
        loop {
            let Some(content) = self.appended_content(blob).await? else { return Ok(()) };
            if content.row_bytes < COMPACTED_FROM {
                return Ok(());
            }
            let run = match self.next_run(blob, content).await {
                // Another process may have compacted it meanwhile.
                Err(error) if self.appended_content(blob).await? == Some(content) => {
                    return Err(error);
                }
                Err(_) => return Ok(()),
                Ok(run) => run,
            };
            if !run.is_complete || !self.compact_run(blob, content, run).await? {
                return Ok(());
            }
        }
    }

    /// The content of an append blob, if there is one.
    async fn appended_content(&self, blob: &BlobKey) -> Result<Option<AppendContent>, BlobError> {
        let value = self.engine.get(&blob.row(BlobRow::Record, &[])).await?;
        match decode_record(value.as_ref())?.map(|record| record.content) {
            Some(Content::Append(content)) => Ok(Some(content)),
            _ => Ok(None),
        }
    }

    /// The rows from where the last compaction ended.
    async fn next_run(&self, blob: &BlobKey, content: AppendContent) -> Result<RowRun, BlobError> {
        let mut run = RowRun { end: content.compacted_to, ..RowRun::default() };
        while !run.is_complete && run.end < content.size {
            let place = (content.generation, run.end);
            let span = keys::pieces_after(blob.container, &blob.name, place);
            let scan = self.engine.scan(&span, SCAN).await?;
            let before = run.end;
            for entry in &scan.entries {
                run.add(StoredPiece::of(entry)?)?;
                if run.is_complete || run.end >= content.size {
                    break;
                }
            }
            if run.end == before && !run.is_complete {
                return Err(BlobError::corrupt(format!("the piece at {before} is missing")));
            }
        }
        Ok(run)
    }

    /// Makes an object of a run that is long enough; returns false where the blob was replaced meanwhile.
    async fn compact_run(
        &self,
        blob: &BlobKey,
        content: AppendContent,
        mut run: RowRun,
    ) -> Result<bool, BlobError> {
        if run.bytes < BYTES_MIN {
            let (run, kept) = ((content, run), CompactedRun::Kept);
            return self.publish_run(blob, run, kept, PublishedBy::NEVER_LATE).await;
        }
        let mut upload = Upload::new(self, SmallContent::Object, false);
        for row in run.rows.drain(..) {
            upload.push(row).await?;
        }
        let Uploaded { content: new, written, .. } = upload.finish().await?;
        let NewContent::Whole(part) = new else {
            return Err(BlobError::corrupt("compacted content"));
        };
        let outcome = CompactedRun::Object(part);
        written
            .publish(|publish_by| self.publish_run(blob, (content, run), outcome, publish_by))
            .await
    }

    /// Replaces the rows of a run by what becomes of them.
    async fn publish_run(
        &self,
        blob: &BlobKey,
        (seen, run): (AppendContent, RowRun),
        outcome: CompactedRun,
        publish_by: PublishedBy,
    ) -> Result<bool, BlobError> {
        let mut spec = ChangeSpec::new(blob.domain());
        let record = spec.read(blob.row(BlobRow::Record, &[]));
        if let CompactedRun::Object(part) = &outcome {
            spec.also(keys::own_domain(&keys::live(part.content)), Lock::Exclusive);
        }
        let (blob, compaction) = (blob.clone(), blob.row(BlobRow::Compaction, &[]));
        let piece =
            move |end, form| keys::piece(blob.container, &blob.name, (seen.generation, end), form);
        transact(&*self.engine, spec, move |reads, version| {
            publish_by.check(version)?;
            let Some(mut current) = decode_record(reads.get(record))? else {
                return Ok((Writes::new(), false));
            };
            let Content::Append(content) = current.content else {
                return Ok((Writes::new(), false));
            };
            let is_same = |of: AppendContent| (of.generation, of.compacted_to);
            if is_same(content) != is_same(seen) {
                return Ok((Writes::new(), false));
            }
            let row_bytes = content.row_bytes.saturating_sub(run.bytes);
            let mut writes = Writes::with_capacity(run.ends.len() + 4);
            current.content =
                Content::Append(AppendContent { compacted_to: run.end, row_bytes, ..content });
            writes.put(reads.key(record).clone(), current.encode());
            if row_bytes < COMPACTED_FROM {
                writes.delete(compaction.clone());
            }
            if let (CompactedRun::Object(part), Some(last)) = (&outcome, run.ends.last()) {
                for end in &run.ends {
                    writes.delete(piece(*end, PieceForm::Bytes));
                }
                writes.put(piece(*last, PieceForm::Object), part.encode());
                writes.put(keys::live(part.content), keys::encode_number(part.size));
            }
            Ok::<_, BlobError>((writes, true))
        })
        .await?
    }
}

impl RowRun {
    /// Adds a piece that follows.
    fn add(&mut self, piece: StoredPiece) -> Result<(), BlobError> {
        if piece.start()? != self.end {
            return Err(BlobError::corrupt(format!("the piece at {} is missing", self.end)));
        }
        let bytes = piece.bytes();
        match piece.source {
            PieceSource::Objects(_) => {
                self.end = piece.end;
                self.is_complete = !self.rows.is_empty();
            }
            PieceSource::Row(_) if self.bytes + bytes > EXTENT_BYTES => self.is_complete = true,
            PieceSource::Row(row) => {
                self.end = piece.end;
                self.ends.push(piece.end);
                self.rows.push(row);
                self.bytes += bytes;
                self.is_complete = self.bytes == EXTENT_BYTES || self.rows.len() >= ROWS_MAX;
            }
        }
        Ok(())
    }
}
