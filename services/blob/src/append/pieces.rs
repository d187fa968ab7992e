//! Reading the pieces of an append blob by offset.

use std::{collections::VecDeque, ops::Range};

use bytes::{Bytes, BytesMut};
use futures::{Stream, TryStreamExt as _, stream};
use trestle_kv::{Entry, ScanLimit};
use trestle_model::limits::READ_MESSAGE_BYTES_MAX;

use crate::{
    blobs::{BlobKey, Blobs, inline, pieces_of_part},
    error::BlobError,
    extent::{Extent, to_usize},
    keys::{self, PieceForm},
    record::Part,
    stored::Stored as _,
};

/// Pieces that are read at once.
const SCAN: ScanLimit = ScanLimit { rows: 4096, bytes: READ_MESSAGE_BYTES_MAX };

/// A piece of an append blob with its place.
pub(super) struct StoredPiece {
    /// The offset behind its last byte.
    pub(super) end: u64,
    /// Where its bytes are.
    pub(super) source: PieceSource,
}

/// Where the bytes of a piece are.
pub(super) enum PieceSource {
    /// In its row, which is verified.
    Row(Bytes),
    /// In objects.
    Objects(Part),
}

impl StoredPiece {
    /// From a row.
    ///
    /// # Errors
    /// A row that differs from its checksum, or cannot be read.
    pub(super) fn of(entry: &Entry) -> Result<Self, BlobError> {
        let (end, form) = keys::piece_of(&entry.key)?;
        let source = match form {
            PieceForm::Bytes => {
                let bytes = entry.value.len().saturating_sub(8) as u64;
                PieceSource::Row(inline(Some(&entry.value), bytes)?)
            }
            PieceForm::Object => PieceSource::Objects(Part::decode(&entry.value)?),
        };
        Ok(Self { end, source })
    }

    /// Length, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        match &self.source {
            PieceSource::Row(row) => row.len() as u64,
            PieceSource::Objects(part) => part.size,
        }
    }

    /// The offset of its first byte.
    ///
    /// # Errors
    /// [`BlobError::Corrupt`].
    pub(super) fn start(&self) -> Result<u64, BlobError> {
        let start = self.end.checked_sub(self.bytes());
        start.ok_or_else(|| BlobError::corrupt("piece of an append blob"))
    }
}

/// A part of the content, of at most a message.
pub(crate) enum ReadStep {
    /// Bytes of rows.
    Bytes(Bytes),
    /// A range of an object.
    Object(Extent, Range<u64>),
    /// There is no piece at this offset.
    Missing(u64),
}

impl Blobs {
    /// What to read for a range of an append blob, in its order.
    pub(crate) fn appended(
        &self,
        blob: &BlobKey,
        generation: u64,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<ReadStep, BlobError>> + Send + use<> {
        let (blobs, blob) = (self.clone(), blob.clone());
        let steps = stream::try_unfold(range, move |rest| {
            let (blobs, blob) = (blobs.clone(), blob.clone());
            async move {
                if rest.is_empty() {
                    return Ok(None);
                }
                let (steps, next) = blobs.next_steps(&blob, generation, rest.clone()).await?;
                let steps = stream::iter(steps.into_iter().map(Ok));
                Ok::<_, BlobError>(Some((steps, next..rest.end)))
            }
        });
        steps.try_flatten()
    }

    /// The next steps, and the offset that they lead to.
    async fn next_steps(
        &self,
        blob: &BlobKey,
        generation: u64,
        range: Range<u64>,
    ) -> Result<(Vec<ReadStep>, u64), BlobError> {
        let span = keys::pieces_after(blob.container, &blob.name, (generation, range.start));
        let scan = self.engine.scan(&span, SCAN).await?;
        let mut steps = StepPlan { at: range.start, rows: VecDeque::new(), steps: Vec::new() };
        for entry in &scan.entries {
            if steps.at >= range.end {
                break;
            }
            if !steps.add(&StoredPiece::of(entry)?, range.end)? {
                break;
            }
        }
        steps.flush();
        if steps.at == range.start {
            return Ok((vec![ReadStep::Missing(range.start)], range.end));
        }
        Ok((steps.steps, steps.at))
    }
}

/// Steps so far, and the rows that the next one has.
struct StepPlan {
    at: u64,
    rows: VecDeque<Bytes>,
    steps: Vec<ReadStep>,
}

impl StepPlan {
    /// Adds a piece, up to `end`; returns false where it does not follow.
    fn add(&mut self, piece: &StoredPiece, end: u64) -> Result<bool, BlobError> {
        let start = piece.start()?;
        if start > self.at || piece.end <= self.at {
            return Ok(false);
        }
        let inside = self.at - start..piece.end.min(end) - start;
        self.at = start + inside.end;
        match &piece.source {
            PieceSource::Row(row) => {
                let held: usize = self.rows.iter().map(Bytes::len).sum();
                let bytes = row.slice(to_usize(inside.start)..to_usize(inside.end));
                if held + bytes.len() > READ_MESSAGE_BYTES_MAX {
                    self.flush();
                }
                self.rows.push_back(bytes);
            }
            PieceSource::Objects(part) => {
                self.flush();
                let steps = pieces_of_part(*part, inside);
                self.steps.extend(steps.map(|(extent, range)| ReadStep::Object(extent, range)));
            }
        }
        Ok(true)
    }

    /// Ends the step of rows.
    fn flush(&mut self) {
        let mut bytes = BytesMut::with_capacity(self.rows.iter().map(Bytes::len).sum());
        if self.rows.len() == 1 {
            self.steps.extend(self.rows.pop_front().map(ReadStep::Bytes));
            return;
        }
        self.rows.drain(..).for_each(|row| bytes.extend_from_slice(&row));
        if !bytes.is_empty() {
            self.steps.push(ReadStep::Bytes(bytes.freeze()));
        }
    }
}
