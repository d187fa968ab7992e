//! The command line: what every command takes, with its help.

use std::path::PathBuf;

use clap::{Arg, Args, Subcommand, ValueEnum};
use trestle_command::{
    errors::{EXIT_CODES, table_exit_codes, with_help},
    rows::Format,
    type_names,
    values::whole_number,
};

use crate::{
    edm::EdmType,
    service::{PolicyCommand, PropertiesCommand},
};

/// Commands on tables.
#[derive(Debug, Subcommand)]
#[command(
    after_help = EXIT_CODES,
    mut_subcommands = |it| { let codes = table_exit_codes(it.get_name()); with_help(it, &codes) }
)]
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
    /// Show a table
    #[command(mut_args = hide_entity)]
    Get(GetEntityArgs),
    /// Delete a table with its entities
    ///
    /// Takes `--yes`, or its name typed at the prompt on a terminal. Without a terminal and without `--yes` nothing is
    /// deleted and the exit code is 2.
    #[command(mut_args = hide_entity)]
    Delete {
        /// Delete it without confirmation
        #[arg(long, short = 'y')]
        yes: bool,
        /// The table; or, as before, an entity
        #[command(flatten)]
        entity: DeleteEntityArgs,
    },
    /// Show the state of the service, or count what is in a table
    ///
    /// With a table every entity of it is read.
    Stats {
        /// Name of the table
        table: Option<String>,
    },
    /// Show or change the stored access policies of a table
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Show or change the settings of the service for the account: logging, metrics, cross-origin rules
    #[command(subcommand)]
    Properties(PropertiesCommand),
    /// Load a file of entities
    #[command(after_long_help = IMPORT_HELP)]
    Import(ImportArgs),
    /// Write the entities of a table to a file
    #[command(after_long_help = EXPORT_HELP)]
    Export(ExportArgs),
    /// Earlier spelling of `trestle entity insert`
    #[command(hide = true)]
    Insert(InsertEntityArgs),
    /// Earlier spelling of `trestle entity upsert`
    #[command(hide = true)]
    Upsert(WriteEntityArgs),
    /// Earlier spelling of `trestle entity query`
    #[command(hide = true)]
    Query(QueryArgs),
    /// Earlier spelling of `trestle entity explain`
    #[command(hide = true)]
    Explain(ExplainQueryArgs),
}

/// Commands on entities.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum EntityCommand {
    /// Insert a new entity
    Insert(InsertEntityArgs),
    /// Insert an entity, or change the existing one
    Upsert(WriteEntityArgs),
    /// Change an existing entity
    Update {
        /// Only if it has this etag
        #[arg(long, value_name = "ETAG")]
        if_match: Option<String>,
        /// The entity
        #[command(flatten)]
        write: WriteEntityArgs,
    },
    /// Show one entity
    Get(GetEntityArgs),
    /// Show the entities that match a filter, in key order
    Query(QueryArgs),
    /// Explain how a query would be executed, and how to make it cheaper
    Explain(ExplainQueryArgs),
    /// Delete an entity
    Delete(DeleteEntityArgs),
}

/// Hides the arguments for an entity, which commands on tables took before.
fn hide_entity(arg: Arg) -> Arg {
    let is_shown = matches!(arg.get_id().as_str(), "table" | "yes");
    if is_shown { arg } else { arg.hide(true) }
}

/// The key of an entity.
#[derive(Debug, Default, Args)]
pub struct EntityKeyArgs {
    /// Partition key; may be ''
    #[arg(value_name = "PARTITION_KEY", requires = "row", conflicts_with = "partition_key")]
    partition: Option<String>,
    /// Row key; may be ''
    #[arg(value_name = "ROW_KEY", conflicts_with = "row_key")]
    row: Option<String>,
    /// Partition key
    #[arg(long, short = 'p', value_name = "KEY", requires = "row_key")]
    partition_key: Option<String>,
    /// Row key
    #[arg(long, short = 'r', value_name = "KEY", requires = "partition_key")]
    row_key: Option<String>,
}

