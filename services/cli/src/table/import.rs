//! `import`: a file of entities into a table, in memory that does not grow with the file.
//!
//! A thread reads rows into chunks, a bounded number of chunks is in flight, and a checkpoint next to the file records
//! up to where every row is answered, so that an import that was killed can be resumed.

use std::io;

use clap::ValueEnum as _;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};
use trestle_command::{
    checkpoint::Checkpoint,
    errors::CliError,
    files::{self, InputFile},
    flags::ClientArgs,
    interrupt::Interrupts,
    lines::FilePosition,
    output::{counted, thousands, with_fields},
    rows::{Format, RowReader},
    upload::{self, EntityUpload, Recorder as _},
};
use trestle_proto::table::v1::{GetTableRequest, WriteMode};

use super::Context;
use super::args::{ImportArgs, ImportMode};
use crate::datetime;

mod chunk;
mod keys;
mod recorder;

use chunk::ImportStop;
use recorder::{ImportRecorder, Rows};

/// Imports a file.
pub(super) async fn run(
    context: &mut Context,
    args: ImportArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let input = InputFile::find(&args.file, args.resume)?;
    let format = Format::of(&args.file, args.format)?;
    if format == Format::Jsonl && !args.types.is_empty() {
        return Err(CliError::Usage("--types is for CSV; JSONL has its own".to_owned()));
    }
    let mapping = keys::mapping(&args)?;
    let open = |start| {
        let reader = RowReader::open(&input, format, &mapping, start);
        reader.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => CliError::Usage(format!("{}: {error}", input.name())),
            _ => CliError::file(files::cannot("read", &args.file))(error),
        })
    };
    // A malformed header is found before a call.
    let whole = open(FilePosition::default())?;
    let job = job(context, &args, format, client).await?;
    let mut checkpoint = Checkpoint::new(job, Rows::default());
    if let Some(file) = input.file() {
        checkpoint.keep(files::with_suffix(file, ".trestle-import"), Some(file))?;
    }
    checkpoint.load(args.resume)?;
    let (start, written_before) = (checkpoint.state.done, checkpoint.state.written);
    let reader = if start == FilePosition::default() { whole } else { open(start)? };

    let mut recorder = ImportRecorder {
        checkpoint,
        progress: context.output.progress(input.bytes, start.byte),
        keep_going: args.keep_going,
        file: input.name(),
        table: args.table.to_ascii_lowercase(),
        failures: Vec::new(),
        failed_now: 0,
        written_before,
        last: start,
    };
    let (sender, chunks) = mpsc::channel(upload::AHEAD_MAX);
    let keep_going = args.keep_going;
    let producer = tokio::task::spawn_blocking(move || chunk::produce(reader, keep_going, &sender));

    let started = Instant::now();
    let mut upload = EntityUpload::new(&context.session, args.table, write_mode(args.mode), chunks);
    upload.verify = (args.mode == ImportMode::Insert).then_some(start != FilePosition::default());
    let result = Interrupts::listen()?.unless_pressed(upload.run(&mut recorder)).await;
    drop(upload);
    if result.is_ok() && !recorder.is_halted() {
        // Otherwise the thread is detached: it may be blocked on a pipe without data.
        producer.await.map_err(|error| CliError::Protocol(format!("reader failed: {error}")))?;
    }
    let result = result.and_then(|stop| stop.map_or(Ok(()), |stop| stopped(stop, &mut recorder)));
    recorder.progress.finish_and_clear();
    recorder.show_failures(context.output.is_json());
    if let Err(error) = result {
        recorder.save();
        return Err(error.halted(recorder.last.row > 0, || recorder.halt(&client.endpoint)));
    }
    report(context, &recorder, start, started.elapsed().as_secs_f64())?;
    recorder.close()
}

/// The source and the options of an import; fails early if the table does not exist.
async fn job(
    context: &Context,
    args: &ImportArgs,
    format: Format,
    client: &ClientArgs,
) -> Result<Value, CliError> {
    let request = GetTableRequest { table: args.table.clone() };
    let table = context.session.table().get_table(request).await?.into_inner().table;
    // A table that was created again is another table.
    let created = table.and_then(|table| table.create_time).as_ref().and_then(datetime::format);
    let types = args.types.iter().map(|(name, edm)| format!("{name}={}", edm.name()));
    let mode = args.mode.to_possible_value().map(|mode| mode.get_name().to_owned());
    let job = json!({
        "endpoint": client.endpoint, "table": args.table.to_ascii_lowercase(),
        "table_created": created, "mode": mode, "format": format,
        "types": types.collect::<Vec<_>>(),
    });
    Ok(with_fields(job, keys::job(args)))
}

fn write_mode(mode: ImportMode) -> Option<WriteMode> {
    match mode {
        ImportMode::Insert => None,
        ImportMode::Replace => Some(WriteMode::Replace),
        ImportMode::Merge => Some(WriteMode::Merge),
    }
}

/// The file was not read to its end.
fn stopped(stop: ImportStop, recorder: &mut ImportRecorder) -> Result<(), CliError> {
    match stop {
        ImportStop::File(line, error) => {
            let what = format!("cannot read `{}` after line {line}", recorder.file);
            Err(CliError::file(what)(error))
        }
        ImportStop::Row(line, error) => {
            recorder.fail(line, error.to_string());
            // It was read, though the last chunk ends before it.
            recorder.last.row = recorder.last.row.saturating_add(1);
            Ok(())
        }
    }
}

fn report(
    context: &mut Context,
    recorder: &ImportRecorder,
    start: FilePosition,
    seconds: f64,
) -> Result<(), CliError> {
    let (rows, failed) = (&recorder.checkpoint.state, recorder.failed());
    if context.output.is_json() {
        let object = json!({
            "rows": rows.done.row.max(recorder.last.row),
            "imported": rows.written,
            "imported_before": recorder.written_before,
            "already_present": rows.present,
            "failed": failed,
            "resumed_at_row": start.row,
            "seconds": seconds,
        });
        return context.output.line(&object.to_string());
    }
    // Rows of an earlier run took time of their own.
    let earlier = recorder.written_before;
    let mut text = match (rows.written.saturating_sub(earlier), failed) {
        (0, 1..) => "nothing was written".to_owned(),
        (written, _) => format!("imported {} in {seconds:.1} s", counted(written, "entity")),
    };
    if earlier > 0 {
        text.push_str(&format!(" and {} before", thousands(earlier)));
    }
    if rows.present > 0 {
        text.push_str(&format!(", {} already present", thousands(rows.present)));
    }
    if start.row > 0 {
        text.push_str(&format!(", resumed after row {}", thousands(start.row)));
    }
    if failed > 0 {
        text.push_str(&format!(", {} failed and not written", counted(failed, "row")));
    }
    context.output.note(&text);
    Ok(())
}
