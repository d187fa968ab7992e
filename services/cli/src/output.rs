//! The output of a command: tables for people, one JSON object a line for programs, progress on
//! standard error.

use std::{
    collections::HashSet,
    io::{self, BufWriter, IsTerminal as _, Write},
};

use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use trestle_proto::table::v1::{Entity, QueryCost, QueryScope};

use crate::{client::Session, edm, entity_json, entity_json::Meta, errors::CliError};

/// Longest cell of a table, in characters.
const CELL_CHARS_MAX: usize = 80;

/// The context of a command.
pub(crate) struct Context {
    pub(crate) session: Session,
    pub(crate) output: Output,
}

/// Standard output of one command.
pub struct Output {
    out: Box<dyn Write + Send>,
    json: bool,
}

impl Output {
    /// Writes to standard output.
    #[must_use]
    pub fn standard(json: bool) -> Self {
        Self { out: Box::new(BufWriter::new(io::stdout())), json }
    }

    /// Whether programs read the output.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a line.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn line(&mut self, text: &str) -> Result<(), CliError> {
        writeln!(self.out, "{text}").map_err(broken)
    }

    /// Prints `human`, or for programs the object `json`.
    pub(crate) fn either(&mut self, human: &str, json: &Value) -> Result<(), CliError> {
        if self.json { self.line(&json.to_string()) } else { self.line(human) }
    }

    /// Prints records, which are JSON objects: one a line for programs, else a table of these `columns`, of all where
    /// none is named. A column without a value is left out.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn records(&mut self, records: &[Value], columns: &[&str]) -> Result<(), CliError> {
        if self.json {
            return records.iter().try_for_each(|record| self.line(&record.to_string()));
        }
        self.columns(records, columns, title, CELL_CHARS_MAX)
    }

    fn columns(
        &mut self,
        records: &[Value],
        columns: &[&str],
        title: fn(&str) -> String,
        chars_max: usize,
    ) -> Result<(), CliError> {
        let mut names: Vec<&str> = columns.to_vec();
        if names.is_empty() {
            let all = records.iter().filter_map(Value::as_object).flat_map(Map::keys);
            names = all.map(String::as_str).collect();
            let mut seen = HashSet::new();
            names.retain(|name| seen.insert(*name));
        }
        names.retain(|name| {
            records.iter().any(|record| record.get(*name).is_some_and(|value| !value.is_null()))
        });
        let cells = |record: &Value| {
            names
                .iter()
                .map(|name| cell(name, record.get(*name).unwrap_or(&Value::Null), chars_max))
                .collect()
        };
        let header = names.iter().map(|name| title(name)).collect();
        self.table(header, records.iter().map(cells).collect())
    }

    /// Prints one record: a line for programs, else a row for each value that it has, and a table for each list of
    /// records in it.
    pub(crate) fn record(&mut self, heading: [&str; 2], record: &Value) -> Result<(), CliError> {
        if self.json {
            return self.line(&record.to_string());
        }
        let fields: Vec<_> = record.as_object().into_iter().flatten().collect();
        let has_text = |(name, value): &&(&String, &Value)| {
            nested(name, value).is_none() && !cell(name, value, usize::MAX).is_empty()
        };
        let rows = fields.iter().filter(has_text);
        let rows =
            rows.map(|(name, value)| vec![title(name), cell(name, value, usize::MAX)]).collect();
        self.table(heading.map(str::to_owned).to_vec(), rows)?;
        let tables = fields.iter().filter_map(|(name, value)| nested(name, value));
        tables.into_iter().try_for_each(|records| self.columns(&records, &[], title, usize::MAX))
    }

    fn table(&mut self, header: Vec<String>, rows: Vec<Vec<String>>) -> Result<(), CliError> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(header);
        table.add_rows(rows);
        self.line(&table.to_string())
    }

    /// Prints for a person that there is no result.
    pub(crate) fn unless_empty(&mut self, printed: bool, none: &str) -> Result<(), CliError> {
        if printed || self.json { Ok(()) } else { self.line(none) }
    }

    /// Prints entities, as one object a line for programs.
    pub(crate) fn entities(&mut self, entities: &[Entity]) -> Result<(), CliError> {
        if !self.json {
            let records: Result<Vec<_>, _> = entities.iter().map(entity_record).collect();
            return self.columns(
                &records.map_err(CliError::Protocol)?,
                &[],
                escaped,
                CELL_CHARS_MAX,
            );
        }
        for entity in entities {
            let text = entity_json::to_string(entity, Meta::All).map_err(CliError::Protocol)?;
            self.line(&text)?;
        }
        Ok(())
    }

    /// Prints the cost of a read on standard error.
    pub(crate) fn cost(&self, cost: &QueryCost) {
        match self.json {
            true => report_line(&json!({ "cost": cost_json(cost) }).to_string()),
            false => report_line(&cost_text(cost)),
        }
    }

    /// Flushes standard output.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn flush(&mut self) -> Result<(), CliError> {
        self.out.flush().map_err(broken)
    }

    /// A progress bar over `bytes`, or a counter when their number is unknown. Shown on a
    /// terminal only.
    #[must_use]
    pub fn progress(&self, bytes: Option<u64>) -> ProgressBar {
        if self.json || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let (bar, template) = match bytes {
            Some(bytes) => (
                ProgressBar::new(bytes),
                "{bar:30} {percent:>3}% {bytes_per_sec} {msg} (eta {eta})",
            ),
            None => (ProgressBar::new_spinner(), "{spinner} {msg} in {elapsed}"),
        };
        match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}

