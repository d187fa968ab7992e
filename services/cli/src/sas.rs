//! `trestle sas`: creates shared access signatures and explains them. Nothing is sent.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Arg, Args, Subcommand};
use serde_json::json;
use trestle_command::{
    credentials::CredentialArgs,
    errors::{CliError, with_help},
    files,
    flags::ClientArgs,
    output::{Output, report_line},
    values::duration,
};
use trestle_identity::{
    account::AccountKey,
    caller::KeyRange,
    sas::{AddressRange, Malformed, Protocol, Scope, Terms, Time, Version, mint},
    spec::{BLOB, QUEUE, ServiceSpec, TABLE},
};
use trestle_service::{
    clock::{Clock as _, SystemClock, Ticks},
    name::AccountName,
};

use crate::blob::BlobAddress;

mod explain;

pub use explain::ExplainArgs;

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
        /// Letters of bqtf: blob, queue, table, file
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

/// Largest file with a signature, in bytes.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;

/// Terms of every signature.
#[derive(Debug, Args)]
pub struct GrantArgs {
    /// Letters: r read, a add, u update, d delete, l list, c create, w write, p process
    #[arg(long, default_value = "", hide_default_value = true, value_name = "LETTERS")]
    permissions: String,
    /// When it ends to grant: a time such as 2026-01-31T08:00Z, or from now on 30m, 8h, 7d
    #[arg(long, value_name = "TIME")]
    expiry: Option<String>,
    /// When it begins to grant; at once when left out
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// Only from this address, or from a range such as 198.51.100.0-198.51.100.255
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<String>,
    /// Only over encrypted connections
    #[arg(long)]
    https_only: bool,
    /// The version, which decides what is signed and how
    #[arg(long, value_name = "DATE")]
    sas_version: Option<String>,
}

/// Terms of signatures of one service.
#[derive(Debug, Args)]
pub struct ServiceGrantArgs {
    /// Terms of every signature
    #[command(flatten)]
    grant: GrantArgs,
    /// The stored access policy that states what is left out here
    #[arg(long, value_name = "ID")]
    policy: Option<String>,
}

/// A range of entities, both ends included.
#[derive(Debug, Args)]
pub struct RangeArgs {
    /// Lowest partition key
    #[arg(long, value_name = "KEY")]
    start_partition_key: Option<String>,
    /// Lowest row key in the lowest partition
    #[arg(long, value_name = "KEY", requires = "start_partition_key")]
    start_row_key: Option<String>,
    /// Highest partition key
    #[arg(long, value_name = "KEY")]
    end_partition_key: Option<String>,
    /// Highest row key in the highest partition
    #[arg(long, value_name = "KEY", requires = "end_partition_key")]
    end_row_key: Option<String>,
}

/// Runs a command.
pub(crate) fn run(args: SasArgs, client: &ClientArgs) -> Result<(), CliError> {
    let (mut output, credentials) = (Output::standard(&client.output), &client.credentials);
    let (scope, policy, grant) = match args.command {
        SasCommand::Explain(explain) => {
            return explain::run(&mut output, explain, credentials);
        }
        SasCommand::Account { services, resource_types, grant } => {
            let encryption_scope = String::new();
            (Scope::Account { services, resource_types, encryption_scope }, None, grant)
        }
        SasCommand::Table { name, grant, range } => {
            let range = KeyRange {
                start_partition_key: range.start_partition_key,
                start_row_key: range.start_row_key,
                end_partition_key: range.end_partition_key,
                end_row_key: range.end_row_key,
            };
            (Scope::of_table(name, &range), grant.policy, grant.grant)
        }
        SasCommand::Queue { name, grant } => (Scope::of_queue(name), grant.policy, grant.grant),
        SasCommand::Container { name, grant } => {
            (Scope::of_container(name), grant.policy, grant.grant)
        }
        SasCommand::Blob { blob, grant } => {
            (Scope::of_blob(blob.of_blob()?.to_string()), grant.policy, grant.grant)
        }
    };
    let now = SystemClock.now();
    let terms = grant.terms(scope, policy, now).map_err(|error| usage_of_flag(&error))?;
    if terms.expiry.as_ref().is_some_and(|expiry| expiry.ticks() <= now) {
        report_line("warning: --expiry is past: the signature grants nothing");
    }
    let (account, key) = signer(credentials)?;
    let token = mint(terms, account.as_str(), &key).map_err(|error| usage_of_flag(&error))?;
    let text = token.to_query();
    output.either(&text, &json!({ "account": account.as_str(), "sas": text }))?;
    output.finish()
}

fn usage(error: &Malformed) -> CliError {
    CliError::Usage(error.to_string())
}

/// The error, with the argument name of the command line in place of the field of the signature.
fn usage_of_flag(error: &Malformed) -> CliError {
    let flag = match error.field {
        "se" => "--expiry",
        "st" => "--start",
        "sp" => "--permissions",
        "sip" => "--ip",
        "sv" => "--sas-version",
        "si" => "--policy",
        "ss" => "--services",
        "srt" => "--resource-types",
        "spk" => "--start-partition-key",
        "srk" => "--start-row-key",
        "epk" => "--end-partition-key",
        "erk" => "--end-row-key",
        _ => return usage(error),
    };
    CliError::Usage(format!("{flag}: {}", error.rule))
}

fn signer(credentials: &CredentialArgs) -> Result<(AccountName, AccountKey), CliError> {
    match credentials.account()? {
        Some((account, Some(key))) => Ok((account, key)),
        _ => {
            let rule = "signing needs --account and a key: --account-key-file, or the variable \
                        TRESTLE_ACCOUNT_KEY";
            Err(CliError::Usage(rule.to_owned()))
        }
    }
}

impl GrantArgs {
    fn terms(self, scope: Scope, policy: Option<String>, now: Ticks) -> Result<Terms, Malformed> {
        Ok(Terms {
            version: match self.sas_version {
                Some(version) => Version::parse(version)?,
                None => Version::current(),
            },
            permissions: self.permissions,
            start: self.start.map(|text| moment("st", text, now)).transpose()?,
            expiry: self.expiry.map(|text| moment("se", text, now)).transpose()?,
            policy,
            addresses: self.ip.map(AddressRange::parse).transpose()?,
            protocol: self.https_only.then_some(Protocol::Https),
            scope,
        })
    }
}

/// A time, or a duration from now.
pub(crate) fn moment(field: &'static str, text: String, now: Ticks) -> Result<Time, Malformed> {
    let later = |from_now: Duration| {
        let ticks = u64::try_from(from_now.as_nanos() / 100).ok()?;
        Time::at(Ticks::new(now.get().checked_add(ticks)?)?)
    };
    match duration(&text).ok().and_then(later) {
        Some(time) => Ok(time),
        None => Time::parse(field, text).map_err(|error| Malformed {
            rule: error.rule.replacen("must be", "must be 30m, 8h or 7d from now on, or", 1),
            ..error
        }),
    }
}

/// Reads a token: the text itself, or a file, or `-` for standard input.
fn token_of(text: &str, file: Option<&PathBuf>) -> Result<String, CliError> {
    let file = file.map(PathBuf::as_path).or((text == "-").then_some(Path::new("-")));
    let read = file.map(|file| files::read_small(file, TOKEN_BYTES_MAX)).transpose()?;
    Ok(read.as_deref().unwrap_or(text).trim().to_owned())
}

#[cfg(test)]
mod tests;
