//! Small segments of past days: those of late records. A search of all of them is made a part at a time, and again once
//! the manifest has changed.

use super::{STEP, choose, decode};
use crate::{
    error::LogError,
    keys::{self, StreamRow},
    late_searches::LateSearch,
    layout::DAY_NANOS,
    logs::Logs,
    stream::{SegmentRecord, StreamId},
};

impl Logs {
    /// The segments to merge of those whose records are all older than `until`; none where the next part has none.
    pub(super) async fn choose_late(
        &self,
        id: StreamId,
        until: u64,
    ) -> Result<Option<Vec<SegmentRecord>>, LogError> {
        let Some(head) = self.streams.head(id).await? else { return Ok(None) };
        let search = self.late_searches.of(id, head.snapshot);
        if search.is_done {
            return Ok(None);
        }
        let mut late = keys::rows_before(StreamRow::Segment, id, until);
        late.start = keys::rows_from(StreamRow::Segment, id, search.from).start;
        let scan = self.engine.scan(&late, STEP).await?;
        let segments = decode(&scan.entries)?;
        let last = segments.last().filter(|_| scan.more).map(|last| last.max_time);
        let chosen = choose(self.readable(segments));
        let next = match last {
            // What is merged is searched again.
            _ if chosen.is_some() => search,
            // A day is searched as a whole, unless it has more segments than a part.
            Some(time) if time / DAY_NANOS * DAY_NANOS > search.from => {
                LateSearch { from: time / DAY_NANOS * DAY_NANOS, ..search }
            }
            Some(time) => LateSearch { from: time.max(search.from + 1), ..search },
            None => LateSearch { is_done: true, ..search },
        };
        self.late_searches.put(id, next);
        Ok(chosen)
    }
}
