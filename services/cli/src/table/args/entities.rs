//! The command line of `trestle entity`.

use clap::{Args, Subcommand, ValueEnum};
use trestle_command::errors::{EXIT_CODES, with_help};

use super::{CountArgs, ExplainQueryArgs, QueryArgs};

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
    /// Count the entities that match a filter
    ///
    /// Every entity in the key range of the filter is read, and none is printed: a count costs as much as its query.
    Count(CountArgs),
    /// Explain how a query would be executed, and how to make it cheaper
    Explain(ExplainQueryArgs),
    /// Delete an entity
    Delete(DeleteEntityArgs),
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
    /// Only these properties beside the keys, separated by commas; in CSV the columns in this order
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
