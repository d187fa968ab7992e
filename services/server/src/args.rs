//! The command line. Stable: scripts rely on it.

mod client_flags;
mod help;
mod offered;
mod options;
mod parsed;
mod store;
#[cfg(test)]
mod tests;

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{
    Arg, ArgMatches, Args, CommandFactory as _, FromArgMatches, Parser, Subcommand,
    error::ErrorKind, parser::ValueSource,
};
use clap_complete::Shell;
use trestle_backup::{BackupCommand, DiffArgs, MountArgs};
use trestle_cli::{
    BenchCommand, BlobCommand, EntityCommand, LogCommand, MessageCommand, QueueCommand, SasArgs,
    TableCommand, TokenArgs, VerifyAccountArgs,
};
use trestle_command::{
    context::ContextCommand,
    errors::{EXIT_CODES, VERIFY_EXIT_CODES},
    flags::{ClientFlags, VariableArgs},
    grammar::with_common_names,
    trust::TlsArgs,
};
use trestle_import::ImportCommand;

use self::{
    client_flags::{
        CALLING, CONTEXT_COMMANDS, CONTEXT_FLAGS, ENDPOINT, SERVER_COMMANDS, SIGNING,
        foreign_argument, foreign_form, source, unlisted, unlisted_but,
    },
    help::{
        BACKUP_HELP, COMPACT_HELP, COMPLETIONS_HELP, CONFIG_HELP, DOCTOR_HELP, HEALTHCHECK_HELP,
        LOCAL_HELP, REPAIR_HELP, ROOT_HELP, SERVE_HELP, STORE_HELP, with_exit_codes, without_csv,
    },
    parsed::{accepts_negative_numbers, with_negative_times, without_empty_variables},
};
pub use self::{
    options::shared_options,
    store::{StoreCommand, StoreCopyArgs},
};
use crate::{
    roles::{AzureEdge, ROLES, Roles},
    settings::{Listen, RoleKey as _},
};

mod usage;

/// A self-hosted table, queue, blob and log store over gRPC, with the semantics of Azure Storage
#[derive(Debug, Parser)]
#[command(name = "trestle", version = trestle_runtime::build::DESCRIPTION)]
#[command(propagate_version = true, after_help = ROOT_HELP)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    /// The server and the form of output, of every client command
    #[command(flatten)]
    pub client: ClientFlags,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve; prints `ready` with the address of each listener, such as `grpc=ADDRESS`, once calls are accepted
    #[command(after_help = SERVE_HELP)]
    Serve(ServeArgs),
    /// Show whether a server answers, and its state
    #[command(after_help = EXIT_CODES)]
    Status,
    /// Have a server read everything that an account has, and report what it cannot read
    ///
    /// Entities, messages, every state of the blobs, segments and unsealed records are read; `--only` and names select
    /// some. A thing is whole, damaged, or not verified, which may be for want of permission; what is damaged in it is
    /// reported, and the rest is read. The exit code is 1 unless all are whole. A store that does not open is examined
    /// by `trestle doctor` and `trestle repair`.
    #[command(after_help = VERIFY_EXIT_CODES)]
    Verify(VerifyAccountArgs),
    /// Work with tables
    #[command(subcommand)]
    Table(TableCommand),
    /// Work with entities of tables
    #[command(subcommand)]
    Entity(EntityCommand),
    /// Work with queues
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Work with messages of queues
    #[command(subcommand)]
    Message(MessageCommand),
    /// Work with containers and blobs
    #[command(subcommand)]
    Blob(BlobCommand),
    /// Work with streams of log records
    #[command(subcommand)]
    Log(LogCommand),
    /// Copy tables and queues from Azurite or Azure, resumably, and compare source and target
    #[command(subcommand)]
    Import(ImportCommand),
    /// Generate and explain shared access signatures; needs no server
    Sas(SasArgs),
    /// Make keys and bearer tokens of an issuer on this machine, for trials; needs no server
    Token(TokenArgs),
    /// Load-test a server
    #[command(subcommand, after_help = EXIT_CODES)]
    Bench(BenchCommand),
    /// Store names for servers with their credentials
    #[command(subcommand)]
    Context(ContextCommand),
    /// Check whether a running server serves; exit code 0 means yes
    #[command(after_help = HEALTHCHECK_HELP)]
    Healthcheck(HealthcheckArgs),
    /// Show or check the configuration
    #[command(subcommand, after_help = CONFIG_HELP)]
    Config(ConfigCommand),
    /// Show what a store that does not open would lose, and repair it; the server must not run
    #[command(after_help = REPAIR_HELP)]
    Repair(RepairArgs),
    /// Give back the disk space of deleted data; the server must not run
    #[command(after_help = COMPACT_HELP)]
    Compact(CompactArgs),
    /// Work with a store while no server has it open
    #[command(subcommand, after_help = STORE_HELP)]
    Store(StoreCommand),
    /// Back up a data directory while its server runs, and restore it
    #[command(subcommand, after_help = BACKUP_HELP)]
    Backup(BackupCommands),
    /// Check the configuration, the machine, and what a server reaches, with a hint for each finding
    #[command(after_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Print the completions of a shell
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write a man page for each command
    #[command(after_help = LOCAL_HELP)]
    Man {
        /// The folder, which is made; such as ~/.local/share/man/man1
        folder: PathBuf,
    },
    /// Show the flags of every client command: server, credentials, output
    #[command(after_help = LOCAL_HELP)]
    Options,
    /// Print the version
    #[command(after_help = LOCAL_HELP)]
    Version,
}

