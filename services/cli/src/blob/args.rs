//! The command line of `trestle blob`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use trestle_command::{
    errors::{BLOB_EXIT_CODES as EXIT_CODES, with_help},
    values::{duration, whole_number},
};

use super::{BlobAddress, CopySide};
use crate::service::PolicyCommand;

const COPY_HELP: &str = "\
A blob begins with blob://, and one side at least is a blob:
  trestle blob cp cat.png blob://photos/2026/cat.png
  trestle blob cp -r photos/ blob://photos/2026
  trestle blob cp -r blob://photos/2026 photos/

Between two blobs the server copies, and no bytes pass through this command; from a URL too, where the settings of the
server list its host:
  trestle blob cp -r blob://photos/2026 blob://archive/2026
  trestle blob cp --version-id 2026-08-28T17:07:35.2821851Z blob://photos/cat.png blob://photos/cat.png
  trestle blob cp https://example.com/cat.png blob://photos/cat.png

With --recursive, every file in the folder becomes a blob whose name is the path below the folder, after the given name
and a slash; and back. A blob with a name that no file below the folder can have, such as ../a, fails the command before
anything is copied.

A file of more than 8 MiB is sent in blocks. They are kept for 7 days: repeating an interrupted copy sends the missing
ones only. A downloaded file has its name only when it is complete and on stable storage. Existing blobs and files are
replaced.";

/// Commands on containers and blobs.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum BlobCommand {
    /// Create, list, show and delete containers
    #[command(subcommand)]
    Container(ContainerCommand),
    /// Copy files to blobs, or blobs to files
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
    /// The exit code is 1 if a blob is damaged.
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

/// What callers without credentials may read of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PublicAccessArg {
    /// Its blobs, by their names
    Blob,
    /// Its blobs and their listing
    Container,
}

/// What `rm` does with the snapshots of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SnapshotsToDelete {
    /// Delete the blob and its snapshots
    Include,
    /// Delete the snapshots, and not the blob
    Only,
}

/// Commands on containers.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum ContainerCommand {
    /// Create a container
    Create {
        /// Name: 3 to 63 lower-case letters, digits and single dashes
        container: String,
        /// Succeed when the container exists
        #[arg(long)]
        if_not_exists: bool,
        /// What callers without credentials may read, where the account allows it [default: nothing]
        #[arg(long, value_name = "LEVEL")]
        public_access: Option<PublicAccessArg>,
    },
    /// List containers, ordered by name
    List {
        /// Only containers whose name begins so
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        prefix: String,
        /// Deleted containers that can be restored too
        #[arg(long)]
        deleted: bool,
    },
    /// Restore a deleted container with its blobs, as long as the settings of the account keep it
    Undelete {
        /// Name of the container
        container: String,
        /// The version of the deleted container, as `list --deleted` prints it
        #[arg(value_name = "VERSION")]
        deleted_version: String,
    },
    /// Show one container
    Stat {
        /// Name of the container
        container: String,
    },
    /// Delete a container and every blob in it
    ///
    /// Takes `--yes`, or its name typed at the prompt on a terminal. Without a terminal and without `--yes` nothing is
    /// deleted and the exit code is 2.
    Delete {
        /// Name of the container
        container: String,
        /// Delete it without confirmation
        #[arg(long, short = 'y')]
        yes: bool,
        /// Id of the lease of the container
        #[arg(long, value_name = "UUID", default_value = "", hide_default_value = true)]
        lease_id: String,
    },
    /// Show or change the stored access policies of a container
    #[command(subcommand)]
    Policy(PolicyCommand),
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

/// Commands on the lease of a blob; of a container, where the name of the blob is left out.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum LeaseCommand {
    /// Acquire the lease, and print its id
    Acquire {
        /// CONTAINER/NAME, or CONTAINER
        address: BlobAddress,
        /// 15s to 60s [default: no expiry]
        #[arg(long, value_parser = duration, value_name = "TIME")]
        duration: Option<Duration>,
        /// Id of the lease [default: a new one]
        #[arg(long, value_name = "UUID", default_value = "", hide_default_value = true)]
        lease_id: String,
    },
    /// Renew the lease for its duration
    Renew {
        /// CONTAINER/NAME, or CONTAINER
        address: BlobAddress,
        /// Id of the lease
        lease_id: String,
    },
    /// Release the lease
    Release {
        /// CONTAINER/NAME, or CONTAINER
        address: BlobAddress,
        /// Id of the lease
        lease_id: String,
    },
    /// Break the lease, without its id
    Break {
        /// CONTAINER/NAME, or CONTAINER
        address: BlobAddress,
        /// How long the lease remains active, up to 60 [default: to its end; a lease without expiry ends at once]
        #[arg(long, value_name = "SECONDS", value_parser = whole_number::<u32>(0..=60))]
        period: Option<u32>,
    },
}

/// Arguments of `cp`.
#[derive(Debug, Args)]
pub struct CopyBlobArgs {
    /// A file, a folder, blob://CONTAINER/NAME, or a URL
    pub(super) from: CopySide,
    /// A file, a folder or blob://CONTAINER/NAME; what is in a folder has the last part of the name of the source
    pub(crate) to: CopySide,
    /// Copy a folder
    #[arg(long, short)]
    pub(super) recursive: bool,
    /// How many files or blocks are copied at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = whole_number::<u8>(1..=64))]
    pub(super) parallel: u8,
    /// Media type of the blobs [default: application/octet-stream]
    #[arg(long, value_name = "TYPE", default_value = "", hide_default_value = true)]
    pub(super) content_type: String,
    /// A tag of the blobs; may be repeated
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = tag)]
    pub(super) tags: Vec<(String, String)>,
    /// Id of the lease of the blob that is replaced
    #[arg(long, value_name = "UUID", default_value = "", hide_default_value = true)]
    #[arg(conflicts_with = "recursive")]
    pub(super) lease_id: String,
    /// Which state of the source
    #[command(flatten)]
    pub(super) state: BlobStateArgs,
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
