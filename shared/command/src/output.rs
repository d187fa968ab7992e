//! The output of a command: tables for people, JSON, CSV or plain columns for programs, progress and notes on standard
//! error.

use std::{
    collections::HashSet,
    fmt,
    io::{self, IsTerminal as _, Write},
    time::Duration,
};

use clap::ValueEnum;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use rustix::termios::tcgetwinsize;
use serde_json::{Map, Value, json};
use trestle_proto::table::v1::{Entity, QueryCost};

use crate::{client::Session, entity_json, entity_json::Meta, errors::CliError};

mod cells;
mod cost;
mod drawing;
mod numbers;
mod terminal;

pub use cells::escaped;
pub use cells::raw as cell_text;
pub use cells::with_fields;
use cells::{entity_record, flat, flat_fields, raw, title};
pub use cost::{cost_json, cost_text, scope_name};
use drawing::{Drawing, TableListing};
pub use numbers::{bytes, counted, thousands};
pub use terminal::standard_output;

/// Most records of a listing that a table holds before it is printed.
const TABLE_ROWS_MAX: usize = 1000;
/// How long a command runs before its rate is shown.
const RATE_AFTER: Duration = Duration::from_millis(500);

/// The form of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people: as wide as the terminal, one result vertically
    Table,
    /// One JSON document, errors included
    Json,
    /// One JSON object a line, errors included
    Jsonl,
    /// CSV with a header
    Csv,
    /// Values separated by tabs, nothing shortened: a list below a header, one result as a line `name<TAB>value` for
    /// each of its fields
    Plain,
}

/// The form of output of one command.
#[derive(Debug, Clone, Copy)]
pub struct OutputArgs {
    /// The form of results.
    pub format: OutputFormat,
    /// Most columns of a table, where it is shown on a terminal.
    pub(crate) width: Option<u16>,
    /// Whether results and errors only are printed.
    pub quiet: bool,
    /// Whether calls are explained.
    pub(crate) verbose: bool,
}

impl OutputArgs {
    /// Whether programs read JSON, errors included.
    #[must_use]
    pub fn is_json(&self) -> bool {
        matches!(self.format, OutputFormat::Json | OutputFormat::Jsonl)
    }
}

/// The width and the default form of standard output; `columns` replaces the width.
pub(crate) fn terminal(columns: Option<u16>) -> (Option<u16>, OutputFormat) {
    let found = tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col);
    let format = match io::stdout().is_terminal() {
        true => OutputFormat::Table,
        false => OutputFormat::Plain,
    };
    let is_known = |width: &u16| *width > 0;
    (found.filter(is_known).or(columns).filter(is_known), format)
}

/// The context of a command.
pub struct Context {
    /// Its connection.
    pub session: Session,
    /// Its output.
    pub output: Output,
}

/// Standard output of one command.
pub struct Output {
    out: Box<dyn Write + Send>,
    args: OutputArgs,
    /// Records of a table that is not printed yet.
    listing: Option<TableListing>,
    /// JSON records that were printed; none before the first listing.
    listed: Option<u64>,
    /// The last header of CSV or plain columns.
    header: Vec<String>,
}

impl Output {
    /// Writes to standard output.
    #[must_use]
    pub fn standard(args: &OutputArgs) -> Self {
        Self {
            out: standard_output(),
            args: *args,
            listing: None,
            listed: None,
            header: Vec::new(),
        }
    }

