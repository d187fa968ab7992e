//! `verify` and `drop-segment`: segments whose bytes are not as they were written.

use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use trestle_command::{
    client::Session,
    confirm::confirm,
    errors::CliError,
    output::{Context, bytes, counted},
};
use trestle_proto::log::v1::{
    DropSegmentRequest, LogSegment, VerifySegmentRequest, VerifySegmentResponse,
};

use super::{
    SegmentsArgs,
    segments::{self, SegmentListing},
};

/// Has the server read the segments that overlap a time range.
///
/// # Errors
/// [`CliError::Rejected`] where some cannot be read, which is reported on standard output.
pub(super) async fn run(context: &mut Context, args: SegmentsArgs) -> Result<(), CliError> {
    let stream = args.stream.clone();
    let progress = context.output.progress(None, 0);
    let mut listing = SegmentListing::new(&context.session, args)?;
    let (mut count, mut read, mut damaged) = (0_u64, 0, 0_u64);
    while let Some(page) = listing.next().await? {
        for segment in page {
            let problem = match verify(&context.session, &stream, segment.id).await {
                Ok(verified) => {
                    let readable = verified.readable_records;
                    let found = verified.segment.unwrap_or_default();
                    (!found.damage.is_empty()).then_some((found.damage, Some(readable)))
                }
                // Merged or past its retention since it was listed.
                Err(CliError::Call(status)) if status.code() == Code::InvalidArgument => continue,
                // The object cannot be read now; the others may.
                Err(CliError::Call(status)) if is_of_service(&status) => {
                    Some((status.message().to_owned(), None))
                }
                Err(error) => return Err(error),
            };
            count += 1;
            match problem {
                None => read += segment.bytes,
                Some((error, readable)) => {
                    damaged += 1;
                    report(context, &segment, (&error, readable))?;
                }
            }
            progress.set_message(format!("{}, {}", counted(count, "segment"), bytes(read)));
            progress.tick();
        }
    }
    progress.finish_and_clear();
    let text =
        format!("verified {} ({}), {damaged} damaged", counted(count, "segment"), bytes(read));
    let object = json!({ "verified": count, "damaged": damaged, "bytes": read });
    context.output.either(&text, &object)?;
    context.output.flush()?;
    if damaged > 0 { Err(CliError::Rejected) } else { Ok(()) }
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

/// Whether an error comes from the service, and not from the connection to it.
fn is_of_service(status: &Status) -> bool {
    status.get_details_error_info().is_some()
}

/// Prints what is in a segment that cannot be read.
fn report(
    context: &mut Context,
    segment: &LogSegment,
    (error, readable): (&str, Option<u64>),
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
    context.output.either(&text, &object)?;
    context.output.flush()
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
