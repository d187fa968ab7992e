//! Reads the rows of a segment in any order, for a sink. Nothing of a row is encoded, and only the columns of the sink
//! and of the predicate are read.

use std::sync::Arc;

use super::{GroupRows, SegmentReader, chunk::fold_rows};
use crate::{
    row::{Property, RowSink},
    segment::{
        plan::{ColumnSet, next_chunk},
        source::ReadSegmentError,
    },
};

/// See the module.
pub(crate) struct FoldedSegment {
    reader: SegmentReader,
    columns: Arc<ColumnSet>,
}

impl FoldedSegment {
    /// The rows of a read that has not begun, for a sink that reads these properties.
    pub(crate) fn new(reader: SegmentReader, mut properties: Vec<Property>) -> Self {
        let predicate = reader.read.predicate.as_ref();
        properties.extend(predicate.iter().flat_map(|predicate| predicate.properties()));
        let columns = Arc::new(ColumnSet::of_properties(&reader.metadata.schema, &properties));
        Self { reader, columns }
    }

    /// How many rows were examined so far.
    pub(crate) fn rows_scanned(&self) -> u64 {
        self.reader.rows_scanned
    }

    /// Has the sink take in the matching rows of the next chunk. Returns whether there was one.
    ///
    /// # Errors
    /// Every kind of [`ReadSegmentError`]. The sink is lost then.
    pub(crate) async fn next<S: RowSink>(
        &mut self,
        sink: S,
    ) -> Result<(S, bool), ReadSegmentError> {
        let Self { reader, columns } = self;
        reader.prune().await?;
        while reader.groups.front().is_some_and(|group| group.rows.is_empty()) {
            reader.groups.pop_front();
        }
        let direction = reader.read.direction;
        let Some(left) = reader.groups.front_mut() else { return Ok((sink, false)) };
        let (group, ahead) = (left.group, left.rows.clone());
        let rows = next_chunk(&reader.metadata, left, direction, (columns, false));
        let rows = GroupRows { group, rows };
        reader.rows_scanned += rows.rows.len() as u64;
        let ranges = reader.hold_ahead(&rows, ahead, columns).await?;
        let fold = move |request: &_| fold_rows(request, sink);
        let sink = reader.blocking(rows, Arc::clone(columns), ranges, fold).await?;
        Ok((sink, true))
    }
}
