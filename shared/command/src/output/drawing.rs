//! Tables that fit the terminal.

use comfy_table::{ColumnConstraint, ContentArrangement, Row, Table, Width, presets};
use serde_json::Value;

use super::{
    cells::{cell, nested},
    names_of,
};

/// Longest cell of a listing, in characters.
const CELL_CHARS_MAX: usize = 80;
/// Longest value of a record that is shown vertically, in characters.
const VALUE_CHARS_MAX: usize = 4000;
/// Longest value of one of many records that are shown vertically, in characters.
const LISTED_CHARS_MAX: usize = 400;
/// Fewest characters of a cell that is shortened.
const SHORTENED_CHARS_MIN: usize = 5;
/// The padding of a cell with the line beside it.
const PADDING: usize = 3;
/// Fields that another command takes, so they are never shortened; the first column of a listing is one too.
const IDENTIFIERS: [&str; 10] = [
    "PartitionKey",
    "RowKey",
    "partition_key",
    "row_key",
    "blob",
    "etag",
    "pop_receipt",
    "snapshot",
    "url",
    "version_id",
];

/// Records of a listing.
pub(super) struct TableListing {
    columns: Vec<String>,
    title: fn(&str) -> String,
    pub(super) records: Vec<Value>,
}

impl TableListing {
    /// With these columns; with all that the records have where none is named.
    pub(super) fn new(columns: &[&str], title: fn(&str) -> String) -> Self {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Self { columns, title, records: Vec::new() }
    }

    /// Whether records with these columns belong to it.
    pub(super) fn is_like(&self, columns: &[&str]) -> bool {
        self.columns.iter().eq(columns)
    }

    /// The columns that have a value.
    fn names(&self) -> Vec<String> {
        let mut names = match self.columns.is_empty() {
            true => names_of(&self.records),
            false => self.columns.clone(),
        };
        let has_value =
            |record: &Value, name: &str| record.get(name).is_some_and(|it| !it.is_null());
        names.retain(|name| self.records.iter().any(|record| has_value(record, name)));
        names
    }
}

/// Draws tables.
pub(super) struct Drawing {
    /// The width of the terminal, if it is one.
    pub(super) width: Option<u16>,
}

impl Drawing {
    /// One table of all records; a single record vertically, and each one where the columns do not fit.
    pub(super) fn listing(&self, listing: &TableListing) -> Vec<String> {
        let names = listing.names();
        let is_identifier =
            |(at, name): (usize, &String)| at == 0 || IDENTIFIERS.contains(&name.as_str());
        let identifiers: Vec<_> = names.iter().enumerate().map(is_identifier).collect();
        let cells = |record: &Value| {
            let cells = names.iter().zip(&identifiers).map(|(name, is_identifier)| {
                let chars_max = if *is_identifier { VALUE_CHARS_MAX } else { CELL_CHARS_MAX };
                cell(name, record.get(name).unwrap_or(&Value::Null), chars_max)
            });
            cells.collect()
        };
        let rows = listing.records.iter().map(cells).collect();
        let header = names.iter().map(|name| (listing.title)(name)).collect();
        let cells = TableCells { header, rows, whole: identifiers, is_shortened: true };
        match listing.records.len() {
            1 => self.vertical(&names, listing, VALUE_CHARS_MAX),
            _ if self.has_space_for(&cells) => self.table(cells).into_iter().collect(),
            _ => self.vertical(&names, listing, LISTED_CHARS_MAX),
        }
    }

    /// Records in which every value is whole: cells are wrapped.
    pub(super) fn whole(&self, records: &[Value], title: fn(&str) -> String) -> Option<String> {
        self.table(TableCells::of(&names_of(records), records, title))
    }

    /// Each record as a table of its own.
    fn vertical(&self, names: &[String], listing: &TableListing, chars_max: usize) -> Vec<String> {
        let of_names = |record: &Value| {
            let fields =
                names.iter().filter_map(|name| Some((name.clone(), record.get(name)?.clone())));
            Value::Object(fields.collect())
        };
        let records = listing.records.iter().map(of_names);
        let heading = ["Property", "Value"];
        records.flat_map(|it| self.shown(heading, &it, listing.title, chars_max)).collect()
    }

    /// A row for each value of a record, and a table for each list of records in it.
    pub(super) fn record(
        &self,
        heading: [&str; 2],
        record: &Value,
        title: fn(&str) -> String,
    ) -> Vec<String> {
        self.shown(heading, record, title, VALUE_CHARS_MAX)
    }

