//! The command line of `trestle table import` and `trestle table export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trestle_command::{rows::Format, type_names};

use crate::{edm::EdmType, export::ExportFormat};

/// What an import does with each entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImportMode {
    /// Insert; an existing entity is a failure of its row
    Insert,
    /// Insert or replace
    Replace,
    /// Insert or merge
    Merge,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Name of the table, which must exist
    pub(crate) table: String,
    /// The file; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Format of the file; by default from its extension, JSONL for standard input
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// What happens to an existing entity
    #[arg(long, value_enum, default_value_t = ImportMode::Insert)]
    pub(crate) mode: ImportMode,
    /// Types of CSV columns that have no type column, such as size=int64,rate=double
    #[arg(long, value_delimiter = ',', value_parser = column_type, value_name = "NAME=TYPE")]
    pub(crate) types: Vec<(String, EdmType)>,
    /// The column of the file that is the partition key; it is no property then [default: PartitionKey]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) partition_key: Option<String>,
    /// The column of the file that is the row key; it is no property then [default: RowKey]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) row_key: Option<String>,
    /// A property that every entity gets, text or of a type, such as source=web or year:int32=2026; PartitionKey=TEXT
    /// and RowKey=TEXT are the keys of every entity
    #[arg(long = "constant", value_name = "NAME[:TYPE]=VALUE")]
    pub(crate) constants: Vec<String>,
    /// Continue after rows that are malformed or rejected
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Continue an interrupted import of this file
    #[arg(long)]
    pub(crate) resume: bool,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Name of the table
    pub(crate) table: String,
    /// The file; `-` writes to standard output
    pub(crate) file: PathBuf,
    /// Format of the file; by default from its extension, else CSV with `-o csv`, JSONL for standard output
    #[arg(long, value_enum)]
    pub(crate) format: Option<ExportFormat>,
    /// Only entities that match
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) filter: String,
    /// Only these properties, in this order of columns; saves CSV its first pass over the table
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) columns: Vec<String>,
    /// Also write the time of the last write
    #[arg(long)]
    pub(crate) with_timestamp: bool,
    /// Leave the types out: no NAME@type columns in CSV, no NAME@odata.type in JSONL
    #[arg(long)]
    pub(crate) no_types: bool,
    /// Continue an interrupted export to this file
    #[arg(long)]
    pub(crate) resume: bool,
}

pub(super) const IMPORT_HELP: &str = "\
JSONL: one entity a line, such as
  {\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"size@odata.type\":\"Edm.Int64\",\"size\":\"5\",\"new\":true}
Types that need no annotation: text, true and false, whole numbers (Int32), numbers with a point
(Double).

CSV: a header with PartitionKey, RowKey and the properties. A column NAME@type holds the type of
NAME in each row; an empty type cell means that the row has no such property. Columns without a
type column are text, or of the type in --types; there an empty cell that is not text means that the
row has no such property.

With --partition-key and --row-key columns of other names are the keys, or one column is both; in JSONL
a number there is the key as it is written. A row must not have a column of a --constant.

Timestamp and odata.* are not imported. Each entity is written on its own: an import is not atomic.
Progress is kept in FILE.trestle-import until the import succeeds; --resume continues there, if
the file is the same up to there. While that file exists, an import without --resume is rejected:
remove it to start again. Rows that were sent but not yet answered are sent again, and count as
written when the stored entity is the same.";

pub(super) const EXPORT_HELP: &str = "\
The file is written as FILE.trestle-part and takes its name when it is complete and on stable
storage; the target of a link is replaced, not the link. A pipe or a device is written to directly.
The same content gives the same bytes, so that export, import and export again ends in an
equal file.

CSV needs the names of all properties first: the table is read twice, unless --columns names them. A
property that appears between the two passes is an error, never left out.

Parquet has a column for each property, of the type of its values, compressed with zstd in row groups
of at most 65,536 rows or 64 MiB. Guid is text. DateTime is a UTC time in microseconds, or in
nanoseconds if a value has a fraction of a microsecond (1677 to 2262; beyond, text); Timestamp is in
nanoseconds. A property with values of several types is a column of text, as in CSV, and a note names
it. The table is always read twice, and a value without a column of its type is an error then. Such a
file cannot be continued: --resume is rejected.

Without types, an import of the file reads all of CSV as text, and of JSONL what is not text, true,
false, Int32 or Double.

Progress is kept in FILE.trestle-export; --resume continues there. An export is not a snapshot:
concurrent writes may or may not be in it.";

fn column_type(text: &str) -> Result<(String, EdmType), String> {
    let (name, edm) = text.split_once('=').ok_or("must be NAME=TYPE")?;
    Ok((name.to_owned(), type_names::parse(edm, |_| true)?))
}
