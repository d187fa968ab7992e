//! `export`: the entities of a table as a file, in memory that does not grow with the table.
//!
//! A file is written under another name, with a checkpoint next to it, and takes its name when complete. A pipe or a
//! device is written to directly.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, BufWriter, Seek as _, Write},
    path::Path,
};

use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use serde_json::json;
use trestle_command::{
    checkpoint::{Checkpoint, CheckpointState},
    entity_json::Meta,
    errors::{CliError, Halt},
    files::{self, OutputTarget},
    flags::ClientArgs,
    interrupt::Interrupts,
    output::{OutputFormat, counted, standard_output, thousands},
    rows::{Format, RowWriter},
    scan::{TableScan, decoded},
};
use trestle_proto::table::v1::{StreamEntitiesRequest, StreamEntitiesResponse};

use super::{Context, entities::mask};
use crate::args::ExportArgs;

/// Most columns of a CSV file.
const COLUMNS_MAX: usize = 10_000;
const BUFFER_BYTES: usize = 256 * 1024;

/// The progress of an export.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ExportProgress {
    /// The columns of a CSV file, found or given.
    columns: Vec<String>,
    /// Bytes of the part file that belong to `entities`.
    byte: u64,
    entities: u64,
    /// Where the stream continues; empty at its start.
    resume_token: String,
}

impl CheckpointState for ExportProgress {
    const COMMAND: &'static str = "export";
}

/// Exports a table.
pub(super) async fn run(
    context: &mut Context,
    args: ExportArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let target = files::target_in_folder(&args.file)?;
    let format = format(&args, client.output.format)?;
    if args.resume && !matches!(target, OutputTarget::File(_)) {
        return Err(CliError::Usage("--resume needs a file, not a pipe".to_owned()));
    }
    let job = json!({
        "endpoint": client.endpoint, "table": args.table, "filter": args.filter,
        "columns": args.columns, "format": format, "with_timestamp": args.with_timestamp,
    });
    let mut export = Export {
        progress: context.output.progress(None, 0),
        checkpoint: Checkpoint::new(job, ExportProgress::default()),
        format,
        saved_entities: 0,
        is_named_pipe: false,
        endpoint: client.endpoint.clone(),
        args,
    };
    match &target {
        OutputTarget::Standard => export.write_through(context, standard_output()).await?,
        OutputTarget::Stream => {
            let file = &export.args.file;
            let opened = OpenOptions::new().write(true).open(file);
            let opened = opened.map_err(CliError::input(files::cannot("write", file)))?;
            export.is_named_pipe = true;
            export.write_through(context, opened).await?;
        }
        OutputTarget::File(path) => export.write_file(context, path).await?,
    }
    export.progress.finish_and_clear();
    let entities = export.checkpoint.state.entities;
    if context.output.is_json() && target != OutputTarget::Standard {
        let object = json!({ "exported": entities, "file": export.args.file });
        context.output.line(&object.to_string())
    } else {
        context.output.note(&format!("exported {}", counted(entities, "entity")));
        Ok(())
    }
}

/// The format of the file. `-o csv`, which is no default, selects it where nothing else does, such as for `-`.
fn format(args: &ExportArgs, output: OutputFormat) -> Result<Format, CliError> {
    if output != OutputFormat::Csv {
        return Format::of(&args.file, args.format);
    }
    let named = args.format.or_else(|| Format::named_by(&args.file));
    match named.unwrap_or(Format::Csv) {
        Format::Csv => Ok(Format::Csv),
        Format::Jsonl => Err(CliError::Usage(format!(
            "-o csv is not the format of the file, which is JSONL: give --format csv: file=`{}`",
            args.file.display()
        ))),
    }
}

struct Export {
    progress: ProgressBar,
    checkpoint: Checkpoint<ExportProgress>,
    format: Format,
    /// Entities in the last checkpoint.
    saved_entities: u64,
    /// Whether every write must succeed, because the pipe or device was named.
    is_named_pipe: bool,
    endpoint: String,
    args: ExportArgs,
}

impl Export {
    /// Ctrl-C ends the process here as usual: a write that blocks could not be interrupted.
    async fn write_through(
        &mut self,
        context: &Context,
        out: impl Write + 'static,
    ) -> Result<(), CliError> {
        self.begin(context).await?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        let copied = self.copy(context, out, None).await;
        let begun = self.checkpoint.state.entities > 0;
        copied.map_err(|error| error.halted(begun, || self.halt()))
    }