    /// The same with at most so many characters of a value; identifiers are whole.
    fn shown(
        &self,
        heading: [&str; 2],
        record: &Value,
        title: fn(&str) -> String,
        chars_max: usize,
    ) -> Vec<String> {
        let fields: Vec<_> = record.as_object().into_iter().flatten().collect();
        let rows = fields.iter().filter(|(name, value)| nested(name, value).is_none());
        let rows = rows.filter_map(|(name, value)| {
            let is_identifier = IDENTIFIERS.contains(&name.as_str());
            let chars_max = if is_identifier { VALUE_CHARS_MAX } else { chars_max };
            let text = cell(name, value, chars_max);
            // A key may be empty.
            let is_shown = !text.is_empty() || is_identifier && value.is_string();
            is_shown.then(|| vec![title(name), text])
        });
        let rows = rows.collect();
        let header = heading.map(str::to_owned).to_vec();
        let values =
            self.table(TableCells { header, rows, whole: Vec::new(), is_shortened: false });
        let lists = fields.iter().filter_map(|(name, value)| nested(name, value));
        let lists = lists.filter_map(|records| self.nested(&records, title));
        values.into_iter().chain(lists).collect()
    }

    /// The records in a field of a record; where the columns do not fit, all but the first in one.
    fn nested(&self, records: &[Value], title: fn(&str) -> String) -> Option<String> {
        let names = names_of(records);
        let cells = TableCells { whole: vec![true], ..TableCells::of(&names, records, title) };
        if self.has_space_for(&cells) {
            return self.table(cells);
        }
        let (first, others) = names.split_first()?;
        let joined = |record: &Value| {
            let values = others.iter().map(|name| (title(name), value_cell(record, name)));
            let values = values.filter(|(_, value)| !value.is_empty());
            let values: Vec<_> = values.map(|(name, value)| format!("{name}={value}")).collect();
            vec![value_cell(record, first), values.join(", ")]
        };
        let rows = records.iter().map(joined).collect();
        let header = vec![title(first), String::new()];
        self.table(TableCells { header, rows, whole: Vec::new(), is_shortened: false })
    }

    /// Whether no word of the header is broken, and no identifier shortened.
    fn has_space_for(&self, cells: &TableCells) -> bool {
        let columns = (0..cells.header.len()).map(|at| cells.width_min(at) + PADDING);
        self.width.is_none_or(|width| columns.sum::<usize>() < usize::from(width))
    }

    /// A table as wide as the terminal: cells are shortened to one line, or wrapped.
    fn table(&self, cells: TableCells) -> Option<String> {
        if cells.rows.is_empty() {
            return None;
        }
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_truncation_indicator("…");
        let widths: Vec<_> = (0..cells.header.len()).map(|at| cells.width_min(at)).collect();
        if let Some(width) = self.width {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(width);
        }
        table.set_header(cells.header);
        for cells_of_row in cells.rows {
            let mut row = Row::from(cells_of_row);
            if cells.is_shortened && self.width.is_some() {
                row.max_height(1);
            }
            table.add_row(row);
        }
        if self.width.is_some() {
            for (column, width) in table.column_iter_mut().zip(widths) {
                let padded = u16::try_from(width + PADDING - 1).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(padded)));
            }
        }
        Some(table.to_string())
    }
}

/// The texts of a table.
struct TableCells {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    /// The columns whose cells are not shortened or wrapped; the others may be.
    whole: Vec<bool>,
    /// Whether rows are shortened to one line.
    is_shortened: bool,
}

impl TableCells {
    /// Every value of records, whole.
    fn of(names: &[String], records: &[Value], title: fn(&str) -> String) -> Self {
        let cells = |record: &Value| names.iter().map(|name| value_cell(record, name)).collect();
        let header = names.iter().map(|name| title(name)).collect();
        let rows = records.iter().map(cells).collect();
        Self { header, rows, whole: Vec::new(), is_shortened: false }
    }

    /// Fewest columns of the terminal for a column: the words of its header are whole.
    fn width_min(&self, at: usize) -> usize {
        let words = self.header.get(at).map(|title| title.split(' ').map(width_of));
        let header = words.into_iter().flatten().max().unwrap_or_default();
        let cells = self.rows.iter().filter_map(|row| row.get(at));
        let longest = cells.flat_map(|cell| cell.lines()).map(width_of).max().unwrap_or_default();
        let is_whole = self.whole.get(at).is_some_and(|whole| *whole);
        header.max(if is_whole { longest } else { longest.min(SHORTENED_CHARS_MIN) })
    }
}

/// The value of a field of a record, whole.
fn value_cell(record: &Value, name: &str) -> String {
    cell(name, record.get(name).unwrap_or(&Value::Null), VALUE_CHARS_MAX)
}

/// Most columns of the terminal that a text takes.
fn width_of(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

#[cfg(test)]
mod tests;
