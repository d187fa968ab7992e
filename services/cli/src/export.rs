//! Exports to a file: rows are read in an order, written in memory that does not grow with them, and continued behind
//! the last checkpoint.
//!
//! A file is written under another name, with a checkpoint next to it, and takes its name when complete. A pipe or a
//! device is written to directly.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Seek as _, Write},
    path::{Path, PathBuf},
};

use indicatif::ProgressBar;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use trestle_command::{
    checkpoint::{Checkpoint, CheckpointState},
    errors::{CliError, Halt},
    files::{self, OutputTarget},
    interrupt::Interrupts,
    output::{Context, counted, standard_output},
};

mod format;
mod part;

pub use format::ExportFormat;

const BUFFER_BYTES: usize = 256 * 1024;

/// What is exported.
pub(crate) trait ExportSource {
    /// A row of it.
    type Row;
    /// What is settled before the first row and kept for what continues the export, such as the columns of CSV.
    type Plan: Serialize + DeserializeOwned + Default;
    /// Writes its rows.
    type Writer<W: Write + Send>: ExportWriter<Self::Row>;

    /// What a row is called, in the singular.
    const ROW: &'static str;

    /// Settles the plan.
    async fn plan(&self, context: &Context, progress: &ProgressBar)
    -> Result<Self::Plan, CliError>;

    /// Reads from the start, or behind the rows before a token.
    fn read(&mut self, context: &Context, plan: &Self::Plan, resume_token: &str);

    /// The next rows; none at the end.
    async fn next(&mut self) -> Result<Option<ExportPage<Self::Row>>, CliError>;

    /// A writer of the file, or of its rest.
    fn writer<W: Write + Send>(
        &self,
        out: W,
        plan: &Self::Plan,
        is_rest: bool,
    ) -> io::Result<Self::Writer<W>>;
}

/// Rows that were read.
pub(crate) struct ExportPage<R> {
    pub(crate) rows: Vec<R>,
    /// Continues behind them; empty behind the last ones.
    pub(crate) resume_token: String,
}

/// Writes rows to a file.
pub(crate) trait ExportWriter<R> {
    /// Writes a row.
    fn write(&mut self, row: &R) -> io::Result<()>;

    /// Flushes the rows so far: the file up to here can be continued.
    fn flush(&mut self) -> io::Result<()>;

    /// Writes what is behind the last row, and flushes.
    fn finish(self) -> io::Result<()>;
}

/// Where an export goes.
pub(crate) struct ExportOrder {
    pub(crate) file: PathBuf,
    /// Whether it continues an interrupted one.
    pub(crate) resume: bool,
    /// Whether it can be continued: the file is complete up to any row.
    pub(crate) is_resumable: bool,
    /// What only the same export continues, an object.
    pub(crate) job: Value,
    pub(crate) endpoint: String,
}

/// The progress of an export.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ExportProgress<P> {
    #[serde(flatten)]
    plan: P,
    /// Bytes of the part file that belong to `rows`.
    byte: u64,
    #[serde(alias = "entities")]
    rows: u64,
    /// Where the read continues; empty at its start.
    resume_token: String,
}

impl<P: Serialize + DeserializeOwned> CheckpointState for ExportProgress<P> {
    const COMMAND: &'static str = "export";
}

/// Exports to a file, a pipe or standard output.
pub(crate) async fn run<S: ExportSource>(
    context: &mut Context,
    order: ExportOrder,
    source: S,
) -> Result<(), CliError> {
    let target = files::target_in_folder(&order.file)?;
    if order.resume && !order.is_resumable {
        return Err(CliError::Usage(
            "a file of Parquet cannot be continued: export again without --resume".to_owned(),
        ));
    }
    if order.resume && !matches!(target, OutputTarget::File(_)) {
        return Err(CliError::Usage("--resume needs a file, not a pipe".to_owned()));
    }
    let mut export = Export {
        progress: context.output.progress(None, 0),
        checkpoint: Checkpoint::new(order.job.clone(), ExportProgress::default()),
        saved_rows: 0,
        is_named_pipe: false,
        order,
        source,
    };
    match &target {
        OutputTarget::Standard => export.write_through(context, standard_output()).await?,
        OutputTarget::Stream => {
            let file = &export.order.file;
            let opened = OpenOptions::new().write(true).open(file);
            let opened = opened.map_err(CliError::input(files::cannot("write", file)))?;
            export.is_named_pipe = true;
            export.write_through(context, opened).await?;
        }
        OutputTarget::File(path) => export.write_file(context, path).await?,
    }
    export.progress.finish_and_clear();
    let rows = export.checkpoint.state.rows;
    if context.output.is_json() && target != OutputTarget::Standard {
        let object = json!({ "exported": rows, "file": export.order.file });
        context.output.line(&object.to_string())
    } else {
        context.output.note(&format!("exported {}", counted(rows, S::ROW)));
        Ok(())
    }
}

