//! `segments` and `undelete`: the Parquet files of a stream.

use serde_json::{Value, json};
use trestle_command::{
    errors::CliError,
    output::{Context, counted},
    retry::repeated,
};
use trestle_proto::log::v1::{ListSegmentsRequest, LogSegment, UndeleteSegmentsRequest};

use super::{SegmentsArgs, when};
use crate::datetime;

/// Prints the segments that overlap a time range.
pub(super) async fn list(context: &mut Context, args: SegmentsArgs) -> Result<(), CliError> {
    let SegmentsArgs { stream, since, until } = args;
    let (start_time, end_time) = when::range(since, until, when::now())?;
    let mut request =
        ListSegmentsRequest { stream, start_time, end_time, ..ListSegmentsRequest::default() };
    let mut printed = false;
    loop {
        let session = &context.session;
        let call = async || Ok(session.logs().list_segments(request.clone()).await?);
        let page = repeated::<_, CliError>(call).await?.into_inner();
        let records: Vec<_> = page.segments.iter().map(record).collect();
        context.output.records(&records, &["url", "records", "bytes", "min_time", "max_time"])?;
        printed |= !records.is_empty();
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return context.output.unless_empty(printed, "no segments");
        }
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

fn record(segment: &LogSegment) -> Value {
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
    })
}