/// Backups.
#[derive(Debug, Subcommand)]
pub enum BackupCommands {
    /// Of a data directory and a target.
    #[command(flatten)]
    Own(BackupCommand),
    /// Show what differs between tables at an instant and now, on the server of --endpoint
    Diff(DiffArgs),
}

/// The configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the configuration that `serve` would use with these arguments, as TOML
    Print(ServeArgs),
    /// Report every mistake in the configuration that `serve` would use, each with its file and line
    Check(ServeArgs),
}

/// The file of the configuration.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigFileArgs {
    /// Configuration file, in TOML [default: ./trestle.toml where it exists]
    #[arg(long, env = "TRESTLE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl ConfigFileArgs {
    /// The file, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        let found = || Path::new(CONFIG_FILE).is_file().then(|| PathBuf::from(CONFIG_FILE));
        self.config.clone().or_else(found)
    }
}

/// The configuration file that is used without an argument.
const CONFIG_FILE: &str = "./trestle.toml";

impl Cli {
    /// The whole command line. Arguments for clients are not shown for commands that call no server.
    #[must_use]
    pub fn complete() -> clap::Command {
        Self::shown(with_common_names(Self::command()))
    }

    fn shown(mut command: clap::Command) -> clap::Command {
        command.build();
        let command = command.mut_subcommand(SIGNING, |inner| unlisted(inner, |id| id == ENDPOINT));
        let command = CONTEXT_COMMANDS.iter().fold(command, |command, name| {
            let of_call = |id: &str| !CONTEXT_FLAGS.contains(&id);
            let name = name.trim_start_matches("context ");
            command.mut_subcommand("context", |inner| {
                inner.mut_subcommand(name, |inner| unlisted(inner, of_call))
            })
        });
        let command = SERVER_COMMANDS.iter().fold(command, |command, (name, kept)| {
            command.mut_subcommand(name, |inner| {
                unlisted_but(inner, &CALLING, |id| !kept.contains(&id)).mut_args(without_csv)
            })
        });
        command.mut_subcommands(|inner| with_exit_codes(inner, ""))
    }

    /// The command line as completions offer it: without earlier spellings of commands.
    #[must_use]
    pub fn offered() -> clap::Command {
        offered::listed_only(&Self::complete())
    }

    /// The command line as man pages show it: without the commands `help`.
    #[must_use]
    pub fn documented() -> clap::Command {
        fn without_help(command: clap::Command) -> clap::Command {
            // A page shows no text of an argument that a short help leaves out.
            let command = command.mut_args(|arg| arg.hide_short_help(false));
            command.disable_help_subcommand(true).mut_subcommands(without_help)
        }
        Self::shown(without_help(with_common_names(Self::command())))
    }

    /// The command line of this process; ends it where that is wrong.
    #[must_use]
    pub fn of_process() -> Self {
        let words: Vec<_> = env::args_os().collect();
        Self::of_right_words(&words).unwrap_or_else(|| Self::of_any_words(&words))
    }

    /// The arguments in words that have no mistake. Only the command that they name has arguments then: those of all
    /// take longer to make than most commands run.
    fn of_right_words(words: &[OsString]) -> Option<Self> {
        let command = Self::command().mut_subcommands(|inner| {
            let is_word = |name: &str| words.iter().any(|word| word == name);
            let is_named = inner.get_all_aliases().chain([inner.get_name()]).any(is_word);
            match is_named {
                true => inner,
                // No word has such a name.
                false => clap::Command::new(format!("\0{}", inner.get_name())),
            }
        });
        let command = accepts_negative_numbers(with_common_names(command));
        let words = with_negative_times(&usage::innermost(&command, words), words);
        Self::parse_words(&mut without_empty_variables(command), &words).ok()
    }

