//! `import`: a file of entities into a table, in memory that does not grow with the file.
//!
//! A thread reads rows into chunks, a bounded number of chunks is under way, and notes beside the
//! file say up to where every row is answered, so that an import that was killed can go on.

use std::{
    fs::File,
    io::{self, Read, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use serde_json::json;
use tokio::{sync::mpsc, time::Instant};
use trestle_proto::table::v1::{GetTableRequest, WriteMode};

use super::Context;
use crate::{
    args::{ClientArgs, ImportArgs, ImportMode},
    datetime,
    errors::CliError,
    files,
    interrupt::Interrupts,
    output::{counted, say, thousands},
    prefix::Prefix,
    rows::{Format, Position, RowReader, csv, jsonl},
    upload::{Book as _, Upload},
};

mod chunk;
mod ledger;

use chunk::Stop;
use ledger::{Job, Ledger, Notes};

/// Imports a file.
pub(super) async fn run(
    context: &mut Context,
    args: ImportArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let input = Input::find(&args)?;
    let job = job(context, &args, &input, client).await?;
    let notes_path = input.size.map(|_| files::beside(&args.file, ".trestle-import"));
    let mut prefix = input.size.map(|_| Prefix::open(&args.file)).transpose()?;
    let notes = begin(&args, job, notes_path.as_deref(), prefix.as_mut())?;
    let (start, resumed) = (notes.done, notes.done != Position::default());
    let reader = input.open(&args, start)?;

    let progress = context.output.progress(input.size);
    let mut ledger = Ledger::new(notes, notes_path, progress, args.keep_going);
    ledger.prefix = prefix;
    ledger.file = args.file.display().to_string();
    let (sender, chunks) = mpsc::channel(chunk::AHEAD_MAX);
    let keep_going = args.keep_going;
    let producer = tokio::task::spawn_blocking(move || chunk::produce(reader, keep_going, &sender));

    let started = Instant::now();
    let verify = (args.mode == ImportMode::Insert).then_some(resumed);
    let mut upload = Upload::new(&context.session, args.table, write_mode(args.mode), chunks);
    upload.verify = verify;
    let result = Interrupts::listen()?.unless_pressed(upload.run(&mut ledger)).await;
    drop(upload);
    if result.is_ok() && !ledger.is_halted() {
        // Otherwise nobody waits for it: it may hang at a pipe that says nothing.
        producer.await.map_err(|error| CliError::Protocol(format!("reader failed: {error}")))?;
    }
    let result = result.and_then(|stop| stop.map_or(Ok(()), |stop| stopped(stop, &mut ledger)));
    ledger.finish_progress();
    ledger.show_failures(context.output.is_json());
    if let Err(error) = result {
        ledger.save();
        return Err(error.halted(ledger.rows_seen() > 0, || ledger.halt()));
    }
    let seconds = started.elapsed().as_secs_f64();
    report(context, &ledger, start, seconds)?;
    ledger.close()
}

/// The file, and how it is read.
struct Input {
    format: Format,
    /// Bytes of a plain file; none of a pipe, which cannot be read again.
    size: Option<u64>,
}

impl Input {
    fn find(args: &ImportArgs) -> Result<Self, CliError> {
        let standard = args.file == Path::new("-");
        let format = match args.format.or_else(|| Format::of(&args.file)) {
            Some(format) => format,
            None if standard => Format::Jsonl,
            None => {
                let rule = "format is not known from the extension: give --format jsonl or csv";
                return Err(CliError::Usage(format!("{rule}: `{}`", args.file.display())));
            }
        };
        let size = if standard {
            None
        } else {
            let what = format!("cannot read `{}`", args.file.display());
            let metadata = args.file.metadata().map_err(CliError::input(what))?;
            metadata.is_file().then_some(metadata.len())
        };
        if size.is_none() && args.resume {
            return Err(CliError::Usage("--resume needs a file, not a pipe".to_owned()));
        }
        if format == Format::Jsonl && !args.types.is_empty() {
            return Err(CliError::Usage("--types is for CSV; JSONL has its own".to_owned()));
        }
        Ok(Self { format, size })
    }

    fn open(&self, args: &ImportArgs, start: Position) -> Result<RowReader, CliError> {
        let fail = |error| cannot_read(&args.file)(error);
        let input = source(&args.file, 0).map_err(fail)?;
        if start == Position::default() {
            return Ok(match self.format {
                Format::Jsonl => RowReader::Jsonl(jsonl::Reader::new(input, start)),
                Format::Csv => RowReader::Csv(csv::Reader::new(input, &args.types).map_err(fail)?),
            });
        }
        let rest = source(&args.file, start.byte).map_err(fail)?;
        Ok(match self.format {
            Format::Jsonl => RowReader::Jsonl(jsonl::Reader::new(rest, start)),
            Format::Csv => {
                let header = csv::Reader::new(input, &args.types).map_err(fail)?;
                RowReader::Csv(header.resume(rest, start))
            }
        })
    }
}

fn source(path: &Path, byte: u64) -> io::Result<Box<dyn Read + Send>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let mut file = File::open(path)?;
    if byte > 0 {
        file.seek(SeekFrom::Start(byte))?;
    }
    Ok(Box::new(file))
}

fn cannot_read(path: &Path) -> impl Fn(io::Error) -> CliError {
    let path: PathBuf = path.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::InvalidData => CliError::Usage(format!("{}: {error}", path.display())),
        _ => CliError::file(format!("cannot read `{}`", path.display()))(error),
    }
}

