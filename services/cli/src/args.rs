//! The command line: what every command takes, with its help.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};

use crate::{
    credentials::CredentialArgs,
    edm::{self, EdmType},
    errors::{EXIT_CODES, with_help},
    rows::Format,
    trust::TlsArgs,
};

/// The server and the form of output; arguments of every client command.
#[derive(Debug, Clone, Args)]
pub struct ClientArgs {
    /// Address of the server
    #[arg(
        long,
        global = true,
        env = "TRESTLE_ENDPOINT",
        default_value = "http://127.0.0.1:50051",
        value_name = "URL"
    )]
    pub endpoint: String,
    /// TLS
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Print JSON for programs, one object a line, errors included
    #[arg(long, global = true)]
    pub json: bool,
    /// Longest wait for a single call, such as 500ms, 10s or 2m; streams have no limit
    #[arg(long, global = true, default_value = "30s", value_parser = duration, value_name = "TIME")]
    pub timeout: Duration,
    /// Credentials
    #[command(flatten)]
    pub credentials: CredentialArgs,
}

/// Commands on tables and entities.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum TableCommand {
    /// Create a table
    Create {
        /// Name: a letter, then letters and digits, 3 to 63 characters
        table: String,
        /// Succeed when the table exists
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List tables, ordered by name
    List {
        /// Only tables whose name begins so, in any case
        #[arg(long, value_name = "TEXT")]
        prefix: Option<String>,
    },
    /// Delete an entity, or a whole table
    ///
    /// Deleting a table takes `--yes`, or its name typed at the prompt on a terminal. Without a
    /// terminal and without `--yes` nothing is deleted and the exit code is 2.
    Delete(DeleteArgs),
    /// Insert a new entity
    Insert {
        /// Name of the table
        table: String,
        /// The entity
        #[command(flatten)]
        entity: EntityArgs,
    },
    /// Insert an entity, or change the existing one
    Upsert {
        /// Name of the table
        table: String,
        /// What happens to an existing entity: merge keeps its other properties
        #[arg(long, value_enum, default_value_t = UpsertMode::Merge)]
        mode: UpsertMode,
        /// The entity
        #[command(flatten)]
        entity: EntityArgs,
    },
    /// Show one entity
    Get {
        /// Name of the table
        table: String,
        /// Partition key; may be ''
        partition_key: String,
        /// Row key; may be ''
        row_key: String,
        /// Only these properties, separated by commas
        #[arg(long, value_delimiter = ',', value_name = "NAMES")]
        select: Vec<String>,
        /// Also print what the read cost, on standard error
        #[arg(long)]
        cost: bool,
    },
    /// Show the entities that match a filter, in key order
    Query(QueryArgs),
    /// Load a file of entities
    #[command(after_long_help = IMPORT_HELP)]
    Import(ImportArgs),
    /// Write the entities of a table to a file
    #[command(after_long_help = EXPORT_HELP)]
    Export(ExportArgs),
    /// Explain how a query would be executed, and how to make it cheaper
    Explain {
        /// Name of the table
        table: String,
        /// The filter to explain; every entity when left out
        #[arg(long, default_value = "", hide_default_value = true)]
        filter: String,
        /// The properties that would be returned
        #[arg(long, value_delimiter = ',', value_name = "NAMES")]
        select: Vec<String>,
        /// Also run the first page and print what it cost
        #[arg(long)]
        analyze: bool,
    },
    /// Show the state of the service, or count what is in a table
    ///
    /// With a table every entity of it is read.
    Stats {
        /// Name of the table
        table: Option<String>,
    },
}

/// Arguments of `delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Name of the table
    pub(crate) table: String,
    /// Partition key of the entity; without it the whole table is deleted
    #[arg(requires = "row_key")]
    pub(crate) partition_key: Option<String>,
    /// Row key of the entity
    pub(crate) row_key: Option<String>,
    /// Delete the entity only if it has this etag
    #[arg(long, value_name = "ETAG", requires = "row_key")]
    pub(crate) if_match: Option<String>,
    /// Delete a table without confirmation
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