struct Export<S: ExportSource> {
    progress: ProgressBar,
    checkpoint: Checkpoint<ExportProgress<S::Plan>>,
    /// Rows in the last checkpoint.
    saved_rows: u64,
    /// Whether every write must succeed, because the pipe or device was named.
    is_named_pipe: bool,
    order: ExportOrder,
    source: S,
}

impl<S: ExportSource> Export<S> {
    /// Ctrl-C ends the process here as usual: a write that blocks could not be interrupted.
    async fn write_through(
        &mut self,
        context: &Context,
        out: impl Write + Send + 'static,
    ) -> Result<(), CliError> {
        self.checkpoint.state.plan = self.source.plan(context, &self.progress).await?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        let copied = self.copy(context, out, None).await;
        let begun = self.checkpoint.state.rows > 0;
        copied.map_err(|error| error.halted(begun, || self.halt()))
    }

    async fn write_file(&mut self, context: &Context, path: &Path) -> Result<(), CliError> {
        let part = files::with_suffix(path, ".trestle-part");
        if self.order.is_resumable {
            self.checkpoint.keep(files::with_suffix(path, ".trestle-export"), None)?;
        }
        if self.order.resume {
            self.checkpoint.load(true)?;
        }
        if self.checkpoint.written().is_none() {
            self.checkpoint.state.plan = self.source.plan(context, &self.progress).await?;
        }
        let opened = part::open(&part, self.checkpoint.state.byte);
        let opened = opened.and_then(|file| Ok((file.try_clone()?, file)));
        let (out, file) = opened.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => CliError::file(files::cannot("open", &part))(error),
            // Nothing was written; the temporary name would not help.
            _ => CliError::input(files::cannot("write", path))(error),
        })?;
        self.saved_rows = self.checkpoint.state.rows;
        let mut interrupts = Interrupts::listen()?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        let copied = interrupts.unless_pressed(self.copy(context, out, Some(&file))).await;
        if copied.is_err() && self.checkpoint.state.resume_token.is_empty() {
            // An error without progress, such as a table that does not exist, or that cannot be continued.
            files::remove(&part)?;
            self.checkpoint.remove()?;
        }
        let begun = self.checkpoint.state.rows > 0;
        copied.map_err(|error| error.halted(begun, || self.halt()))?;
        files::publish(&part, &file, path)?;
        self.checkpoint.remove()
    }

    /// Copies rows from the checkpoint to the end.
    async fn copy(
        &mut self,
        context: &Context,
        out: impl Write + Send,
        part: Option<&File>,
    ) -> Result<(), CliError> {
        let state = &self.checkpoint.state;
        self.source.read(context, &state.plan, &state.resume_token);
        let writer = self.source.writer(out, &state.plan, state.byte > 0);
        let mut writer = writer.map_err(|error| self.failed(error))?;
        while let Some(page) = self.source.next().await? {
            for row in &page.rows {
                writer.write(row).map_err(|error| self.failed(error))?;
                self.checkpoint.state.rows += 1;
            }
            self.progress.tick();
            self.progress.set_message(counted(self.checkpoint.state.rows, S::ROW));
            let is_due = self.checkpoint.is_due() && !page.resume_token.is_empty();
            if let Some(mut part) = part.filter(|_| is_due) {
                let stored = writer.flush().and_then(|()| part.sync_data());
                let byte = stored.and_then(|()| part.stream_position());
                let byte = byte.map_err(|error| self.failed(error))?;
                let state = &mut self.checkpoint.state;
                state.resume_token = page.resume_token;
                state.byte = byte;
                self.saved_rows = state.rows;
                self.checkpoint.save()?;
            }
        }
        writer.finish().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> CliError {
        let error = if self.is_named_pipe { files::unread(error) } else { error };
        CliError::file("cannot write the export")(error)
    }

    /// The progress of an export; only the checkpoint persists.
    fn halt(&self) -> Halt {
        let (rows, next) = match (self.checkpoint.written(), self.order.is_resumable) {
            (Some(_), _) if !self.checkpoint.state.resume_token.is_empty() => {
                (self.saved_rows, "continue with --resume")
            }
            (_, true) if self.checkpoint.is_kept() => (0, "repeat it: nothing of it is kept"),
            _ => (self.checkpoint.state.rows, "repeat it: it cannot be resumed"),
        };
        let progress = format!("{} written", counted(rows, S::ROW));
        Halt { endpoint: self.order.endpoint.clone(), progress, next: next.to_owned() }
    }
}