/// What is imported, and how; fails early when the table does not exist.
async fn job(
    context: &Context,
    args: &ImportArgs,
    input: &Input,
    client: &ClientArgs,
) -> Result<Job, CliError> {
    let request = context.session.request(GetTableRequest { table: args.table.clone() });
    let table = context.session.table().get_table(request).await?.into_inner().table;
    let created = table.and_then(|table| table.create_time).as_ref().and_then(datetime::format);
    Ok(Job {
        endpoint: client.endpoint.clone(),
        table: args.table.to_ascii_lowercase(),
        table_created: created,
        mode: format!("{:?}", args.mode).to_ascii_lowercase(),
        format: input.format,
        types: args.types.iter().map(|(name, edm)| format!("{name}={}", edm.name())).collect(),
        size: input.size,
    })
}

/// The notes of the import that goes on, or new ones.
fn begin(
    args: &ImportArgs,
    job: Job,
    notes_path: Option<&Path>,
    prefix: Option<&mut Prefix>,
) -> Result<Notes, CliError> {
    let (Some(path), Some(prefix)) = (notes_path, prefix) else { return Ok(Notes::new(job)) };
    let shown = path.display();
    match files::load::<Notes>(path)? {
        None => {
            if args.resume {
                say("no interrupted import was found; begins at line 1");
            }
            Ok(Notes::new(job))
        }
        Some(_) if !args.resume => Err(CliError::Usage(format!(
            "an interrupted import was found: `{shown}`: go on with --resume, or remove it"
        ))),
        Some(notes) if !notes.are_of(&job) => Err(CliError::Usage(format!(
            "the interrupted import was another one (table, endpoint, mode, format, types or file \
             size differ): to begin anew, remove `{shown}`"
        ))),
        Some(notes) => {
            if let Some(hash) = &notes.hash {
                prefix.verify(notes.done.byte, hash, path)?;
            }
            Ok(Notes { job, ..notes })
        }
    }
}

fn write_mode(mode: ImportMode) -> Option<WriteMode> {
    match mode {
        ImportMode::Insert => None,
        ImportMode::Replace => Some(WriteMode::Replace),
        ImportMode::Merge => Some(WriteMode::Merge),
    }
}

/// The file was not read to its end.
fn stopped(stop: Stop, ledger: &mut Ledger) -> Result<(), CliError> {
    match stop {
        Stop::File(line, error) => {
            let what = format!("cannot read `{}` after line {line}", ledger.file);
            Err(CliError::file(what)(error))
        }
        Stop::Row(line, error) => {
            ledger.fail(line, error.to_string());
            Ok(())
        }
    }
}

fn report(
    context: &mut Context,
    ledger: &Ledger,
    start: Position,
    seconds: f64,
) -> Result<(), CliError> {
    let notes = &ledger.notes;
    if context.output.is_json() {
        return context.output.line(
            &json!({
                "rows": notes.done.row.max(ledger.rows_seen()),
                "imported": notes.written,
                "already_present": notes.present,
                "failed": notes.failed,
                "resumed_at_row": start.row,
                "seconds": seconds,
            })
            .to_string(),
        );
    }
    let mut text = format!("imported {} in {seconds:.1} s", counted(notes.written, "entity"));
    if notes.present > 0 {
        text.push_str(&format!(", {} were there already", thousands(notes.present)));
    }
    if start.row > 0 {
        text.push_str(&format!(", resumed after row {}", thousands(start.row)));
    }
    if notes.failed > 0 {
        text.push_str(&format!(", {} failed", thousands(notes.failed)));
    }
    say(&text);
    Ok(())
}
