//! Tables that fit the terminal.

use comfy_table::{ContentArrangement, Row, Table, presets};
use serde_json::Value;

use super::{
    cells::{cell, nested},
    names_of,
};

/// Longest cell of a listing, in characters.
const CELL_CHARS_MAX: usize = 80;
/// Longest value of a record that is shown vertically, in characters.
const VALUE_CHARS_MAX: usize = 4000;
/// Fewest columns of the terminal for each column of a listing: with fewer every record is shown vertically.
const COLUMN_WIDTH_MIN: usize = 8;

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
        let width_min = names.len().saturating_mul(COLUMN_WIDTH_MIN);
        let is_narrow = self.width.is_some_and(|width| usize::from(width) < width_min);
        if listing.records.len() == 1 || is_narrow {
            let of_names = |record: &Value| {
                let fields =
                    names.iter().filter_map(|name| Some((name.clone(), record.get(name)?.clone())));
                Value::Object(fields.collect())
            };
            let heading = ["Property", "Value"];
            let records = listing.records.iter().map(of_names);
            return records.flat_map(|it| self.record(heading, &it, listing.title)).collect();
        }
        let cells = |record: &Value| {
            let cells = names
                .iter()
                .map(|name| cell(name, record.get(name).unwrap_or(&Value::Null), CELL_CHARS_MAX));
            cells.collect()
        };
        let header = names.iter().map(|name| (listing.title)(name)).collect();
        self.table(header, listing.records.iter().map(cells).collect(), true).into_iter().collect()
    }

    /// A row for each value of a record, and a table for each list of records in it.
    pub(super) fn record(
        &self,
        heading: [&str; 2],
        record: &Value,
        title: fn(&str) -> String,
    ) -> Vec<String> {
        let fields: Vec<_> = record.as_object().into_iter().flatten().collect();
        let rows = fields.iter().filter(|(name, value)| nested(name, value).is_none());
        let rows = rows.map(|(name, value)| vec![title(name), cell(name, value, VALUE_CHARS_MAX)]);
        let rows = rows.filter(|row| row.iter().all(|cell| !cell.is_empty())).collect();
        let values = self.table(heading.map(str::to_owned).to_vec(), rows, false);
        let lists = fields.iter().filter_map(|(name, value)| nested(name, value));
        let lists = lists.filter_map(|records| {
            let names = names_of(&records);
            let cells = |record: &Value| {
                let cell_of = |name: &String| {
                    cell(name, record.get(name).unwrap_or(&Value::Null), VALUE_CHARS_MAX)
                };
                names.iter().map(cell_of).collect()
            };
            let header = names.iter().map(|name| title(name)).collect();
            self.table(header, records.iter().map(cells).collect(), false)
        });
        values.into_iter().chain(lists).collect()
    }

    /// A table as wide as the terminal: cells are shortened to one line, or wrapped.
    fn table(
        &self,
        header: Vec<String>,
        rows: Vec<Vec<String>>,
        is_shortened: bool,
    ) -> Option<String> {
        if rows.is_empty() {
            return None;
        }
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_truncation_indicator("…");
        if let Some(width) = self.width {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(width);
        }
        table.set_header(header);
        for cells in rows {
            let mut row = Row::from(cells);
            if is_shortened && self.width.is_some() {
                row.max_height(1);
            }
            table.add_row(row);
        }
        Some(table.to_string())
    }
}

#[cfg(test)]
mod tests;