    /// Whether programs read JSON.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.args.is_json()
    }

    /// The form of results.
    pub fn format(&self) -> OutputFormat {
        self.args.format
    }

    /// Whether a person reads a table.
    pub fn is_table(&self) -> bool {
        self.args.format == OutputFormat::Table
    }

    /// Prints a line.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn line(&mut self, text: &str) -> Result<(), CliError> {
        self.print_listing()?;
        writeln!(self.out, "{text}").map_err(broken)
    }

    /// Prints `human`, or for programs that read JSON or CSV the object `json`.
    ///
    /// # Errors
    /// The error of the output.
    pub fn either(&mut self, human: &str, json: &Value) -> Result<(), CliError> {
        match self.args.format {
            OutputFormat::Json | OutputFormat::Jsonl => self.line(&json.to_string()),
            OutputFormat::Csv => self.columns(std::slice::from_ref(json), &[], title),
            OutputFormat::Table | OutputFormat::Plain => self.line(human),
        }
    }

    /// Prints records, which are JSON objects: as an element or a line of JSON, else these `columns`, all where none is
    /// named.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn records(&mut self, records: &[Value], columns: &[&str]) -> Result<(), CliError> {
        if self.is_json() {
            let texts = records.iter().map(Value::to_string);
            return self.objects(texts.map(Ok));
        }
        self.columns(records, columns, title)
    }

    /// Prints JSON objects of a listing.
    fn objects(
        &mut self,
        objects: impl Iterator<Item = Result<String, CliError>>,
    ) -> Result<(), CliError> {
        let mut listed = self.listed.unwrap_or_default();
        for object in objects {
            let object = object?;
            match (self.args.format, listed) {
                (OutputFormat::Jsonl, _) => self.line(&object)?,
                (_, 0) => write!(self.out, "[{object}").map_err(broken)?,
                _ => write!(self.out, ",\n {object}").map_err(broken)?,
            }
            listed += 1;
        }
        self.listed = Some(listed);
        Ok(())
    }

    fn columns(
        &mut self,
        records: &[Value],
        columns: &[&str],
        title: fn(&str) -> String,
    ) -> Result<(), CliError> {
        if self.is_table() {
            let is_other = |listing: &TableListing| !listing.is_like(columns);
            if self.listing.as_ref().is_some_and(is_other) {
                self.print_listing()?;
            }
            let listing = self.listing.get_or_insert_with(|| TableListing::new(columns, title));
            listing.records.extend_from_slice(records);
            let is_full = listing.records.len() >= TABLE_ROWS_MAX;
            return if is_full { self.print_listing() } else { Ok(()) };
        }
        if records.is_empty() && columns.is_empty() {
            return Ok(());
        }
        let mut names: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        if names.is_empty() {
            names = names_of(records);
            if names.iter().all(|name| self.header.contains(name)) {
                names.clone_from(&self.header);
            } else if !self.header.is_empty() && self.args.format == OutputFormat::Csv {
                return Err(CliError::Usage(
                    "later results have properties that the header of the CSV has not: name them \
                     with --select, or use -o jsonl"
                        .to_owned(),
                ));
            }
        }
        if self.header != names {
            self.header.clone_from(&names);
            self.row(&names)?;
        }
        let text = if self.args.format == OutputFormat::Plain { flat } else { raw };
        records.iter().try_for_each(|record| {
            let cells = names.iter().map(|name| text(record.get(name).unwrap_or(&Value::Null)));
            self.row(&cells.collect::<Vec<_>>())
        })
    }

    /// Prints the table of a listing.
    fn print_listing(&mut self) -> Result<(), CliError> {
        let Some(listing) = self.listing.take() else { return Ok(()) };
        let drawn = Drawing { width: self.args.width }.listing(&listing);
        drawn.iter().try_for_each(|table| self.line(table))
    }

    /// Prints values of CSV or plain columns.
    fn row(&mut self, cells: &[String]) -> Result<(), CliError> {
        if self.args.format == OutputFormat::Csv {
            let mut writer = csv::Writer::from_writer(&mut self.out);
            let written = writer.write_record(cells).map_err(io::Error::from);
            return written.and_then(|()| writer.flush()).map_err(broken);
        }
        let cells: Vec<_> = cells.iter().map(|cell| escaped(cell)).collect();
        self.line(&cells.join("\t"))
    }

    /// Prints one record: a document or a line of JSON, a row of CSV, else a row for each value that it has.
    ///
    /// # Errors
    /// The error of the output.
    pub fn record(&mut self, heading: [&str; 2], record: &Value) -> Result<(), CliError> {
        match self.args.format {
            OutputFormat::Json => self.line(&format!("{record:#}")),
            OutputFormat::Jsonl => self.line(&record.to_string()),
            OutputFormat::Csv => self.columns(std::slice::from_ref(record), &[], title),
            OutputFormat::Plain => self.fields(flat_fields(record)),
            OutputFormat::Table => {
                let drawn = Drawing { width: self.args.width }.record(heading, record, title);
                drawn.iter().try_for_each(|table| self.line(table))
            }
        }
    }

    /// Prints the fields of one result, a line for each.
    ///
    /// # Errors
    /// The error of the output.
    pub fn fields(
        &mut self,
        fields: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), CliError> {
        fields.into_iter().try_for_each(|(name, value)| self.row(&[name, value]))
    }

    /// Prints records as one table in which every value is whole.
    ///
    /// # Errors
    /// The error of the output.
    pub fn whole(&mut self, records: &[Value]) -> Result<(), CliError> {
        let drawn = Drawing { width: self.args.width }.whole(records, title);
        drawn.iter().try_for_each(|table| self.line(table))
    }

    /// Prints for a person that there is no result; beside CSV and plain columns, which have none.
    ///
    /// # Errors
    /// The error of the output.
    pub fn unless_empty(&mut self, printed: bool, none: &str) -> Result<(), CliError> {
        match (printed || self.is_json(), self.is_table()) {
            (true, _) => {}
            (false, true) => self.line(none)?,
            (false, false) => self.note(none),
        }
        Ok(())
    }

    /// Prints entities; in CSV and plain columns the keys and the selected properties, all where none is selected.
    ///
    /// # Errors
    /// The output, or an entity that is malformed.
    pub fn entities(&mut self, entities: &[Entity], select: &[String]) -> Result<(), CliError> {
        if self.is_json() {
            let texts = entities.iter().map(|entity| entity_json::to_string(entity, Meta::All));
            return self.objects(texts.map(|text| text.map_err(CliError::Protocol)));
        }
        let records = entities.iter().map(|entity| entity_record(entity, select));
        let records: Result<Vec<_>, _> = records.collect();
        // Without a selection the header is what the first entities have.
        let columns = if select.is_empty() { Vec::new() } else { with_keys(select) };
        self.columns(&records.map_err(CliError::Protocol)?, &columns, escaped)
    }

    /// Ends a listing without any entity: an empty array of JSON, or a header with the keys and these properties.
    ///
    /// # Errors
    /// The error of the output.
    pub fn no_entities(&mut self, select: &[String]) -> Result<(), CliError> {
        if self.is_json() {
            return self.entities(&[], select);
        }
        self.columns(&[], &with_keys(select), escaped)
    }

    /// Prints one entity as JSON, or as a listing of one.
    ///
    /// # Errors
    /// The output, or an entity that is malformed.
    pub fn entity(&mut self, entity: &Entity, select: &[String]) -> Result<(), CliError> {
        if self.is_json() {
            return self
                .line(&entity_json::to_string(entity, Meta::All).map_err(CliError::Protocol)?);
        }
        self.entities(std::slice::from_ref(entity), select)
    }

    /// Prints the cost of a read on standard error, where that is requested.
    pub fn cost(&self, is_requested: bool, cost: &QueryCost) {
        match (is_requested || self.args.verbose, self.is_json()) {
            (false, _) => {}
            (true, true) => report_line(&json!({ "cost": cost_json(cost) }).to_string()),
            (true, false) => report_line(&cost_text(cost)),
        }
    }

    /// Whether a person reads what is not the result.
    #[must_use]
    pub fn shows_notes(&self) -> bool {
        !self.args.quiet && !self.is_json()
    }

    /// Prints a note for a person on standard error.
    pub fn note(&self, text: &str) {
        if !self.args.quiet {
            report_line(text);
        }
    }

    /// Flushes what is complete to standard output.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn flush(&mut self) -> Result<(), CliError> {
        self.out.flush().map_err(broken)
    }

    /// Prints the end of a listing, and flushes.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn finish(&mut self) -> Result<(), CliError> {
        self.print_listing()?;
        if let (OutputFormat::Json, Some(listed)) = (self.args.format, self.listed.take()) {
            self.line(if listed == 0 { "[]" } else { "]" })?;
        }
        self.flush()
    }

    /// A progress bar over `bytes`, of which a run before this one completed `start`, or a counter when their number is
    /// unknown. Shown on a terminal only.
    #[must_use]
    pub fn progress(&self, bytes: Option<u64>, start: u64) -> ProgressBar {
        if self.is_json() || self.args.quiet || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        // Nothing is drawn before the bar is where it begins.
        let bar = ProgressBar::hidden();
        if let Some(bytes) = bytes {
            bar.set_length(bytes);
        }
        let template = match bytes {
            Some(_) => "{bar:30} {percent:>3}% {rate} {msg} {left}",
            None => "{spinner} {msg} in {elapsed}",
        };
        let rate = |state: &ProgressState, text: &mut dyn fmt::Write| {
            let _ = text.write_str(&rate_text(state.per_sec(), state.elapsed()));
        };
        let left = |state: &ProgressState, text: &mut dyn fmt::Write| {
            let _ = text.write_str(&eta_text(state.eta(), state.elapsed()));
        };
        let bar = match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style.with_key("rate", rate).with_key("left", left)),
            Err(_) => bar,
        };
        skip_ahead(&bar, start);
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar
    }
}

