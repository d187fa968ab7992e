//! The command line of `trestle blob`.

use clap::{Args, Subcommand, ValueEnum};
use trestle_command::{
    errors::{BLOB_EXIT_CODES as EXIT_CODES, with_help},
    values::whole_number,
};

use super::{BlobAddress, CopySide};

mod containers;
mod copy;
mod lease;

pub use containers::ContainerCommand;
pub(super) use containers::PublicAccessArg;
use copy::COPY_HELP;
pub use copy::CopyBlobArgs;
pub use lease::LeaseCommand;

/// Commands on containers and blobs.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum BlobCommand {
    /// Create, list, show and delete containers
    #[command(subcommand)]
    Container(ContainerCommand),
    /// Copy files to blobs, blobs to files, or blobs and URLs to blobs
    #[command(after_long_help = COPY_HELP)]
    Cp(CopyBlobArgs),
    /// List blobs, ordered by name
    Ls {
        /// CONTAINER, or CONTAINER/PREFIX for the blobs whose name begins so
        blobs: BlobAddress,
        /// Show blobs whose names are equal up to this text after the prefix as one line
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        delimiter: String,
        /// Which states are listed beside the blobs
        #[command(flatten)]
        states: ListedStatesArgs,
    },
    /// Write the content of a blob to standard output
    Cat {
        /// CONTAINER/NAME
        blob: BlobAddress,
        /// The first byte, from 0 on
        #[arg(long, value_name = "BYTES", default_value_t = 0)]
        #[arg(value_parser = whole_number::<u64>(0..=u64::MAX))]
        offset: u64,
        /// At most this many bytes
        #[arg(long, value_name = "BYTES", value_parser = whole_number::<u64>(1..=u64::MAX))]
        length: Option<u64>,
        /// Which state of the blob
        #[command(flatten)]
        state: BlobStateArgs,
    },
    /// Delete a blob, or all blobs in a folder
    ///
    /// Deleting a folder takes `--yes`, or its name typed at the prompt on a terminal. Without a terminal and without
    /// `--yes` nothing is deleted and the exit code is 2.
    Rm {
        /// CONTAINER/NAME
        blob: BlobAddress,
        /// Delete every blob whose name begins with NAME and a slash
        #[arg(long, short)]
        recursive: bool,
        /// Delete a folder without confirmation
        #[arg(long, short = 'y')]
        yes: bool,
        /// Id of the lease of the blob
        #[arg(long, value_name = "UUID", default_value = "", hide_default_value = true)]
        #[arg(conflicts_with = "recursive")]
        lease_id: String,
        /// Delete the snapshots of the blob too, or only them [default: the blob must have none]
        #[arg(long, value_name = "WHICH", conflicts_with = "recursive")]
        snapshots: Option<SnapshotsToDelete>,
        /// Which state of the blob
        #[command(flatten)]
        state: BlobStateArgs,
    },
    /// Take a snapshot of a blob, and print its name
    Snapshot {
        /// CONTAINER/NAME
        blob: BlobAddress,
    },
    /// Restore a deleted blob and its deleted snapshots, as long as the settings of the account keep them
    Undelete {
        /// CONTAINER/NAME
        blob: BlobAddress,
    },
    /// Show one blob
    Stat {
        /// CONTAINER/NAME
        blob: BlobAddress,
        /// Which state of the blob
        #[command(flatten)]
        state: BlobStateArgs,
    },
    /// Show or change what is kept of blobs that are overwritten or deleted, for the account
    Protection {
        /// Keep deleted and overwritten blobs for so many days, 1 to 365, or `off`
        #[arg(long, value_name = "DAYS", value_parser = days_or_off)]
        keep_deleted: Option<u16>,
        /// Keep deleted containers for so many days, 1 to 365, or `off`
        #[arg(long, value_name = "DAYS", value_parser = days_or_off)]
        keep_containers: Option<u16>,
        /// Keep every overwritten or deleted blob as a version: `on` or `off`
        #[arg(long, value_name = "STATE", value_parser = on_or_off)]
        versions: Option<bool>,
    },
    /// Show or replace the tags of a blob
    #[command(subcommand)]
    Tags(TagsCommand),
    /// Find blobs by their tags
    Find {
        /// Comparisons joined by AND, such as "day >= '2026-01-01' AND state = 'new'"
        filter: String,
        /// Only in this container
        #[arg(long, value_name = "CONTAINER", default_value = "", hide_default_value = true)]
        container: String,
    },
    /// Acquire, renew, release or break the lease of a blob or a container
    #[command(subcommand)]
    Lease(LeaseCommand),
    /// Read every byte, which the server verifies against its checksum, and report damaged blobs
    ///
    /// Snapshots, versions, deleted blobs that can be restored, and staged blocks are read too. What cannot be read is
    /// reported, and the rest is read. The exit code is 1 if a blob is damaged or cannot be read.
    Verify {
        /// CONTAINER, or CONTAINER/PREFIX for the blobs whose name begins so
        blobs: BlobAddress,
        /// How many blobs are read at a time
        #[arg(long, value_name = "N", default_value_t = 8, value_parser = whole_number::<u8>(1..=64))]
        parallel: u8,
    },
}

