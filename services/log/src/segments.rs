//! Listing the segments of a stream.

use std::ops::Range;

use trestle_kv::{ScanLimit, after_key};
use trestle_model::page;

use crate::{
    error::LogError,
    keys::{self, StreamRow},
    logs::Logs,
    stored::StoredForm as _,
    stream::{Head, SegmentRecord},
    streams::{LIST_BYTES_MAX, OpenStream, from_token},
};

/// A page of segments.
#[derive(Debug)]
pub(crate) struct SegmentPage {
    /// The segments, by the time of the newest record of each.
    pub(crate) segments: Vec<SegmentRecord>,
    /// Where the next page starts, if there may be one.
    pub(crate) next_page_token: Option<String>,
    /// The number of the snapshot of the manifest.
    pub(crate) snapshot: u64,
}

impl Logs {
    /// One page of the segments with records in a range of times, in nanoseconds since 1970.
    ///
    /// # Errors
    /// A token of another listing, [`LogError::StreamNotFound`], or a failed read.
    pub(crate) async fn segments(
        &self,
        stream: &OpenStream,
        times: Range<u64>,
        page_size: usize,
        page_token: &str,
    ) -> Result<SegmentPage, LogError> {
        let id = stream.record.id;
        let identity = page::request_identity(&[
            b"segments",
            &id.0.to_be_bytes(),
            &times.start.to_be_bytes(),
            &times.end.to_be_bytes(),
        ]);
        let span = keys::rows_from(StreamRow::Segment, id, times.start);
        let span = from_token(span, page_token, identity)?;
        let snapshot = self.engine.snapshot().await?;
        let head = snapshot.get(&keys::head(id)).await?;
        let head = head.ok_or_else(|| LogError::StreamNotFound(stream.name.clone()))?;
        let limit = ScanLimit { rows: page_size, bytes: LIST_BYTES_MAX };
        let scan = snapshot.scan(&span, limit).await?;
        let last = scan.entries.last().filter(|_| scan.more);
        let next_page_token = last.map(|last| page::encode(identity, &after_key(&last.key)));
        let segments = scan.entries.iter().map(|entry| SegmentRecord::decode(&entry.value));
        let mut segments = segments.collect::<Result<Vec<_>, _>>()?;
        segments.retain(|segment| segment.min_time < times.end);
        Ok(SegmentPage { segments, next_page_token, snapshot: Head::decode(&head)?.snapshot })
    }
}
