//! The first unsealed records of a read, as many as it may hold.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;

use super::{ReadPlan, RowPosition};
use crate::{batch::BatchView, error::LogError, record::UnsealedRow, segment::SealedRow};

/// Bytes of a row beside those of its record.
const ROW_BYTES: usize = size_of::<TailRow>();

/// An unsealed record. Its resource and its scope are shared with other records, of which each is returned with a copy.
#[derive(Debug, Clone)]
pub(super) struct TailRow {
    pub(super) position: RowPosition,
    own: Bytes,
    origin: Bytes,
}

impl TailRow {
    /// The record as it is returned.
    pub(super) fn into_row(self) -> SealedRow {
        let Self { position: (time, sequence), own, origin } = self;
        let record = match origin.is_empty() {
            true => own,
            false => [own, origin].concat().into(),
        };
        SealedRow { time, sequence, record }
    }
}

/// See the module.
pub(super) struct TailSlice<'p> {
    plan: &'p ReadPlan,
    rows_max: usize,
    bytes_max: usize,
    rows: Vec<TailRow>,
    /// The bytes of the rows, each origin once.
    bytes: usize,
    /// The last row, once later ones were dropped.
    last: Option<RowPosition>,
    /// How many records were examined.
    pub(super) scanned: u64,
}

impl<'p> TailSlice<'p> {
    /// The first rows of a plan: at most so many, and of so many bytes.
    pub(super) fn new(plan: &'p ReadPlan, rows_max: usize, bytes_max: usize) -> Self {
        let (rows, bytes, last, scanned) = (Vec::new(), 0, None, 0);
        Self { plan, rows_max, bytes_max, rows, bytes, last, scanned }
    }

    /// The bytes that are held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn is_before(&self, one: RowPosition, other: RowPosition) -> bool {
        if self.plan.is_backward { one > other } else { one < other }
    }

    /// Whether nothing from this position on is a row of the slice.
    pub(super) fn ends_before(&self, position: RowPosition) -> bool {
        self.last.is_some_and(|last| self.is_before(last, position))
    }

    /// Takes the records of a batch that match and are among the first. Returns the least and the greatest time of all
    /// that are within the bounds of the plan.
    ///
    /// # Errors
    /// [`LogError::Corrupt`].
    pub(super) fn take_matching(
        &mut self,
        batch: &[u8],
        first: u64,
    ) -> Result<Option<(u64, u64)>, LogError> {
        let mut times = None;
        // Those of the group before: a group has the slices of its batch.
        let mut shared: Option<((*const u8, *const u8), Bytes)> = None;
        for row in BatchView::parse(batch)?.rows(first) {
            let row = row?;
            self.scanned += 1;
            let position = (row.time, row.sequence);
            if !self.plan.has(position) {
                continue;
            }
            let (min, max) = times.unwrap_or((row.time, row.time));
            times = Some((min.min(row.time), max.max(row.time)));
            if self.ends_before(position) {
                continue;
            }
            let group = (row.resource.as_ptr(), row.scope.as_ptr());
            let row = UnsealedRow::parse(row)?;
            if self.plan.predicate.as_ref().is_some_and(|predicate| !predicate.matches(&row)) {
                continue;
            }
            let own = Bytes::from(row.encode_own(self.plan.fields)?.into_boxed_slice());
            let origin = match &shared {
                Some((of, origin)) if *of == group => origin.clone(),
                _ => {
                    let origin = Bytes::from(row.encode_origin(self.plan.fields)?);
                    self.bytes += origin.len();
                    shared = Some((group, origin.clone()));
                    origin
                }
            };
            self.bytes += own.len() + ROW_BYTES;
            self.rows.push(TailRow { position, own, origin });
            if self.bytes > self.bytes_max || self.rows.len() > self.rows_max.saturating_mul(2) {
                self.cut();
                // Its bytes may not be counted any more.
                shared = None;
            }
        }
        Ok(times)
    }

    fn sort(&mut self) {
        self.rows.sort_unstable_by_key(|row| row.position);
        if self.plan.is_backward {
            self.rows.reverse();
        }
    }

    /// Drops the last rows, so that half of the bytes are left, but for one row.
    fn cut(&mut self) {
        self.sort();
        let (mut origins, mut bytes, mut kept) = (HashSet::new(), 0, 0);
        for row in self.rows.iter().take(self.rows_max) {
            let origin = if origins.insert(row.origin.as_ptr()) { row.origin.len() } else { 0 };
            let with = bytes + row.own.len() + origin + ROW_BYTES;
            if kept > 0 && with > self.bytes_max / 2 {
                break;
            }
            (bytes, kept) = (with, kept + 1);
        }
        if kept < self.rows.len() {
            self.rows.truncate(kept);
            self.last = self.rows.last().map(|row| row.position);
        }
        self.bytes = bytes;
    }

    /// The rows in order, and the last one behind which there may be more.
    pub(super) fn finish(mut self) -> (VecDeque<TailRow>, Option<RowPosition>) {
        self.sort();
        if self.rows.len() > self.rows_max {
            self.cut();
        }
        (self.rows.into(), self.last)
    }
}
