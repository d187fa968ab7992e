//! The command line of queries and of what explains them.

use clap::Args;
use trestle_command::values::whole_number;

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

/// Arguments of `count`.
#[derive(Debug, Args)]
pub struct CountArgs {
    /// Name of the table
    pub(crate) table: String,
    /// Which entities, such as "state eq 'open'"; all when left out
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) filter: String,
    /// Only entities of this partition, which alone is read; may be ''
    #[arg(long, short = 'p', value_name = "KEY")]
    pub(crate) partition_key: Option<String>,
    /// Also print what the count cost, on standard error
    #[arg(long)]
    pub(crate) cost: bool,
}

/// Arguments of `query`.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// Name of the table
    pub(crate) table: String,
    /// Which entities, such as "PartitionKey eq 'c42' and total gt 100"; all when left out
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) filter: String,
    /// Only these properties beside the keys, separated by commas; in CSV the columns in this order
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
