//! The command line of `trestle blob container`.

use clap::{Subcommand, ValueEnum};
use trestle_command::errors::{BLOB_EXIT_CODES as EXIT_CODES, with_help};

use crate::service::PolicyCommand;

/// What callers without credentials may read of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PublicAccessArg {
    /// Its blobs, by their names
    Blob,
    /// Its blobs and their listing
    Container,
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
