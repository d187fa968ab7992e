//! The command line: what every command takes, with its help.

use clap::{Arg, Subcommand};
use trestle_command::errors::{EXIT_CODES, table_exit_codes, with_help};

use crate::service::{PolicyCommand, PropertiesCommand};

mod entities;
mod files;
mod query;

pub use entities::{
    DeleteEntityArgs, EntityArgs, EntityCommand, EntityKeyArgs, GetEntityArgs, InsertEntityArgs,
    UpsertMode, WriteEntityArgs,
};
use files::{EXPORT_HELP, IMPORT_HELP};
pub use files::{ExportArgs, ImportArgs, ImportMode};
pub use query::{CountArgs, ExplainQueryArgs, QueryArgs};

/// Commands on tables.
#[derive(Debug, Subcommand)]
#[command(
    after_help = EXIT_CODES,
    mut_subcommands = |it| { let codes = table_exit_codes(it.get_name()); with_help(it, codes) }
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

/// Hides the arguments for an entity, which commands on tables took before.
fn hide_entity(arg: Arg) -> Arg {
    let is_shown = matches!(arg.get_id().as_str(), "table" | "yes");
    if is_shown { arg } else { arg.hide(true) }
}

#[cfg(test)]
mod tests;