/// Prints a line on standard error.
///
/// A failed write is ignored: a closed or full standard error must not end a command in progress.
/// The macros of the standard library panic there.
pub(crate) fn report_line(text: &str) {
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

fn broken(error: io::Error) -> CliError {
    CliError::file("cannot write to standard output")(error)
}

/// One line with the cost of a read.
pub(crate) fn cost_text(cost: &QueryCost) -> String {
    format!(
        "cost: {}, {} scanned, {} returned, {}",
        scope_name(cost.scope),
        thousands(cost.scanned),
        thousands(cost.returned),
        bytes(cost.bytes)
    )
}

/// The same for programs.
pub(crate) fn cost_json(cost: &QueryCost) -> Value {
    json!({
        "scope": scope_name(cost.scope), "scanned": cost.scanned, "returned": cost.returned,
        "bytes": cost.bytes,
    })
}

/// A scope as the contract spells it, without its prefix.
pub(crate) fn scope_name(scope: i32) -> &'static str {
    let name = QueryScope::try_from(scope).unwrap_or_default().as_str_name();
    name.strip_prefix("QUERY_SCOPE_").unwrap_or(name)
}

/// A number with a thousands separator.
#[must_use]
pub fn thousands(number: u64) -> String {
    HumanCount(number).to_string()
}

/// How many of a thing, such as `1 entity` or `2,000 entities`.
#[must_use]
pub fn counted(number: u64, thing: &str) -> String {
    let things = match (number, thing.strip_suffix('y')) {
        (1, _) => thing.to_owned(),
        (_, Some(stem)) => format!("{stem}ies"),
        (_, None) => format!("{thing}s"),
    };
    format!("{} {things}", thousands(number))
}

/// A size in a suitable unit.
pub(crate) fn bytes(number: u64) -> String {
    BinaryBytes(number).to_string()
}

/// A record with more fields.
pub(crate) fn with_fields(record: Value, more: Value) -> Value {
    let fields = [record, more].into_iter().filter_map(|value| match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    fields.flatten().collect()
}

/// The name of a field as the title of its column.
fn title(name: &str) -> String {
    let (first, rest) = name.split_at_checked(1).unwrap_or_default();
    format!("{}{}", first.to_ascii_uppercase(), rest.replace('_', " "))
}

/// The records in a field: a list of objects, or objects by name.
fn nested(name: &str, value: &Value) -> Option<Vec<Value>> {
    if let Value::Array(records) = value {
        return records.first()?.is_object().then(|| records.clone());
    }
    let records = value.as_object().filter(|all| all.values().all(Value::is_object))?;
    let records = records.iter().map(|(key, fields)| {
        let key = (name.to_owned(), json!(key));
        std::iter::once(key).chain(fields.as_object().cloned().into_iter().flatten()).collect()
    });
    Some(records.collect())
}

/// The value of a field for a person, with at most so many characters of a text.
fn cell(name: &str, value: &Value, chars_max: usize) -> String {
    let nested = |value: &Value| cell(name, value, chars_max);
    match value {
        Value::Null => String::new(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => shortened(text, chars_max),
        Value::Number(number) => match number.as_u64() {
            Some(number) if name.ends_with("bytes") => bytes(number),
            Some(number) => thousands(number),
            None => format!("{:.1}", number.as_f64().unwrap_or_default()),
        },
        Value::Array(values) => values.iter().map(nested).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}={}", nested(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
    }
}

/// An entity with the texts of its values.
fn entity_record(entity: &Entity) -> Result<Value, String> {
    let mut record = Map::new();
    record.insert("PartitionKey".to_owned(), json!(entity.partition_key));
    record.insert("RowKey".to_owned(), json!(entity.row_key));
    for property in &entity.properties {
        if let Some(kind) = property.value.as_ref().and_then(|value| value.kind.as_ref()) {
            record.insert(property.name.clone(), json!(edm::format_value(kind)?));
        }
    }
    Ok(Value::Object(record))
}

/// Control characters are escaped: stored text must not control the terminal.
pub(crate) fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut text, c| {
        match c.is_control() {
            true => text.extend(c.escape_debug()),
            false => text.push(c),
        }
        text
    })
}

fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => escaped(text.get(..end).unwrap_or_default()) + "…",
        None => escaped(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_item_is_counted_in_the_singular() {
        assert_eq!(counted(1, "message"), "1 message");
        assert_eq!(counted(0, "row"), "0 rows");
        assert_eq!(counted(1_000, "entity"), "1,000 entities");
    }

    #[test]
    fn stored_text_cannot_control_or_flood_the_terminal() {
        assert_eq!(shortened("a\x1b[31m\n", 80), "a\\u{1b}[31m\\n");
        assert_eq!(shortened(&"é".repeat(81), 80), format!("{}…", "é".repeat(80)));
        assert_eq!(shortened(&"é".repeat(80), 80), "é".repeat(80));
    }
}
