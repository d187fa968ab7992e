//! The command line of `trestle import`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{Args, Subcommand};

use crate::errors::EXIT_CODES;

/// Where tables and queues are copied from.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES)]
pub enum ImportCommand {
    /// Copy the tables and queues of an Azurite workspace, which must not be in use
    #[command(after_help = EXIT_CODES, after_long_help = format!("{AZURITE_HELP}\n\n{EXIT_CODES}"))]
    Azurite(AzuriteArgs),
}

/// Arguments of `import azurite`.
#[derive(Debug, Args)]
pub struct AzuriteArgs {
    /// The directory that Azurite was given with --location; where it was started without one
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The account whose tables and queues are copied; needed where the workspace has several
    #[arg(long, value_name = "NAME")]
    pub(crate) from_account: Option<String>,
    /// How to copy
    #[command(flatten)]
    pub(crate) copy: CopyArgs,
}

/// How to copy; for every source.
#[derive(Debug, Clone, Args)]
pub struct CopyArgs {
    /// Also copy into tables and queues that are not empty: entities are replaced, messages added
    #[arg(long)]
    pub(crate) into_existing: bool,
    /// Go on where an interrupted import stopped
    #[arg(long)]
    pub(crate) resume: bool,
    /// Where the progress of the import is kept until it ends
    #[arg(long, value_name = "FILE")]
    pub(crate) notes: Option<PathBuf>,
    /// Most tables that are copied at the same time
    #[arg(long, default_value = "8", value_name = "N")]
    pub(crate) parallel: NonZeroUsize,
}

const AZURITE_HELP: &str = "\
Stop Azurite first: it writes its files only now and then. They are read and never changed.

Copied: tables with the types of their properties, queues with their metadata and messages, stored
access policies. Messages keep their text, what is left of their life, and what is left of the time
that they are hidden. Not copied: blobs, timestamps and etags, dequeue counts, service properties.

The whole workspace is read once before anything is written, so that a damaged one is refused.
Progress is kept in DIR.trestle-import until the import ends; --resume goes on from there, and
nothing is doubled. At the end both sides are compared: exit code 1 says that something was not
copied, or differs.";
