//! The arguments of commands that read parts of a backup beside a running server.

use clap::Args;
use trestle_command::selection::Selection;

use super::{KeyArgs, ShowArgs};
use crate::restore_instant::{RestoreInstant, restore_instant};

/// What of a backup is copied into a running server, in place of a data directory.
#[derive(Debug, Clone, Args)]
pub struct NamedRestoreArgs {
    /// The names
    #[command(flatten)]
    pub selection: Selection,
    /// The account that has them [default: that of the credentials for the server]
    #[arg(long, value_name = "NAME", requires = "Selection")]
    pub from_account: Option<String>,
    /// Also copy into targets that are not empty: entities and blobs are replaced, messages added
    #[arg(long, requires = "Selection")]
    pub into_existing: bool,
    /// Continue an interrupted copy
    #[arg(long, requires = "Selection")]
    pub resume: bool,
    /// Also copy the snapshots of blobs; they get new times
    #[arg(long, requires = "Selection")]
    pub snapshots: bool,
}

/// Arguments of `backup diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Which backup
    #[command(flatten)]
    pub(crate) backup: ShowArgs,
    /// Compare this instant, such as 2026-01-31T08:00:00.5Z, or the last one that can be restored: latest
    #[arg(long, visible_alias = "since", value_name = "TIME", value_parser = restore_instant)]
    pub(crate) to: Option<RestoreInstant>,
    /// A table; may be repeated
    #[arg(long = "table", value_name = "NAME", required = true)]
    pub tables: Vec<String>,
    /// The account that has it [default: that of the credentials for the server]
    #[arg(long, value_name = "NAME")]
    pub from_account: Option<String>,
    /// Its key
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}
