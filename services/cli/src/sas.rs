//! `trestle sas`: creates shared access signatures and explains them. Nothing is sent.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::json;
use trestle_command::{
    credentials::CredentialArgs,
    errors::CliError,
    files,
    flags::ClientArgs,
    output::{Output, report_line},
    values::duration,
};
use trestle_identity::{
    account::AccountKey,
    caller::KeyRange,
    sas::{AddressRange, Malformed, Protocol, Scope, Terms, Time, Version, mint},
};
use trestle_model::blob_name::{BlobName, ContainerName};
use trestle_model::fault::Violations;
use trestle_model::name::{AccountName, QueueName, TableName};
use trestle_model::time::{Clock as _, SystemClock, Ticks};

mod args;
mod explain;

pub use args::{GrantArgs, RangeArgs, SasArgs, SasCommand, ServiceGrantArgs};
pub use explain::ExplainArgs;

/// Largest file with a signature, in bytes.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;

/// Runs a command.
pub(crate) fn run(args: SasArgs, client: &ClientArgs) -> Result<(), CliError> {
    let (mut output, credentials) = (Output::standard(&client.output), &client.credentials);
    check_names(&args.command)?;
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
        SasCommand::Log { name, grant } => (Scope::of_log(name), None, grant),
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

/// Rejects a resource that cannot exist, with the rule of the server: its signature would grant nothing.
fn check_names(command: &SasCommand) -> Result<(), CliError> {
    let mut violations = Violations::default();
    match command {
        SasCommand::Table { name, .. } => {
            TableName::parse(name.clone(), "table", &mut violations);
        }
        SasCommand::Queue { name, .. } => {
            QueueName::parse(name.clone(), "queue", &mut violations);
        }
        SasCommand::Container { name, .. } => {
            ContainerName::parse(name.clone(), "container", &mut violations);
        }
        SasCommand::Blob { blob, .. } => {
            let (container, name) = blob.clone().of_blob()?.into_parts();
            ContainerName::parse(container, "container", &mut violations);
            BlobName::parse(name, &mut violations);
        }
        // A token has the name of its stream, whose rule is checked with it.
        SasCommand::Log { .. } | SasCommand::Account { .. } | SasCommand::Explain(_) => {}
    }
    violations.check(()).map_err(|fault| CliError::Usage(fault.message))
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
        "ln" => "log",
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
            delegation: None,
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
