//! `export`: the entities of a table as a file, in memory that does not grow with the table.
//!
//! A file is written under another name, with notes beside it of how far it is, and takes its name
//! when complete. A pipe or a device is written to as it is.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, BufWriter, Seek as _, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use trestle_proto::table::v1::{StreamEntitiesRequest, stored::decode_entities};

use super::{Context, entities::mask};
use crate::{
    args::{ClientArgs, ExportArgs},
    entity_json::Meta,
    errors::{CliError, Halt},
    files::{self, Target},
    interrupt::Interrupts,
    output::{bytes, counted, say, thousands},
    rows::{Format, RowWriter, csv},
    scan::Scan,
};

/// Most columns of a CSV file.
const COLUMNS_MAX: usize = 10_000;
const BUFFER_BYTES: usize = 256 * 1024;
/// How often the notes are brought up to date.
const NOTES_EVERY: Duration = Duration::from_secs(2);

/// What is exported, and how: an export can go on only where these are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Job {
    endpoint: String,
    table: String,
    filter: String,
    columns: Vec<String>,
    format: Format,
    with_timestamp: bool,
}

/// How far an export is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Notes {
    job: Job,
    /// The columns of a CSV file, found or given.
    columns: Vec<String>,
    /// Bytes of the part file that belong to `entities`.
    byte: u64,
    entities: u64,
    /// Where the stream goes on; empty at its start.
    resume_token: String,
}