    fn of_any_words(words: &[OsString]) -> Self {
        let command = accepts_negative_numbers(Self::complete());
        let words = with_negative_times(&usage::innermost(&command, words), words);
        let mut of_set_variables = without_empty_variables(command.clone());
        Self::parse_words(&mut of_set_variables, &words).unwrap_or_else(|error| {
            let mut command = match error.kind() {
                // The help shows every variable.
                ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                    options::set_apart(command)
                }
                _ => of_set_variables,
            };
            // The parser shows words as they are, in several parts of an error.
            let shown = usage::escaped_words(&words);
            let error = Self::parse_words(&mut command, &shown).err().unwrap_or(error);
            usage::exit(error, &command, &shown)
        })
    }

    fn parse_words(command: &mut clap::Command, words: &[OsString]) -> Result<Self, clap::Error> {
        let matches = command.try_get_matches_from_mut(words)?;
        let mut inner = usage::innermost(command, words);
        let foreign = foreign_argument(&matches, &mut inner);
        match foreign.or_else(|| foreign_form(&matches, &mut inner)) {
            Some(error) => Err(error),
            None => Self::of_matches(&matches),
        }
    }

    /// A configuration file of `healthcheck` names the server to check, also where the variable has an address.
    fn of_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut cli = Self::from_arg_matches(matches)?;
        let mut inner = matches;
        while let Some((_, found)) = inner.subcommand() {
            inner = found;
        }
        let is_variable = |name| source(inner, name) == Some(ValueSource::EnvVariable);
        let variables = VariableArgs {
            endpoint: is_variable(ENDPOINT),
            context: is_variable("context"),
            connection_string: is_variable("connection_string"),
        };
        cli.client = cli.client.with_variables(variables);
        if variables.endpoint
            && let Command::Healthcheck(args) = &mut cli.command
            && args.config.config.is_some()
        {
            args.endpoint = None;
        }
        Ok(cli)
    }
}

/// Arguments of `serve`. They override the environment and the file. Their values are parsed as those of settings, so
/// that a malformed one hides no other mistake.
#[derive(Debug, Default, Args)]
pub struct ServeArgs {
    /// Configuration file
    #[command(flatten)]
    pub config: ConfigFileArgs,
    /// Data directory [default: ./data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Store everything in memory; no data survives the process
    #[arg(long, conflicts_with = "data_dir")]
    pub ephemeral: bool,
    /// The roles of this process: all, or of gateway, table, queue, blob and log, by commas [default: all]
    #[arg(long, value_name = "ROLES")]
    pub roles: Option<Roles>,
    /// Address of gRPC; port 0 selects a free one [default: 127.0.0.1:50051]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Where clients of Azure Storage are served
    #[command(flatten)]
    pub azure: AzureListenArgs,
    /// Address of metrics and probes; port 0 selects a free one [default: 127.0.0.1:9464]
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<String>,
    /// Listen without TLS on an address that is not loopback
    #[arg(long)]
    pub allow_plaintext: bool,
    /// A backup in place of a data directory
    #[command(flatten)]
    pub mount: MountArgs,
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
            ("server.listen", self.listen.clone()),
            ("server.admin", self.admin.clone()),
            ("server.allow_plaintext", yes(self.allow_plaintext)),
        ];
        let set = |(key, value): (&str, Option<String>)| Some((key.to_owned(), value?));
        let azure = self.azure.0.iter();
        let azure = azure.map(|(role, listen)| (Listen::full_key(role), listen.clone()));
        flags.into_iter().filter_map(set).chain(azure).collect()
    }
}

/// A flag for each role with a protocol of Azure Storage: role and address, where set.
#[derive(Debug, Clone, Default)]
pub struct AzureListenArgs(Vec<(&'static str, String)>);

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
                "{serves}; port 0 selects a free one, `off` none [default: 127.0.0.1:{port}]"
            );
            command.arg(Arg::new(flag).long(flag).value_name("ADDRESS").help(help))
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for AzureListenArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let set = |(role, edge): (_, AzureEdge)| Some((role, matches.get_one(edge.flag).cloned()?));
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
    #[command(flatten)]
    pub config: ConfigFileArgs,
    /// Address of the server [default: that of --config, else TRESTLE_ENDPOINT, else that of its configuration]
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
    #[command(flatten)]
    pub config: ConfigFileArgs,
    /// Data directory [default: that of the configuration]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Remove what is reported, and keep the originals in a folder `damaged-N`, or `kv-damaged-N` for a whole store
    #[arg(long)]
    pub accept_loss: bool,
}

/// Arguments of `compact`.
#[derive(Debug, Args)]
pub struct CompactArgs {
    /// Configuration file of the server
    #[command(flatten)]
    pub config: ConfigFileArgs,
    /// Data directory [default: that of the configuration]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Report as JSON; the same as -o json
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Configuration file of the server
    #[command(flatten)]
    pub config: ConfigFileArgs,
    /// Data directory [default: that of the configuration]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Report as JSON, one object a line; the same as -o jsonl
    #[arg(long)]
    pub json: bool,
}
