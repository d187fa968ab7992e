//! The output of a command: tables for people, one JSON object a line for programs, progress on
//! standard error.

use std::io::{self, BufWriter, IsTerminal as _, Write};

use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use trestle_proto::table::v1::{Entity, QueryCost, QueryScope};

use crate::{edm, entity_json, entity_json::Meta, errors::CliError};

/// Longest cell of a table, in characters.
const CELL_CHARS_MAX: usize = 80;

/// Standard output of one command.
pub(crate) struct Output {
    out: Box<dyn Write + Send>,
    json: bool,
}

impl Output {
    /// Writes to standard output.
    pub(crate) fn standard(json: bool) -> Self {
        Self { out: Box::new(BufWriter::new(io::stdout())), json }
    }

    /// Whether programs read the output.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a line.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), CliError> {
        writeln!(self.out, "{text}").map_err(broken)
    }

    /// Prints `human`, or for programs the object `json`.
    pub(crate) fn either(&mut self, human: &str, json: &serde_json::Value) -> Result<(), CliError> {
        if self.json { self.line(&json.to_string()) } else { self.line(human) }
    }

    /// Prints a table with a header.
    pub(crate) fn table(&mut self, header: &[&str], rows: &[Vec<String>]) -> Result<(), CliError> {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(header);
        for row in rows {
            table.add_row(row.iter().map(|cell| shorten(cell)));
        }
        self.line(&table.to_string())
    }

    /// Prints entities, as one object a line for programs.
    pub(crate) fn entities(&mut self, entities: &[Entity]) -> Result<(), CliError> {
        if self.json {
            for entity in entities {
                let text = entity_json::to_string(entity, Meta::All).map_err(CliError::Protocol)?;
                self.line(&text)?;
            }
            return Ok(());
        }
        if entities.is_empty() {
            return Ok(());
        }
        let (header, rows) = grid(entities)?;
        let header: Vec<_> = header.iter().map(String::as_str).collect();
        self.table(&header, &rows)
    }

    /// Prints the cost of a read on standard error.
    pub(crate) fn cost(&self, cost: &QueryCost) {
        let scope = scope_name(cost.scope);
        if self.json {
            let cost = serde_json::json!({ "cost": {
                "scope": scope,
                "scanned": cost.scanned,
                "returned": cost.returned,
                "bytes": cost.bytes,
            } });
            report_line(&cost.to_string());
        } else {
            report_line(&cost_text(cost));
        }
    }

    /// Flushes standard output.
    pub(crate) fn flush(&mut self) -> Result<(), CliError> {
        self.out.flush().map_err(broken)
    }

    /// A progress bar over `bytes`, or a counter when their number is unknown. Shown on a
    /// terminal only.
    pub(crate) fn progress(&self, bytes: Option<u64>) -> ProgressBar {
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

/// A scope as the contract spells it, without its prefix.
pub(crate) fn scope_name(scope: i32) -> &'static str {
    let name = QueryScope::try_from(scope).unwrap_or_default().as_str_name();
    name.strip_prefix("QUERY_SCOPE_").unwrap_or(name)
}

/// A number with a thousands separator.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len().saturating_sub(at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How many of a thing, such as `1 entity` or `2,000 entities`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    let things = match (number, thing.strip_suffix('y')) {
        (1, _) => thing.to_owned(),
        (_, Some(stem)) => format!("{stem}ies"),
        (_, None) => format!("{thing}s"),
    };
    format!("{} {things}", thousands(number))
}

/// A size in a suitable unit.
pub(crate) fn bytes(number: u64) -> String {
    indicatif::BinaryBytes(number).to_string()
}

/// One row for each entity, one column for each property that any of them has.
fn grid(entities: &[Entity]) -> Result<(Vec<String>, Vec<Vec<String>>), CliError> {
    let mut names: Vec<&str> = entities
        .iter()
        .flat_map(|entity| entity.properties.iter().map(|property| property.name.as_str()))
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut rows = Vec::with_capacity(entities.len());
    for entity in entities {
        let mut row = vec![entity.partition_key.clone(), entity.row_key.clone()];
        for name in &names {
            let property = entity.properties.iter().find(|property| property.name == *name);
            let kind = property.and_then(|p| p.value.as_ref()).and_then(|v| v.kind.as_ref());
            row.push(match kind {
                Some(kind) => edm::format_value(kind).map_err(CliError::Protocol)?.into_owned(),
                None => String::new(),
            });
        }
        rows.push(row);
    }
    let mut header = vec!["PartitionKey".to_owned(), "RowKey".to_owned()];
    header.extend(names.into_iter().map(str::to_owned));
    Ok((header, rows))
}

/// Control characters are escaped: stored text must not control the terminal.
fn shorten(cell: &str) -> String {
    let mut chars = cell.chars();
    let mut text = String::new();
    for c in chars.by_ref().take(CELL_CHARS_MAX) {
        if c.is_control() {
            text.extend(c.escape_debug());
        } else {
            text.push(c);
        }
    }
    if chars.next().is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1000), "1,000");
        assert_eq!(thousands(1_234_567), "1,234,567");
    }

    #[test]
    fn one_item_is_counted_in_the_singular() {
        assert_eq!(counted(1, "message"), "1 message");
        assert_eq!(counted(0, "row"), "0 rows");
        assert_eq!(counted(1_000, "entity"), "1,000 entities");
    }

    #[test]
    fn stored_text_cannot_control_or_flood_the_terminal() {
        assert_eq!(shorten("a\x1b[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(shorten(&"é".repeat(81)).chars().count(), 81);
        assert!(shorten(&"é".repeat(81)).ends_with('…'));
    }
}
