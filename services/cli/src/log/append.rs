//! `append`: the lines of a file or of standard input, as records.
//!
//! A thread reads and parses lines, a bounded number of batches is in flight, and a checkpoint next to the file records
//! up to where everything is appended. The request id of a batch is derived from the append, the position where the
//! batch begins and its lines. Batches end at the same lines when an interrupted append is resumed, so those that were
//! appended already are the same requests, which the server deduplicates.

mod batches;
mod lines;
mod progress;
mod upload;

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tonic::Code;
use trestle_command::{
    checkpoint::Checkpoint,
    errors::CliError,
    files::{self, InputFile},
    flags::ClientArgs,
    interrupt::Interrupts,
    output::Context,
};
use trestle_proto::log::v1::GetStreamRequest;

use self::{
    batches::{BatchLimits, LineBatches},
    lines::LinesAhead,
    progress::{AppendProgress, AppendState},
    upload::AppendUpload,
};
use super::{
    AppendLogArgs, LineFormat, any_value,
    input::{LineParser, RecordOrigin, TimeRules},
    when,
};
use crate::datetime;

/// Most bytes of the records of a batch; a larger record is a batch of its own.
const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Most records of a batch. The limit of the server.
const BATCH_RECORDS_MAX: usize = 10_000;
/// How long a batch of a pipe waits for more lines.
const LINGER: Duration = Duration::from_millis(200);

/// Appends a file.
pub(super) async fn run(
    context: &mut Context,
    args: AppendLogArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    check(&args)?;
    let input = InputFile::find(&args.file, args.resume)?;
    let job = job(context, &args, client).await?;
    let mut checkpoint = Checkpoint::new(job, AppendState::new(args.request_id_prefix.clone()));
    if let Some(file) = input.file() {
        checkpoint.keep(files::with_suffix(file, ".trestle-append"), Some(file))?;
    }
    checkpoint.load(args.resume)?;
    let start = checkpoint.state.done;
    let opened = input.open(start.byte);
    let opened = opened.map_err(CliError::input(files::cannot("read", &args.file)))?;
    let (sender, lines) = mpsc::channel(lines::AHEAD_MAX);
    let ahead = LinesAhead { parser: parser(&args, when::now()), is_strict: args.strict };
    // Detached if the append fails: it may be blocked on a pipe without data.
    let reader = tokio::task::spawn_blocking(move || ahead.read(opened, start, &sender));

    let limits = BatchLimits {
        records: usize::try_from(args.batch).unwrap_or(BATCH_RECORDS_MAX).min(BATCH_RECORDS_MAX),
        bytes: BATCH_BYTES_MAX,
        // Batches of a file must end at the same lines in every run.
        linger: input.bytes.is_none().then_some(LINGER),
    };
    let batches = LineBatches::new(lines, limits, (checkpoint.state.id.clone(), start));
    let mut progress = AppendProgress {
        checkpoint,
        bar: context.output.progress(input.bytes, start.byte),
        is_strict: args.strict,
        file: input.name(),
        failures: Vec::new(),
        untimed: 0,
        start,
    };
    let mut upload = AppendUpload::new(&context.session, args.stream.clone(), batches);
    let outcome = if input.bytes.is_none() {
        // Ctrl-C ends the process as usual: reading a pipe without data blocks.
        upload.run(&mut progress).await
    } else {
        Interrupts::listen()?.unless_pressed(upload.run(&mut progress)).await
    };
    drop(upload);
    progress.bar.finish_and_clear();
    progress.show_failures(context.output.is_json());
    progress.show_untimed(&context.output, args.format);
    if let Err(error) = outcome {
        return Err(progress.stopped(error, &client.endpoint));
    }
    reader.await.map_err(|error| CliError::Protocol(format!("reader failed: {error}")))?;
    progress.close(context, &args.stream)
}

fn check(args: &AppendLogArgs) -> Result<(), CliError> {
    if args.timestamp_pattern.is_some() && args.format != LineFormat::Text {
        return Err(CliError::Usage("--timestamp-pattern is for --format text".to_owned()));
    }
    let has_fields = matches!(args.format, LineFormat::Json | LineFormat::Logfmt);
    if let Some((usual, _)) = args.fields.names().given().next().filter(|_| !has_fields) {
        let rule = format!("--{usual}-field is for --format json and logfmt");
        return Err(CliError::Usage(rule));
    }
    Ok(())
}

fn parser(args: &AppendLogArgs, now: DateTime<Utc>) -> LineParser {
    let resource = args.resource.iter().cloned();
    let resource = resource.map(|(key, value)| (key, any_value::of_text(value))).collect();
    LineParser {
        format: args.format,
        pattern: args.timestamp_pattern.clone(),
        times: TimeRules { offset: args.utc_offset, now },
        names: args.fields.names(),
        origin: Arc::new(RecordOrigin { resource, scope: None }),
    }
}

/// The source and the target of an append; fails early if the stream does not exist.
async fn job(
    context: &mut Context,
    args: &AppendLogArgs,
    client: &ClientArgs,
) -> Result<Value, CliError> {
    let request = GetStreamRequest { stream: args.stream.clone() };
    let created = match context.session.logs().get_stream(request).await {
        Ok(found) => {
            let stream = found.into_inner().stream;
            stream.and_then(|stream| stream.create_time).as_ref().and_then(datetime::format)
        }
        // The caller may have permission to append but not to read.
        Err(status) if status.code() == Code::PermissionDenied => None,
        Err(status) => return Err(status.into()),
    };
    let resource = args.resource.iter().map(|(key, value)| format!("{key}={value}"));
    // A stream that was created again is another stream.
    let mut job = json!({
        "endpoint": client.endpoint, "stream": args.stream, "stream_created": created,
        "format": args.format, "batch": args.batch, "resource": resource.collect::<Vec<_>>(),
        "timestamp_pattern": args.timestamp_pattern.as_ref().map(|pattern| &pattern.text),
        "utc_offset": args.utc_offset.to_string(),
    });
    for (usual, name) in args.fields.names().given() {
        if let Some(job) = job.as_object_mut() {
            job.insert(format!("{usual}_field"), name.into());
        }
    }
    Ok(job)
}