impl EntityKeyArgs {
    /// Whether a key is given.
    pub(crate) fn is_given(&self) -> bool {
        self.partition.is_some() || self.partition_key.is_some()
    }

    /// Partition key and row key, if they are given.
    pub(crate) fn given(self) -> Option<(String, String)> {
        self.partition.or(self.partition_key).zip(self.row.or(self.row_key))
    }
}

/// Arguments of `get`.
#[derive(Debug, Args)]
pub struct GetEntityArgs {
    /// Name of the table
    pub(crate) table: String,
    /// The key
    #[command(flatten)]
    pub(crate) key: EntityKeyArgs,
    /// Only these properties, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) select: Vec<String>,
    /// Also print what the read cost, on standard error
    #[arg(long)]
    pub(crate) cost: bool,
}

/// Arguments of `delete`.
#[derive(Debug, Args)]
pub struct DeleteEntityArgs {
    /// Name of the table
    pub(crate) table: String,
    /// The key
    #[command(flatten)]
    pub(crate) key: EntityKeyArgs,
    /// Delete the entity only if it has this etag
    #[arg(long, value_name = "ETAG")]
    pub(crate) if_match: Option<String>,
}

/// Arguments of `insert`.
#[derive(Debug, Args)]
pub struct InsertEntityArgs {
    /// Name of the table
    pub(crate) table: String,
    /// The entity
    #[command(flatten)]
    pub(crate) entity: EntityArgs,
}

/// Arguments of `upsert` and `update`.
#[derive(Debug, Args)]
pub struct WriteEntityArgs {
    /// Name of the table
    pub(crate) table: String,
    /// What happens to an existing entity: merge keeps its other properties
    #[arg(long, value_enum, default_value_t = UpsertMode::Merge)]
    pub(crate) mode: UpsertMode,
    /// The entity
    #[command(flatten)]
    pub(crate) entity: EntityArgs,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainQueryArgs {
    /// Name of the table
    pub(crate) table: String,
    /// The filter to explain; every entity when left out
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) filter: String,
    /// The properties that would be returned
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) select: Vec<String>,
    /// Also run the first page and print what it cost
    #[arg(long)]
    pub(crate) analyze: bool,
}

/// How an entity is given.
#[derive(Debug, Args)]
pub struct EntityArgs {
    /// The key
    #[command(flatten)]
    pub(crate) key: EntityKeyArgs,
    /// A property: name=text, or name:int64=5 for another type (String, Int32, Int64, Double, Boolean, DateTime, Guid,
    /// Binary)
    #[arg(long = "set", short = 's', value_name = "NAME[:TYPE]=VALUE")]
    pub(crate) set: Vec<String>,
    /// The entity as JSON, such as '{"PartitionKey":"p","RowKey":"r","age":39}'; `-` reads standard
    /// input
    #[arg(
        long,
        value_name = "JSON|-",
        conflicts_with_all = ["partition", "row", "partition_key", "row_key", "set"]
    )]
    pub(crate) json_entity: Option<String>,
}

/// What an upsert or update does to an existing entity.
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
    #[arg(long, visible_alias = "top", value_name = "N")]
    #[arg(value_parser = whole_number::<u32>(0..=u32::MAX.into()))]
    pub(crate) limit: Option<u32>,
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
    /// Types of CSV columns that have no type column, such as size=int64,rate=double
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
    /// Format of the file; by default from its extension, else CSV with `-o csv`, JSONL for standard output
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

fn column_type(text: &str) -> Result<(String, EdmType), String> {
    let (name, edm) = text.split_once('=').ok_or("must be NAME=TYPE")?;
    Ok((name.to_owned(), type_names::parse(edm, |_| true)?))
}

#[cfg(test)]
mod tests;
