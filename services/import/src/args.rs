//! The command line of `trestle import`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use trestle_command::{
    credentials::SecretText,
    errors::{IMPORT_EXIT_CODES, with_help},
    selection::Selection,
    source_server::SourceServerArgs,
    values::whole_number,
};

/// Where tables, queues and blobs are copied from.
#[derive(Debug, Subcommand)]
#[command(after_help = IMPORT_EXIT_CODES, mut_subcommands = |it| with_help(it, IMPORT_EXIT_CODES))]
pub enum ImportCommand {
    /// Copy the tables, queues and blobs of an Azurite workspace, which must not be in use
    #[command(after_long_help = AZURITE_HELP)]
    Azurite(ImportAzuriteArgs),
    /// Copy the tables, queues and blobs of an Azure storage account, or of an emulator
    #[command(after_long_help = AZURE_HELP)]
    Azure(ImportAzureArgs),
    /// Copy the tables, queues and blobs of another Trestle server, or of a backup that one shows
    #[command(after_long_help = TRESTLE_HELP)]
    Trestle(ImportTrestleArgs),
}

/// Arguments of `import azurite`.
#[derive(Debug, Args)]
pub struct ImportAzuriteArgs {
    /// The directory that Azurite was given with --location; where it was started without one
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The account whose tables, queues and blobs are copied; needed where the workspace has several
    #[arg(long, value_name = "NAME")]
    pub(crate) from_account: Option<String>,
    /// How to copy
    #[command(flatten)]
    pub(crate) copy: CopyArgs,
}

/// Arguments of `import azure`.
#[derive(Debug, Args)]
pub struct ImportAzureArgs {
    /// The connection string of the account; for the variable, since others can see a command line
    #[arg(
        value_name = "CONNECTION_STRING",
        env = "AZURE_STORAGE_CONNECTION_STRING",
        hide_env_values = true
    )]
    pub(crate) source: Option<SecretText>,
    /// File with the connection string of the account
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    pub(crate) source_file: Option<PathBuf>,
    /// CA certificates for the account, in PEM; by default those of the system
    #[arg(long, value_name = "FILE")]
    pub(crate) source_ca_file: Option<PathBuf>,
    /// What becomes of queues
    #[arg(long, value_enum, default_value_t = QueueMode::Peek)]
    pub(crate) queues: QueueMode,
    /// How to copy
    #[command(flatten)]
    pub(crate) copy: CopyArgs,
}

/// Arguments of `import trestle`.
#[derive(Debug, Args)]
pub struct ImportTrestleArgs {
    /// The server that is read
    #[command(flatten)]
    pub(crate) server: SourceServerArgs,
    /// What is copied
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// How to copy
    #[command(flatten)]
    pub(crate) copy: CopyArgs,
}

/// How queues of an account are copied: without receiving them, only the first
/// messages of a queue can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum QueueMode {
    /// Copy queues and up to 32 messages of each, and change nothing in the account
    Peek,
    /// Move every message that can be received: it is deleted in the account once it is here
    Receive,
    /// Copy no queues
    Skip,
}

/// How to copy; for every source.
#[derive(Debug, Clone, Args)]
pub struct CopyArgs {
    /// Also copy into targets that are not empty: entities and blobs are replaced, messages added
    #[arg(long)]
    pub into_existing: bool,
    /// Continue an interrupted import
    #[arg(long)]
    pub resume: bool,
    /// The file of the checkpoint, which is removed when the import ends
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Copy no containers and no blobs
    #[arg(long)]
    pub skip_blobs: bool,
    /// Also copy the snapshots of blobs; they get new times
    #[arg(long, conflicts_with = "skip_blobs")]
    pub snapshots: bool,
    /// Most tables, key ranges of large ones, or blobs (up to 16) that are copied at the same time
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = whole_number::<u16>(1..=1024))]
    pub parallel: u16,
}

const AZURITE_HELP: &str = "\
Stop Azurite first: it writes its files only now and then. They are read and never changed.

Copied: tables with the types of their properties, queues with their metadata and messages,
containers with their metadata and public access, blobs with their content, HTTP properties,
metadata, tags and tiers, stored access policies. Messages keep their text, the rest of their time to
live, and the rest of their visibility timeout. Not copied: snapshots without --snapshots, staged
blocks, leases, timestamps and etags, dequeue counts, service properties.

Its databases are read once before anything is written, so that damaged ones are rejected.
Progress is kept in DIR.trestle-import until the import ends; --resume continues there, and
nothing is duplicated. At the end both sides are compared: exit code 1 means that something was not
copied, or differs.";

const AZURE_HELP: &str = "\
The connection string has the format of Azure, with AccountKey or SharedAccessSignature;
UseDevelopmentStorage=true means an emulator on this machine.

Copied: tables with the types of their properties, queues with their metadata, containers with their
metadata and public access, blobs with their content, HTTP properties, metadata, tags and tiers, and
stored access policies, which only a key may read; snapshots with --snapshots. A blob that changes
while it is copied, or that is archived, is named and not copied.

The protocol has no way to read all messages of a queue and leave them: --queues peek (the default)
changes nothing in the account and copies the first 32 messages of each queue; --queues receive moves
all that can be received. Messages that remain make the exit code 1. A moved message is invisible in
the account for 5 minutes until it is deleted there; --resume makes those visible at once that a
killed import had received.

The account should not be written to meanwhile. Progress is kept in ACCOUNT.trestle-import in the
current directory until the import ends; --resume continues there, and nothing is duplicated. At the
end both sides are compared: exit code 1 means that something was not copied, or differs.";

const TRESTLE_HELP: &str = "\
The source is another server of the same protocol, called over gRPC, and is only read: it may show a
backup (trestle serve --backup). It may be the target server too if everything gets a new name.
Without --table, --queue and --container everything is copied.

Copied: tables with the types of their properties, queues with their settings, containers with their
metadata and public access, blobs with their content, HTTP properties, metadata, tags and tiers, and
stored access policies; snapshots with --snapshots. A blob that changes while it is copied, or that is
archived, is named and not copied. Not copied: streams of logs, staged blocks, versions, leases,
timestamps and etags, dequeue counts, service properties.

Every message of a queue is copied: visible, delayed, received, and behind another one of its
ordering group, whose order remains. A server of an earlier version shows the first 32 visible ones
only. Messages that remain make the exit code 1; name tables and containers to copy no queues.

The source should not be written to meanwhile. Progress is kept in HOST-PORT.trestle-import in the
current directory until the import ends; --resume continues there, and nothing is duplicated. At the
end both sides are compared: exit code 1 means that something was not copied, or differs.";