/// How an entity is given.
#[derive(Debug, Args)]
pub struct EntityArgs {
    /// Partition key; may be ''
    #[arg(long, short = 'p', value_name = "KEY", required_unless_present = "json_entity")]
    pub(crate) partition_key: Option<String>,
    /// Row key; may be ''
    #[arg(long, short = 'r', value_name = "KEY", required_unless_present = "json_entity")]
    pub(crate) row_key: Option<String>,
    /// A property: name=text, or name:Edm.Int64=5 for another type (String, Int32, Int64, Double,
    /// Boolean, DateTime, Guid, Binary)
    #[arg(long = "set", short = 's', value_name = "NAME[:TYPE]=VALUE")]
    pub(crate) set: Vec<String>,
    /// The entity as JSON, such as '{"PartitionKey":"p","RowKey":"r","age":39}'; `-` reads standard
    /// input
    #[arg(
        long,
        value_name = "JSON|-",
        conflicts_with_all = ["partition_key", "row_key", "set"]
    )]
    pub(crate) json_entity: Option<String>,
}

/// What an upsert does to an existing entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UpsertMode {
    /// Set the given properties, keep the others
    Merge,
    /// Replace the entity
    Replace,
}

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

/// Arguments of `query`.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// Name of the table
    pub(crate) table: String,
    /// Which entities, such as "PartitionKey eq 'c42' and total gt 100"; all when left out
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) filter: String,
    /// Only these properties, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) select: Vec<String>,
    /// At most this many entities in all
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<u32>,
    /// Also print what the query cost, on standard error
    #[arg(long)]
    pub(crate) cost: bool,
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
    /// Types of CSV columns that have no type column, such as size=Edm.Int64,rate=Double
    #[arg(long, value_delimiter = ',', value_parser = column_type, value_name = "NAME=TYPE")]
    pub(crate) types: Vec<(String, EdmType)>,
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
    /// Format of the file; by default from its extension, JSONL for standard output
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Only entities that match
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) filter: String,
    /// Only these properties, in this order of columns; saves CSV its first pass over the table
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) columns: Vec<String>,
    /// Also write the time of the last write
    #[arg(long)]
    pub(crate) with_timestamp: bool,
    /// Continue an interrupted export to this file
    #[arg(long)]
    pub(crate) resume: bool,
}

const IMPORT_HELP: &str = "\
JSONL: one entity a line, such as
  {\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"size@odata.type\":\"Edm.Int64\",\"size\":\"5\",\"new\":true}
Types that need no annotation: text, true and false, whole numbers (Int32), numbers with a point
(Double).

CSV: a header with PartitionKey, RowKey and the properties. A column NAME@type holds the type of
NAME in each row; an empty type cell means that the row has no such property. Columns without a
type column are text, or of the type in --types; there an empty cell that is not text means that the
row has no such property.

Timestamp and odata.* are not imported. Each entity is written on its own: an import is not atomic.
Progress is kept in FILE.trestle-import until the import succeeds; --resume continues there, if
the file is the same up to there. While that file exists, an import without --resume is rejected:
remove it to start again. Rows that were sent but not yet answered are sent again, and count as
written when the stored entity is the same.";

const EXPORT_HELP: &str = "\
The file is written as FILE.trestle-part and takes its name when it is complete and on stable
storage; the target of a link is replaced, not the link. A pipe or a device is written to directly.
The same content gives the same bytes, so that export, import and export again ends in an
equal file.

CSV needs the names of all properties first: the table is read twice, unless --columns names them. A
property that appears between the two passes is an error, never left out.

Progress is kept in FILE.trestle-export; --resume continues there. An export is not a snapshot:
concurrent writes may or may not be in it.";

const DURATION_RULE: &str =
    "must be a number above 0 and ms, s, m, h or d; a number alone is in seconds";

/// Reads a time such as `500ms`, `10s`, `2m`, `1h`, `7d`; a bare number is in seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let millis: u64 = match unit {
        "ms" => 1,
        "s" | "" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(DURATION_RULE.to_owned()),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(millis))
        .filter(|millis| *millis > 0)
        .map(Duration::from_millis)
        .ok_or_else(|| DURATION_RULE.to_owned())
}

fn column_type(text: &str) -> Result<(String, EdmType), String> {
    let (name, edm) = text.split_once('=').ok_or("must be NAME=TYPE")?;
    Ok((name.to_owned(), edm::parse_type(edm)?))
}

#[cfg(test)]
mod tests;