/// Counts what goes through.
struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.bytes = self.bytes.saturating_add(u64::try_from(written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A pipe or a device that was named, which must take everything.
struct Named(File);

impl Write for Named {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.write(buffer).map_err(files::unread)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(files::unread)
    }
}

/// Exports a table.
pub(super) async fn run(
    context: &mut Context,
    args: ExportArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let target = files::target(&args.file)?;
    let standard = target == Target::Standard;
    let format = match args.format.or_else(|| Format::of(&args.file)) {
        Some(format) => format,
        None if standard => Format::Jsonl,
        None => {
            let rule = "format is not known from the extension: give --format jsonl or csv";
            return Err(CliError::Usage(format!("{rule}: `{}`", args.file.display())));
        }
    };
    if args.resume && !matches!(target, Target::File(_)) {
        return Err(CliError::Usage("--resume needs a file, not a pipe".to_owned()));
    }
    let job = Job {
        endpoint: client.endpoint.clone(),
        table: args.table,
        filter: args.filter,
        columns: args.columns,
        format,
        with_timestamp: args.with_timestamp,
    };
    let progress = context.output.progress(None);
    let mut export = Export { progress, part: None };
    let entities = match &target {
        Target::Standard => export.write_through(context, job, io::stdout()).await?,
        Target::Stream => {
            let what = format!("cannot write `{}`", args.file.display());
            let opened = OpenOptions::new().write(true).open(&args.file);
            let opened = opened.map(Named).map_err(CliError::input(what))?;
            export.write_through(context, job, opened).await?
        }
        Target::File(path) => export.write_file(context, job, path, args.resume).await?,
    };
    export.progress.finish_and_clear();
    if context.output.is_json() && !standard {
        let object = serde_json::json!({ "exported": entities, "file": args.file });
        context.output.line(&object.to_string())
    } else {
        say(&format!("exported {}", counted(entities, "entity")));
        Ok(())
    }
}

/// The part file and its notes.
struct Part {
    file: File,
    notes_path: PathBuf,
    noted: Instant,
    /// How many entities the notes speak of.
    entities: u64,
}

struct Export {
    progress: ProgressBar,
    /// None where nothing can be gone on with.
    part: Option<Part>,
}

impl Export {
    /// Ctrl-C ends the process here as ever: a write that blocks could not be listened over.
    async fn write_through(
        &mut self,
        context: &Context,
        job: Job,
        out: impl Write,
    ) -> Result<u64, CliError> {
        let mut notes = self.begin(context, job).await?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        let copied = self.copy(context, &mut notes, out).await;
        let begun = notes.entities > 0;
        copied.map_err(|error| error.halted(begun, || halt(&notes, None)))?;
        Ok(notes.entities)
    }

    async fn write_file(
        &mut self,
        context: &Context,
        job: Job,
        path: &Path,
        resume: bool,
    ) -> Result<u64, CliError> {
        let part_path = files::beside(path, ".trestle-part");
        let notes_path = files::beside(path, ".trestle-export");
        let found = if resume { files::load::<Notes>(&notes_path)? } else { None };
        let mut notes = match found {
            Some(notes) if notes.job != job => {
                let rule = "the interrupted export was another one, start again without --resume";
                return Err(CliError::Usage(format!("{rule}: `{}`", notes_path.display())));
            }
            Some(notes) => notes,
            None => self.begin(context, job).await?,
        };
        let file = open_part(&part_path, notes.byte)?;
        let clone = |file: &File| {
            file.try_clone()
                .map_err(CliError::file(format!("cannot open `{}`", part_path.display())))
        };
        let out = BufWriter::with_capacity(BUFFER_BYTES, clone(&file)?);
        let (notes_path, noted) = (notes_path.clone(), Instant::now());
        let entities = notes.entities;
        self.part = Some(Part { file, notes_path: notes_path.clone(), noted, entities });
        let mut interrupts = Interrupts::listen()?;
        let copied = interrupts.unless_pressed(self.copy(context, &mut notes, out)).await;
        if copied.is_err() && notes.resume_token.is_empty() {
            // Nothing worth going on from, such as a table that does not exist.
            files::remove(&part_path)?;
            files::remove(&notes_path)?;
        }
        let begun = notes.entities > 0;
        copied.map_err(|error| error.halted(begun, || halt(&notes, self.part.as_ref())))?;
        if let Some(part) = &self.part {
            files::publish(&part_path, &part.file, path)?;
        }
        files::remove(&notes_path)?;
        Ok(notes.entities)
    }

    /// Notes at the start of an export; for CSV without given columns this reads the table once.
    async fn begin(&self, context: &Context, job: Job) -> Result<Notes, CliError> {
        let columns = if job.format == Format::Csv && job.columns.is_empty() {
            self.find_columns(context, &job).await?
        } else {
            job.columns.clone()
        };
        Ok(Notes { job, columns, byte: 0, entities: 0, resume_token: String::new() })
    }

    async fn find_columns(&self, context: &Context, job: &Job) -> Result<Vec<String>, CliError> {
        let mut scan = Scan::new(&context.session, request(job, String::new()));
        let mut columns = BTreeSet::new();
        let mut read = 0_u64;
        while let Some(message) = scan.next().await? {
            let entities = decode_entities(&message.entities).map_err(|error| protocol(&error))?;
            read = read.saturating_add(u64::try_from(entities.len()).unwrap_or_default());
            for property in entities.into_iter().flat_map(|entity| entity.properties) {
                if !columns.contains(&property.name) {
                    columns.insert(property.name);
                }
            }
            if columns.len() > COLUMNS_MAX {
                let rule = "has more properties than a CSV file may have columns";
                return Err(CliError::Usage(format!(
                    "table {rule}: name them with --columns, or use JSONL: \
                     columns_max=`{COLUMNS_MAX}`"
                )));
            }
            self.progress.tick();
            self.progress.set_message(format!("finding columns: {} entities", thousands(read)));
        }
        Ok(columns.into_iter().collect())
    }

    /// Copies entities from where the notes stand to the end.
    async fn copy(
        &mut self,
        context: &Context,
        notes: &mut Notes,
        out: impl Write,
    ) -> Result<(), CliError> {
        let mut counted = Counted { inner: out, bytes: notes.byte };
        let mut scan = Scan::new(&context.session, request(&notes.job, notes.resume_token.clone()));
        let mut writer = writer(notes, &mut counted)?;
        while let Some(message) = scan.next().await? {
            for entity in decode_entities(&message.entities).map_err(|error| protocol(&error))? {
                writer.write(&entity).map_err(write_failed)?;
                notes.entities = notes.entities.saturating_add(1);
            }
            self.progress.tick();
            self.progress.set_message(format!("{} entities", thousands(notes.entities)));
            if message.resume_token.is_empty() {
                break;
            }
            if self.part.as_ref().is_some_and(|part| part.noted.elapsed() >= NOTES_EVERY) {
                writer.flush().map_err(write_failed)?;
                notes.resume_token = message.resume_token;
                notes.byte = written(&writer);
                self.note(notes)?;
            }
        }
        writer.flush().map_err(write_failed)
    }

    fn note(&mut self, notes: &Notes) -> Result<(), CliError> {
        let Some(part) = self.part.as_mut() else {
            return Ok(());
        };
        part.file.sync_data().map_err(write_failed)?;
        files::save(&part.notes_path, notes)?;
        part.noted = Instant::now();
        part.entities = notes.entities;
        self.progress.set_prefix(bytes(notes.byte));
        Ok(())
    }
}

/// How far an export came; only what the notes speak of is kept.
fn halt(notes: &Notes, part: Option<&Part>) -> Halt {
    let kept = part.filter(|_| !notes.resume_token.is_empty());
    let (entities, next) = match kept {
        Some(part) => (part.entities, "go on with --resume"),
        None if part.is_some() => (0, "repeat it: nothing of it is kept"),
        None => (notes.entities, "repeat it: this cannot be gone on with"),
    };
    Halt {
        endpoint: notes.job.endpoint.clone(),
        done: format!("{} are written", counted(entities, "entity")),
        next: next.to_owned(),
    }
}

fn writer<'a, W: Write>(
    notes: &Notes,
    out: &'a mut Counted<W>,
) -> Result<RowWriter<&'a mut Counted<W>>, CliError> {
    let timestamp = notes.job.with_timestamp;
    match notes.job.format {
        Format::Jsonl => {
            let meta = if timestamp { Meta::Timestamp } else { Meta::None };
            Ok(RowWriter::jsonl(out, meta))
        }
        Format::Csv => {
            let mut writer = csv::Writer::new(out, notes.columns.clone(), timestamp);
            if notes.byte == 0 {
                writer.header().map_err(write_failed)?;
            }
            Ok(RowWriter::Csv(Box::new(writer)))
        }
    }
}

fn written<W: Write>(writer: &RowWriter<&mut Counted<W>>) -> u64 {
    match writer {
        RowWriter::Jsonl { out, .. } => out.bytes,
        RowWriter::Csv(writer) => writer.get_ref().bytes,
    }
}

fn request(job: &Job, resume_token: String) -> StreamEntitiesRequest {
    StreamEntitiesRequest {
        table: job.table.clone(),
        filter: job.filter.clone(),
        select: mask(job.columns.clone()),
        limit: None,
        resume_token,
    }
}

fn open_part(path: &Path, byte: u64) -> Result<File, CliError> {
    let open = || -> io::Result<File> {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(byte == 0).open(path)?;
        if file.metadata()?.len() < byte {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "is shorter than its notes say, start again without --resume",
            ));
        }
        file.set_len(byte)?;
        file.seek(io::SeekFrom::Start(byte))?;
        Ok(file)
    };
    open().map_err(CliError::file(format!("cannot open `{}`", path.display())))
}

fn protocol(error: &prost::DecodeError) -> CliError {
    CliError::Protocol(error.to_string())
}

fn write_failed(error: io::Error) -> CliError {
    CliError::file("cannot write the export")(error)
}
