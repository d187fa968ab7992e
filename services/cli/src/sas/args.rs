//! The command line of `trestle sas`.

use clap::{Arg, Args, Subcommand};
use trestle_command::errors::with_help;
use trestle_identity::spec::{BLOB, LOG, QUEUE, ServiceSpec, TABLE};

use super::ExplainArgs;
use crate::blob::BlobAddress;

/// Arguments of `sas`.
#[derive(Debug, Args)]
pub struct SasArgs {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: SasCommand,
}

/// Commands on shared access signatures.
#[derive(Debug, Subcommand)]
#[command(after_help = HELP, mut_subcommands = |it| with_help(it, HELP))]
pub enum SasCommand {
    /// Sign for a whole account
    Account {
        /// Letters of bqtfl: blob, queue, table, file, log (the streams of Trestle)
        #[arg(long, default_value = "t", value_name = "LETTERS")]
        services: String,
        /// Letters of sco: service, container (tables), object (entities)
        #[arg(long, default_value = "sco", value_name = "LETTERS")]
        resource_types: String,
        /// The rest
        #[command(flatten)]
        grant: GrantArgs,
    },
    /// Sign for entities of one table
    #[command(mut_args = |arg| with_letters(arg, &TABLE))]
    Table {
        /// The table
        name: String,
        /// The rest
        #[command(flatten)]
        grant: ServiceGrantArgs,
        /// Only these entities
        #[command(flatten)]
        range: RangeArgs,
    },
    /// Sign for the messages of one queue
    ///
    /// Permissions: r peek and read queue statistics, a send, u update, p receive and delete. Over gRPC a call that
    /// carries the signature names the queue in the header trestle-queue; `trestle message` does.
    #[command(mut_args = |arg| with_letters(arg, &QUEUE))]
    Queue {
        /// The queue
        name: String,
        /// The rest
        #[command(flatten)]
        grant: ServiceGrantArgs,
    },
    /// Sign for the records of one log stream
    ///
    /// Permissions: r read, follow and list segments, a append and export, c create the stream by an export or by name.
    /// The signature contains the name of the stream: a client sets one header.
    #[command(mut_args = |arg| with_letters(arg, &LOG))]
    Log {
        /// The stream
        name: String,
        /// The rest
        #[command(flatten)]
        grant: GrantArgs,
    },
    /// Sign for a container with all its blobs
    #[command(mut_args = |arg| with_letters(arg, &BLOB))]
    Container {
        /// The container
        name: String,
        /// The rest
        #[command(flatten)]
        grant: ServiceGrantArgs,
    },
    /// Sign for one blob, with its snapshots and versions
    #[command(mut_args = |arg| with_letters(arg, &BLOB))]
    Blob {
        /// CONTAINER/NAME
        blob: BlobAddress,
        /// The rest
        #[command(flatten)]
        grant: ServiceGrantArgs,
    },
    /// Explain what a signature grants, and why it is rejected
    ///
    /// Exit code 1: it is rejected.
    Explain(ExplainArgs),
}

/// The argument with the letters of a service in its help.
fn with_letters(arg: Arg, service: &ServiceSpec) -> Arg {
    if arg.get_id() != "permissions" {
        return arg;
    }
    let letters = service.permissions.iter().map(|(letter, meaning)| format!("{letter} {meaning}"));
    let order = if service.orders_permissions { "; in this order" } else { "" };
    arg.help(format!("Letters: {}{order}", letters.collect::<Vec<_>>().join(", ")))
}

const HELP: &str = "\
The signature is made with the key of --account. It can be revoked only by replacing that key, or
with --policy by changing the stored access policy.

Exit codes:
    0  done
    1  failed; for explain: the signature is rejected
    2  usage: a malformed flag, value or file";

/// Terms of every signature.
#[derive(Debug, Args)]
pub struct GrantArgs {
    /// Letters: r read, a add, u update, d delete, l list, c create, w write, p process
    #[arg(long, default_value = "", hide_default_value = true, value_name = "LETTERS")]
    pub(super) permissions: String,
    /// When it ends to grant: a time such as 2026-01-31T08:00Z, or from now on 30m, 8h, 7d
    #[arg(long, value_name = "TIME")]
    pub(super) expiry: Option<String>,
    /// When it begins to grant; at once when left out
    #[arg(long, value_name = "TIME")]
    pub(super) start: Option<String>,
    /// Only from this address, or from a range such as 198.51.100.0-198.51.100.255
    #[arg(long, value_name = "ADDRESS")]
    pub(super) ip: Option<String>,
    /// Only over encrypted connections
    #[arg(long)]
    pub(super) https_only: bool,
    /// The version, which decides what is signed and how
    #[arg(long, value_name = "DATE")]
    pub(super) sas_version: Option<String>,
}

/// Terms of signatures of one service.
#[derive(Debug, Args)]
pub struct ServiceGrantArgs {
    /// Terms of every signature
    #[command(flatten)]
    pub(super) grant: GrantArgs,
    /// The stored access policy that states what is left out here
    #[arg(long, value_name = "ID")]
    pub(super) policy: Option<String>,
}

/// A range of entities, both ends included.
#[derive(Debug, Args)]
pub struct RangeArgs {
    /// Lowest partition key
    #[arg(long, value_name = "KEY")]
    pub(super) start_partition_key: Option<String>,
    /// Lowest row key in the lowest partition
    #[arg(long, value_name = "KEY", requires = "start_partition_key")]
    pub(super) start_row_key: Option<String>,
    /// Highest partition key
    #[arg(long, value_name = "KEY")]
    pub(super) end_partition_key: Option<String>,
    /// Highest row key in the highest partition
    #[arg(long, value_name = "KEY", requires = "end_partition_key")]
    pub(super) end_row_key: Option<String>,
}
