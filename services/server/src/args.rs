//! The command line. Stable: scripts rely on it.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Arg, ArgMatches, Args, FromArgMatches, Parser, Subcommand};
use trestle_cli::{
    BenchCommand, BlobCommand, ClientArgs, QueueCommand, SasArgs, TableCommand, TlsArgs,
};
use trestle_import::ImportCommand;

use crate::{
    roles::{AzureEdge, ROLES, Roles},
    settings::{Listen, RoleKey as _},
};

/// A self-hosted table and queue store over gRPC, with the semantics of Azure Storage
#[derive(Debug, Parser)]
#[command(name = "trestle", version, propagate_version = true)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve; prints `ready` with the address of each listener, such as `grpc=ADDRESS`, once calls are accepted
    #[command(after_help = SERVE_HELP)]
    Serve(ServeArgs),
    /// Check whether a running server serves; exit code 0 means yes
    Healthcheck(HealthcheckArgs),
    /// Show what a store that does not open would lose, and repair it; the server must not run
    #[command(after_help = REPAIR_HELP)]
    Repair(RepairArgs),
    /// Give back the disk space of deleted data; the server must not run
    #[command(after_help = COMPACT_HELP)]
    Compact(CompactArgs),
    /// Show the configuration
    Config {
        /// What to show
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print the version
    Version,
    /// Work with tables and entities on a server
    Table {
        /// What to do
        #[command(subcommand)]
        command: TableCommand,
        /// Where
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Work with queues and messages on a server
    Queue {
        /// What to do
        #[command(subcommand)]
        command: QueueCommand,
        /// Where
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Work with containers and blobs on a server
    Blob {
        /// What to do
        #[command(subcommand)]
        command: BlobCommand,
        /// Where
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Copy tables and queues from Azurite or Azure, resumably, and compare source and target
    Import {
        /// From where
        #[command(subcommand)]
        command: ImportCommand,
        /// Where to
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Generate and explain shared access signatures; needs no server
    Sas(SasArgs),
    /// Load-test a server
    Bench {
        /// What to measure
        #[command(subcommand)]
        command: BenchCommand,
        /// Where
        #[command(flatten)]
        client: ClientArgs,
    },
}

/// The configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the configuration that `serve` would use with these arguments, as TOML
    Print(ServeArgs),
}

/// Arguments of `serve`. They override the environment and the file.
#[derive(Debug, Default, Args)]
pub struct ServeArgs {
    /// Configuration file, in TOML
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Data directory [default: ./data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Store everything in memory; no data survives the process
    #[arg(long, conflicts_with = "data_dir")]
    pub ephemeral: bool,
    /// The roles of this process: all, or of gateway, table, queue and blob, separated by commas [default: all]
    #[arg(long, value_name = "ROLES")]
    pub roles: Option<Roles>,
    /// Address of gRPC; port 0 selects a free one [default: 127.0.0.1:50051]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Where clients of Azure Storage are served
    #[command(flatten)]
    pub azure: AzureListenArgs,
    /// Address of metrics and probes; port 0 selects a free one [default: 127.0.0.1:9464]
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<SocketAddr>,
    /// Listen without TLS on an address that is not loopback
    #[arg(long)]
    pub allow_plaintext: bool,
}

impl ServeArgs {
    /// The arguments, as keys and values of the configuration.
    #[must_use]
    pub fn flags(&self) -> Vec<(String, String)> {
        let path = |path: &PathBuf| path.display().to_string();
        let yes = |is_set: bool| is_set.then(|| "true".to_owned());
        let flags = [
            ("storage.data_dir", self.data_dir.as_ref().map(path)),
            ("storage.ephemeral", yes(self.ephemeral)),
            ("server.roles", self.roles.as_ref().map(Roles::to_string)),
            ("server.listen", self.listen.map(|address| address.to_string())),
            ("server.admin", self.admin.map(|address| address.to_string())),
            ("server.allow_plaintext", yes(self.allow_plaintext)),
        ];
        let set = |(key, value): (&str, Option<String>)| Some((key.to_owned(), value?));
        let azure = self.azure.0.iter();
        let azure = azure.map(|(role, listen)| (Listen::full_key(role), listen.to_string()));
        flags.into_iter().filter_map(set).chain(azure).collect()
    }
}

/// A flag for each role with a protocol of Azure Storage: role and address, where set.
#[derive(Debug, Clone, Default)]
pub struct AzureListenArgs(Vec<(&'static str, Listen)>);

impl AzureListenArgs {
    fn edges() -> impl Iterator<Item = (&'static str, AzureEdge)> {
        ROLES.iter().filter_map(|role| Some((role.name, role.azure?)))
    }
}

impl Args for AzureListenArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        Self::edges().fold(command, |command, (_, edge)| {
            let AzureEdge { flag, serves, port, .. } = edge;
            let help = format!(
                "Address of {serves} for clients of Azure Storage; port 0 selects a free one, `off` \
                 none [default: 127.0.0.1:{port}]"
            );
            let parser = clap::value_parser!(Listen);
            command.arg(
                Arg::new(flag).long(flag).value_name("ADDRESS").value_parser(parser).help(help),
            )
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for AzureListenArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let set =
            |(role, edge): (_, AzureEdge)| Some((role, *matches.get_one::<Listen>(edge.flag)?));
        Ok(Self(Self::edges().filter_map(set).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Arguments of `healthcheck`.
#[derive(Debug, Args)]
pub struct HealthcheckArgs {
    /// Configuration file of the server
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address of the server [default: that of its configuration]
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// TLS
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Check this service only, such as trestle.table.v1.TableService
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME")]
    pub service: String,
}

/// Arguments of `repair`.
#[derive(Debug, Args)]
pub struct RepairArgs {
    /// Configuration file of the server
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Data directory [default: that of the configuration]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Remove what is reported, and keep the originals in a folder `damaged-N`
    #[arg(long)]
    pub accept_loss: bool,
}

/// Arguments of `compact`.
#[derive(Debug, Args)]
pub struct CompactArgs {
    /// Configuration file of the server
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Data directory [default: that of the configuration]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

const COMPACT_HELP: &str = "\
Exit codes: 0 compacted; 2 wrong arguments or configuration, 3 the data directory is in use, 4 there is no
store, it cannot be opened as it is, or it cannot be compacted, 1 anything else.";

const REPAIR_HELP: &str = "\
Without --accept-loss nothing is changed.

Exit codes: 0 nothing to repair, or repaired; 2 wrong arguments or configuration, 3 the data directory
is in use, 4 the store cannot be opened as it is, or cannot be repaired, 1 anything else.";

const SERVE_HELP: &str = "\
Configuration: defaults, then the file, then variables TRESTLE__SECTION__KEY, then flags;
`trestle config print` shows the result. SIGTERM and SIGINT drain calls, a second signal cuts
them.

Exit codes: 0 ended by a signal, 2 wrong arguments or configuration, 3 the data directory is in use,
4 the data cannot be opened, 5 an address cannot be bound, 6 calls were cut off by the shutdown,
1 anything else.";