    async fn write_file(&mut self, context: &Context, path: &Path) -> Result<(), CliError> {
        let part = files::with_suffix(path, ".trestle-part");
        self.checkpoint.keep(files::with_suffix(path, ".trestle-export"), None)?;
        if self.args.resume {
            self.checkpoint.load(true)?;
        }
        if self.checkpoint.written().is_none() {
            self.begin(context).await?;
        }
        let opened = open_part(&part, self.checkpoint.state.byte);
        let opened = opened.and_then(|file| Ok((file.try_clone()?, file)));
        let (out, file) = opened.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => CliError::file(files::cannot("open", &part))(error),
            // Nothing was written; the temporary name would not help.
            _ => CliError::input(files::cannot("write", path))(error),
        })?;
        self.saved_entities = self.checkpoint.state.entities;
        let mut interrupts = Interrupts::listen()?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        let copied = interrupts.unless_pressed(self.copy(context, out, Some(&file))).await;
        if copied.is_err() && self.checkpoint.state.resume_token.is_empty() {
            // An error without progress, such as a table that does not exist.
            files::remove(&part)?;
            self.checkpoint.remove()?;
        }
        let begun = self.checkpoint.state.entities > 0;
        copied.map_err(|error| error.halted(begun, || self.halt()))?;
        files::publish(&part, &file, path)?;
        self.checkpoint.remove()
    }

    /// The columns at the start of an export; for CSV without explicit columns this reads the table
    /// once.
    async fn begin(&mut self, context: &Context) -> Result<(), CliError> {
        self.checkpoint.state.columns = self.args.columns.clone();
        if self.format == Format::Csv && self.args.columns.is_empty() {
            self.checkpoint.state.columns = self.find_columns(context).await?;
        }
        Ok(())
    }

    async fn find_columns(&self, context: &Context) -> Result<Vec<String>, CliError> {
        let mut scan = self.scan(context);
        let mut columns = BTreeSet::new();
        let mut read = 0;
        while let Some(message) = scan.next().await? {
            for entity in decoded(&message)? {
                read += 1;
                columns.extend(entity.properties.into_iter().map(|property| property.name));
            }
            if columns.len() > COLUMNS_MAX {
                return Err(CliError::Usage(format!(
                    "table has more properties than a CSV file may have columns: name them with \
                     --columns, or use JSONL: columns_max=`{COLUMNS_MAX}`"
                )));
            }
            self.progress.tick();
            self.progress.set_message(format!("finding columns: {} entities", thousands(read)));
        }
        Ok(columns.into_iter().collect())
    }

    /// Copies entities from the checkpoint to the end.
    async fn copy(
        &mut self,
        context: &Context,
        out: impl Write,
        part: Option<&File>,
    ) -> Result<(), CliError> {
        let mut scan = self.scan(context);
        let mut writer = self.writer(out).map_err(|error| self.failed(error))?;
        while let Some(message) = scan.next().await? {
            self.write(&mut writer, &message)?;
            if message.resume_token.is_empty() {
                break;
            }
            if let Some(mut part) = part.filter(|_| self.checkpoint.is_due()) {
                let stored = writer.flush().and_then(|()| part.sync_data());
                let byte = stored.and_then(|()| part.stream_position());
                let byte = byte.map_err(|error| self.failed(error))?;
                let state = &mut self.checkpoint.state;
                state.resume_token = message.resume_token;
                state.byte = byte;
                self.saved_entities = state.entities;
                self.checkpoint.save()?;
            }
        }
        writer.flush().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> CliError {
        let error = if self.is_named_pipe { files::unread(error) } else { error };
        CliError::file("cannot write the export")(error)
    }

    fn write<W: Write>(
        &mut self,
        writer: &mut RowWriter<W>,
        message: &StreamEntitiesResponse,
    ) -> Result<(), CliError> {
        for entity in decoded(message)? {
            writer.write(&entity).map_err(|error| self.failed(error))?;
            self.checkpoint.state.entities += 1;
        }
        self.progress.tick();
        self.progress.set_message(counted(self.checkpoint.state.entities, "entity"));
        Ok(())
    }

    fn scan(&self, context: &Context) -> TableScan {
        let request = StreamEntitiesRequest {
            table: self.args.table.clone(),
            filter: self.args.filter.clone(),
            select: mask(self.args.columns.clone()),
            limit: None,
            resume_token: self.checkpoint.state.resume_token.clone(),
        };
        TableScan::new(&context.session, request)
    }

    fn writer<W: Write>(&self, out: W) -> io::Result<RowWriter<W>> {
        let (state, timestamp) = (&self.checkpoint.state, self.args.with_timestamp);
        if self.format == Format::Jsonl {
            let meta = if timestamp { Meta::Timestamp } else { Meta::None };
            return Ok(RowWriter::jsonl(out, meta));
        }
        RowWriter::csv(out, state.columns.clone(), timestamp, state.byte == 0)
    }

    /// The progress of an export; only the checkpoint persists.
    fn halt(&self) -> Halt {
        let (entities, next) = match (self.checkpoint.written(), self.checkpoint.is_kept()) {
            (Some(_), _) if !self.checkpoint.state.resume_token.is_empty() => {
                (self.saved_entities, "continue with --resume")
            }
            (_, true) => (0, "repeat it: nothing of it is kept"),
            _ => (self.checkpoint.state.entities, "repeat it: it cannot be resumed"),
        };
        let progress = format!("{} written", counted(entities, "entity"));
        Halt { endpoint: self.endpoint.clone(), progress, next: next.to_owned() }
    }
}

fn open_part(path: &Path, byte: u64) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(byte == 0).open(path)?;
    if file.metadata()?.len() < byte {
        let rule = "is shorter than its checkpoint records, start again without --resume";
        return Err(io::Error::new(io::ErrorKind::InvalidData, rule));
    }
    file.set_len(byte)?;
    file.seek(io::SeekFrom::Start(byte))?;
    Ok(file)
}
