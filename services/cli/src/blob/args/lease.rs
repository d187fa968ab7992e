//! The command line of `trestle blob lease`.

use std::time::Duration;

use clap::Subcommand;
use trestle_command::{
    errors::{BLOB_EXIT_CODES as EXIT_CODES, with_help},
    values::{duration, whole_number},
};

use crate::blob::BlobAddress;

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
