//! `verify` and `drop-segment`: segments whose bytes are not as they were written.

use serde_json::{Value, json};
use tonic::Code;
use trestle_command::{
    client::Session,
    confirm::confirm,
    errors::CliError,
    output::{Context, Output, bytes, counted},
};
use trestle_proto::log::v1::{
    DropSegmentRequest, LogSegment, VerifySegmentRequest, VerifySegmentResponse,
};

use super::{
    SegmentsArgs,
    segments::{self, SegmentListing},
};
use crate::verify::{DamagedItem, VerifiedItems, is_of_service};

/// A segment that cannot be read.
pub(crate) struct DamagedSegment {
    segment: LogSegment,
    error: String,
    /// How many of its records can be read; none where that is unknown.
    readable: Option<u64>,
}

/// Has the server read the segments that overlap a time range.
///
/// # Errors
/// [`CliError::Rejected`] where some cannot be read, which is reported on standard output.
pub(super) async fn run(context: &mut Context, args: SegmentsArgs) -> Result<(), CliError> {
    let stream = args.stream.clone();
    let Context { session, output } = context;
    let listing = SegmentListing::new(session, args)?;
    let mut verified = VerifiedItems::new(output.progress(None, 0));
    let found = &mut |damaged| report(output, &damaged);
    read_listed(session, (&stream, listing), &mut verified, found).await?;
    let (items, read, damaged) = (verified.items, verified.bytes, verified.damaged);
    drop(verified);
    let text =
        format!("verified {} ({}), {damaged} damaged", counted(items, "segment"), bytes(read));
    let object = json!({ "verified": items, "damaged": damaged, "bytes": read });
    context.output.either(&text, &object)?;
    context.output.flush()?;
    if damaged > 0 { Err(CliError::Rejected) } else { Ok(()) }
}

/// Has the server read all segments of a stream. `found` is called with each that it cannot read, and the rest is read.
///
/// # Errors
/// An error that retries did not end, and those of `found`.
pub(crate) async fn read(
    session: &Session,
    stream: &str,
    verified: &mut VerifiedItems,
    found: &mut impl FnMut(DamagedSegment) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let args = SegmentsArgs { stream: stream.to_owned(), since: None, until: None };
    let listing = SegmentListing::new(session, args)?;
    read_listed(session, (stream, listing), verified, found).await
}

async fn read_listed(
    session: &Session,
    (stream, mut listing): (&str, SegmentListing),
    verified: &mut VerifiedItems,
    found: &mut impl FnMut(DamagedSegment) -> Result<(), CliError>,
) -> Result<(), CliError> {
    while let Some(page) = listing.next().await? {
        for segment in page {
            let problem = match verify(session, stream, segment.id).await {
                Ok(read) => {
                    let readable = read.readable_records;
                    let damage = read.segment.unwrap_or_default().damage;
                    (!damage.is_empty()).then_some((damage, Some(readable)))
                }
                // Merged or past its retention since it was listed.
                Err(CliError::Call(status)) if status.code() == Code::InvalidArgument => continue,
                // The object cannot be read now; the others may.
                Err(CliError::Call(status)) if is_of_service(&status) => {
                    Some((status.message().to_owned(), None))
                }
                Err(error) => return Err(error),
            };
            let bytes = if problem.is_none() { segment.bytes } else { 0 };
            verified.add(1, bytes, "segment");
            if let Some((error, readable)) = problem {
                verified.damaged += 1;
                found(DamagedSegment { segment, error, readable })?;
            }
        }
    }
    Ok(())
}

/// What is damaged, for people.
pub(crate) fn damage(damaged: &DamagedSegment) -> DamagedItem {
    let item = format!("segment {}", damaged.segment.id);
    DamagedItem { item, error: damaged.error.clone() }
}

async fn verify(
    session: &Session,
    stream: &str,
    id: u64,
) -> Result<VerifySegmentResponse, CliError> {
    let mut retries = session.first_tries();
    loop {
        let request = VerifySegmentRequest { stream: stream.to_owned(), id };
        match session.logs().verify_segment(request).await {
            Ok(verified) => return Ok(verified.into_inner()),
            Err(status) => retries.wait(CliError::from(status)).await?,
        }
    }
}

/// Prints what is in a segment that cannot be read.
fn report(
    output: &mut Output,
    DamagedSegment { segment, error, readable }: &DamagedSegment,
) -> Result<(), CliError> {
    let mut object = segments::record(segment);
    let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (url, from, to) = (field("url"), field("min_time"), field("max_time"));
    let shown = readable.map_or("unknown".to_owned(), |readable| readable.to_string());
    let text = format!(
        "damaged: id=`{}`, records=`{}`, readable=`{shown}`, from=`{from}`, to=`{to}`, url=`{url}`, error=`{error}`",
        segment.id, segment.records,
    );
    if let Some(fields) = object.as_object_mut() {
        fields.insert("damage".to_owned(), json!(error));
        fields.insert("readable_records".to_owned(), json!(readable));
    }
    output.either(&text, &object)?;
    output.flush()
}

/// Removes a damaged segment.
pub(super) async fn drop_segment(
    context: &mut Context,
    (stream, id): (String, u64),
    yes: bool,
) -> Result<(), CliError> {
    confirm(yes, "removing a segment with its records", "segment", &id.to_string())?;
    let request = DropSegmentRequest { stream: stream.clone(), id };
    let dropped = context.session.logs().drop_segment(request).await?.into_inner();
    let segment = dropped.segment.unwrap_or_default();
    let records = counted(segment.records, "record");
    let text = format!("dropped segment {id} of stream {stream} with {records}");
    context.output.either(&text, &segments::record(&segment))
}