/// Names a state of a blob. Default: the blob itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct BlobStateArgs {
    /// The snapshot of this name, as `snapshot` prints it
    #[arg(long, value_name = "TIME", default_value = "", hide_default_value = true)]
    #[arg(conflicts_with = "version_id")]
    pub(super) snapshot: String,
    /// The version with this id, as `ls --versions` prints it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub(super) version_id: String,
}

impl BlobStateArgs {
    /// Whether it names a snapshot or a version.
    pub(super) fn is_past(&self) -> bool {
        *self != Self::default()
    }
}

/// Which states `ls` prints beside the blobs.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct ListedStatesArgs {
    /// Snapshots, before their blob
    #[arg(long, conflicts_with = "delimiter")]
    pub(super) snapshots: bool,
    /// Previous versions, before their blob
    #[arg(long)]
    pub(super) versions: bool,
    /// Deleted blobs that can be restored; with --snapshots, deleted snapshots too
    #[arg(long)]
    pub(super) deleted: bool,
}

/// Most days that deleted data is kept.
const DAYS_MAX: u64 = 365;

/// Days, and none for `off`, as 0.
fn days_or_off(text: &str) -> Result<u16, String> {
    let days = whole_number(1..=DAYS_MAX);
    if text == "off" { Ok(0) } else { days(text).map_err(|rule| format!("{rule}, or `off`")) }
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("must be `on` or `off`".to_owned()),
    }
}

/// What `rm` does with the snapshots of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SnapshotsToDelete {
    /// Delete the blob and its snapshots
    Include,
    /// Delete the snapshots, and not the blob
    Only,
}

/// Commands on the tags of a blob.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum TagsCommand {
    /// Show the tags
    Get {
        /// CONTAINER/NAME
        blob: BlobAddress,
        /// Which state of the blob
        #[command(flatten)]
        state: BlobStateArgs,
    },
    /// Replace all tags
    Set {
        /// CONTAINER/NAME
        blob: BlobAddress,
        /// The tags, at most 10; without any, the blob has none
        #[arg(value_name = "KEY=VALUE", value_parser = tag)]
        tags: Vec<(String, String)>,
        /// Id of the lease of the blob
        #[arg(long, value_name = "UUID", default_value = "", hide_default_value = true)]
        lease_id: String,
    },
}

/// A tag on the command line.
fn tag(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "must be KEY=VALUE".to_owned())
}

impl BlobCommand {
    /// The container or the blob of the command, as the header names it.
    pub(super) fn path(&self) -> Option<String> {
        match self {
            Self::Container(command) => match command {
                ContainerCommand::List { .. } => None,
                ContainerCommand::Policy(command) => Some(command.name().to_owned()),
                ContainerCommand::Create { container, .. }
                | ContainerCommand::Stat { container }
                | ContainerCommand::Undelete { container, .. }
                | ContainerCommand::Delete { container, .. } => Some(container.clone()),
            },
            Self::Protection { .. } => None,
            Self::Find { container, .. } => {
                Some(container.clone()).filter(|container| !container.is_empty())
            }
            Self::Tags(TagsCommand::Get { blob, .. } | TagsCommand::Set { blob, .. }) => {
                Some(blob.header())
            }
            Self::Cp(CopyBlobArgs { from, to, .. }) => match (from, to) {
                (_, CopySide::Remote(address)) | (CopySide::Remote(address), _) => {
                    Some(address.header())
                }
                _ => None,
            },
            Self::Ls { blobs: address, .. }
            | Self::Verify { blobs: address, .. }
            | Self::Cat { blob: address, .. }
            | Self::Rm { blob: address, .. }
            | Self::Stat { blob: address, .. }
            | Self::Snapshot { blob: address }
            | Self::Undelete { blob: address }
            | Self::Lease(
                LeaseCommand::Acquire { address, .. }
                | LeaseCommand::Renew { address, .. }
                | LeaseCommand::Release { address, .. }
                | LeaseCommand::Break { address, .. },
            ) => Some(address.header()),
        }
    }
}

#[cfg(test)]
mod tests;
