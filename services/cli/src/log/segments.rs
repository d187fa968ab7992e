//! `segments` and `undelete`: the Parquet files of a stream.

use serde_json::{Value, json};
use trestle_command::{
    client::Session,
    errors::CliError,
    output::{Context, counted},
    retry::repeated,
};
use trestle_proto::log::v1::{ListSegmentsRequest, LogSegment, UndeleteSegmentsRequest};

use super::{SegmentsArgs, when};
use crate::datetime;

/// The segments that overlap a time range, page by page.
pub(super) struct SegmentListing {
    session: Session,
    request: ListSegmentsRequest,
    is_complete: bool,
}

impl SegmentListing {
    /// From the first page on.
    ///
    /// # Errors
    /// [`CliError::Usage`] for a range without time.
    pub(super) fn new(session: &Session, args: SegmentsArgs) -> Result<Self, CliError> {
        let SegmentsArgs { stream, since, until } = args;
        let (start_time, end_time) = when::range(since, until, when::now())?;
        let request =
            ListSegmentsRequest { stream, start_time, end_time, ..ListSegmentsRequest::default() };
        Ok(Self { session: session.clone(), request, is_complete: false })
    }

    /// The next page; none after the last.
    ///
    /// # Errors
    /// Those of the call.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<LogSegment>>, CliError> {
        if self.is_complete {
            return Ok(None);
        }
        let call = async || Ok(self.session.logs().list_segments(self.request.clone()).await?);
        let page = repeated::<_, CliError>(call).await?.into_inner();
        self.is_complete = page.next_page_token.is_empty();
        self.request.page_token = page.next_page_token;
        Ok(Some(page.segments))
    }
}

/// Restores the segments that the retention of a stream removed.
pub(super) async fn undelete(context: &mut Context, stream: String) -> Result<(), CliError> {
    let request = UndeleteSegmentsRequest { stream: stream.clone() };
    let restored = context.session.logs().undelete_segments(request).await?.into_inner();
    let mut text = format!(
        "restored {} of stream {stream} with {}",
        counted(restored.segments, "segment"),
        counted(restored.records, "record")
    );
    if restored.expired_segments > 0 {
        let expired = counted(restored.expired_segments, "segment");
        text += &format!("; {expired} past the retention: give the stream a longer one first");
    }
    let object = json!({
        "stream": stream, "segments": restored.segments, "records": restored.records,
        "expired_segments": restored.expired_segments,
    });
    context.output.either(&text, &object)
}

/// Prints the segments that overlap a time range.
pub(super) async fn list(context: &mut Context, args: SegmentsArgs) -> Result<(), CliError> {
    let mut listing = SegmentListing::new(&context.session, args)?;
    let mut printed = false;
    while let Some(segments) = listing.next().await? {
        let records: Vec<_> = segments.iter().map(record).collect();
        let mut columns = vec!["url", "records", "bytes", "min_time", "max_time"];
        let is_damaged = segments.iter().any(|segment| !segment.damage.is_empty());
        columns.extend(is_damaged.then_some("damage"));
        context.output.records(&records, &columns)?;
        printed |= !records.is_empty();
    }
    context.output.unless_empty(printed, "no segments")
}

/// A segment as an object.
pub(super) fn record(segment: &LogSegment) -> Value {
    json!({
        "id": segment.id,
        "url": segment.url,
        "bytes": segment.bytes,
        "records": segment.records,
        "min_time": segment.min_time.as_ref().and_then(datetime::format),
        "max_time": segment.max_time.as_ref().and_then(datetime::format),
        "min_sequence": segment.min_sequence,
        "max_sequence": segment.max_sequence,
        "level": segment.level,
        "create_time": segment.create_time.as_ref().and_then(datetime::format),
        "damage": Some(&segment.damage).filter(|damage| !damage.is_empty()),
    })
}
