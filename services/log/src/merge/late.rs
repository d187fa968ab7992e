//! Small segments of past days: those of late records. A search of all of them is made a part at a time, and again once
//! the manifest has changed.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{STEP, choose, decode};
use crate::{
    error::LogError,
    keys::{self, StreamRow},
    layout::DAY_NANOS,
    logs::Logs,
    stream::{SegmentRecord, StreamId},
};

/// Most streams whose searches are kept. One more, and all begin again.
const SEARCHES_MAX: usize = 10_000;

/// The searches of the streams. They can be reconstructed.
#[derive(Debug, Default)]
pub(crate) struct LateMerges(Mutex<HashMap<StreamId, LateSearch>>);

/// A search for small segments of past days.
#[derive(Debug, Clone, Copy, Default)]
struct LateSearch {
    /// The time from which on it continues.
    from: u64,
    /// The snapshot of the manifest when it began.
    snapshot: u64,
    /// Whether it is at its end.
    is_done: bool,
}

impl LateMerges {
    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, LateSearch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, id: StreamId, snapshot: u64) -> LateSearch {
        let begun =
            self.lock().get(&id).copied().filter(|it| !it.is_done || it.snapshot == snapshot);
        begun.unwrap_or(LateSearch { snapshot, ..LateSearch::default() })
    }

    fn put(&self, id: StreamId, search: LateSearch) {
        let mut searches = self.lock();
        if searches.len() >= SEARCHES_MAX {
            searches.clear();
        }
        searches.insert(id, search);
    }
}

impl Logs {
    /// The segments to merge of those whose records are all older than `until`; none where the next part has none.
    pub(super) async fn choose_late(
        &self,
        id: StreamId,
        until: u64,
    ) -> Result<Option<Vec<SegmentRecord>>, LogError> {
        let Some(head) = self.streams.head(id).await? else { return Ok(None) };
        let search = self.late_merges.of(id, head.snapshot);
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
        self.late_merges.put(id, next);
        Ok(chosen)
    }
}