/// Moves a bar past the work of an earlier run, which does not count for its rate.
pub fn skip_ahead(bar: &ProgressBar, bytes: u64) {
    bar.inc(bytes);
    // The estimate takes the position, and then forgets how fast it was reached.
    bar.tick();
    bar.reset_elapsed();
}

/// Bytes a second; none at first, when what is read ahead looks like a rate.
fn rate_text(per_sec: f64, elapsed: Duration) -> String {
    if elapsed < RATE_AFTER || !per_sec.is_finite() {
        return String::new();
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and a rate is not negative"
    )]
    let per_sec = per_sec as u64;
    format!("{}/s", bytes(per_sec))
}

/// The remaining time; none as long as the rate is none, or nothing was done.
fn eta_text(eta: Duration, elapsed: Duration) -> String {
    if elapsed < RATE_AFTER || eta.is_zero() {
        return String::new();
    }
    format!("(eta {:#})", HumanDuration(eta))
}

/// The columns of entities with these properties, each once.
fn with_keys(select: &[String]) -> Vec<&str> {
    let mut names = vec!["PartitionKey", "RowKey"];
    for name in select {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// The names of the fields of records, in the order in which they appear.
fn names_of(records: &[Value]) -> Vec<String> {
    let all = records.iter().filter_map(Value::as_object).flat_map(Map::keys);
    let mut seen = HashSet::new();
    all.filter(|name| seen.insert(name.as_str())).cloned().collect()
}

/// Prints a line on standard error, with control characters escaped: names and paths must not control the terminal.
///
/// A failed write is ignored: a closed or full standard error must not end a command in progress.
/// The macros of the standard library panic there.
pub fn report_line(text: &str) {
    let _ = io::stderr().write_all(format!("{}\n", escaped(text)).as_bytes());
}

/// Prints the lines of a text in the same way.
pub fn report_lines(text: &str) {
    text.lines().for_each(report_line);
}

fn broken(error: io::Error) -> CliError {
    CliError::file("cannot write to standard output")(error)
}

#[cfg(test)]
mod tests;
