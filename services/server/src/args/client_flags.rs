//! Which arguments for clients a command has.

use clap::{ArgMatches, Args as _, error::ErrorKind, parser::ValueSource};
use trestle_command::{flags::ClientFlags, output::OutputFormat};

/// The commands that call no server, and the arguments for clients that they have all the same.
pub(super) const SERVER_COMMANDS: [(&str, &[&str]); 13] = [
    ("serve", &[]),
    ("healthcheck", &["endpoint", "ca_file", "server_name", "cert_file", "key_file", "quiet"]),
    ("config", &["quiet"]),
    ("repair", &["quiet"]),
    ("compact", &REPORT_FLAGS),
    ("store", &REPORT_FLAGS),
    ("backup", &REPORT_FLAGS),
    ("doctor", &REPORT_FLAGS),
    ("completions", &["quiet"]),
    ("man", &["quiet"]),
    ("token", &["quiet"]),
    ("options", &["quiet"]),
    ("version", &REPORT_FLAGS),
];
/// The arguments for clients of commands with a report.
const REPORT_FLAGS: [&str; 3] = ["output", "json", "quiet"];

/// The command without the help of those arguments for clients that `is_foreign` selects.
pub(super) fn unlisted(
    command: clap::Command,
    is_foreign: impl Fn(&str) -> bool + Copy,
) -> clap::Command {
    unlisted_but(command, &[], is_foreign)
}

/// The same, where some of its commands keep all.
pub(super) fn unlisted_but(
    command: clap::Command,
    kept: &[&str],
    is_foreign: impl Fn(&str) -> bool + Copy,
) -> clap::Command {
    let command = command.mut_args(|arg| {
        let hides = arg.is_global_set() && is_foreign(arg.get_id().as_str());
        if hides { arg.hide(true) } else { arg }
    });
    command.mut_subcommands(|inner| match kept.contains(&inner.get_name()) {
        true => inner,
        false => unlisted(inner, is_foreign),
    })
}

/// The commands among those of a server that call one.
pub(super) const CALLING: [&str; 2] = ["restore", "diff"];

/// Whether these are the arguments of such a command.
fn calls(inner: &ArgMatches) -> bool {
    inner.subcommand_name().is_some_and(|name| CALLING.contains(&name))
}

/// The commands of clients that call no server. Signing needs credentials, and no address.
pub(super) const SIGNING: &str = "sas";
/// These need neither: `context set` alone stores them.
pub(super) const CONTEXT_COMMANDS: [&str; 3] = ["context list", "context use", "context delete"];
/// Their arguments.
pub(super) const CONTEXT_FLAGS: [&str; 4] = ["output", "json", "quiet", "terminal_columns"];
/// The arguments for clients that name no server and no credentials.
const OUTPUT_FLAGS: [&str; 6] =
    ["output", "json", "quiet", "verbose", "timeout", "terminal_columns"];

/// An argument for clients with a command that calls no server.
pub(super) fn foreign_argument(
    matches: &ArgMatches,
    command: &mut clap::Command,
) -> Option<clap::Error> {
    let (name, inner) = matches.subcommand()?;
    let (name, flag) = match SERVER_COMMANDS.iter().find(|(known, _)| *known == name) {
        Some(_) if calls(inner) => return None,
        Some((_, kept)) => (name.to_owned(), given_flag(inner, kept)?),
        None if name == SIGNING => (name.to_owned(), endpoint_flag(inner)?),
        None => (context_command(name, inner)?, given_flag(inner, &CONTEXT_FLAGS)?),
    };
    let is_of_call = !OUTPUT_FLAGS.contains(&flag.as_str());
    let reason = match name.as_str() {
        "healthcheck" => ": it calls the server of --endpoint or of its configuration",
        _ if is_of_call => ": it calls no server",
        _ => "",
    };
    let text = format!("`trestle {name}` takes no --{flag}{reason}");
    Some(command.error(ErrorKind::UnknownArgument, text))
}

/// A form of output that the report of a command does not have.
pub(super) fn foreign_form(
    matches: &ArgMatches,
    command: &mut clap::Command,
) -> Option<clap::Error> {
    let (name, inner) = matches.subcommand()?;
    let (_, kept) = SERVER_COMMANDS.iter().find(|(known, _)| *known == name)?;
    let has_form = kept.contains(&"output") && !calls(inner);
    let form = has_form.then(|| inner.get_one::<OutputFormat>("output").copied()).flatten()?;
    let text = format!("`trestle {name}` has no form csv: use json, jsonl or plain");
    (form == OutputFormat::Csv).then(|| command.error(ErrorKind::InvalidValue, text))
}

/// A command with the arguments of every client command, and no others.
pub(super) fn shared_flags() -> clap::Command {
    ClientFlags::augment_args(clap::Command::new("trestle"))
}

/// The first argument for clients on the command line that is not kept.
fn given_flag(inner: &ArgMatches, kept: &[&str]) -> Option<String> {
    let own = shared_flags();
    let flags = own.get_arguments().map(|arg| arg.get_id().as_str());
    let mut flags = flags.filter(|id| !kept.contains(id) && inner.ids().any(|found| found == id));
    let given = flags.find(|id| inner.value_source(id) == Some(ValueSource::CommandLine))?;
    Some(given.replace('_', "-"))
}

/// The command on contexts of these arguments that uses no server and no credentials.
fn context_command(name: &str, inner: &ArgMatches) -> Option<String> {
    let whole = format!("{name} {}", inner.subcommand_name()?);
    CONTEXT_COMMANDS.contains(&whole.as_str()).then_some(whole)
}

/// The argument for the address of a server.
pub(super) const ENDPOINT: &str = "endpoint";

/// Where the value of an argument is from; none where the command has no such argument.
pub(super) fn source(inner: &ArgMatches, argument: &str) -> Option<ValueSource> {
    let is_known = inner.ids().any(|id| id == argument);
    is_known.then(|| inner.value_source(argument)).flatten()
}

/// The address, where it is on the command line.
fn endpoint_flag(inner: &ArgMatches) -> Option<String> {
    let is_given = source(inner, ENDPOINT) == Some(ValueSource::CommandLine);
    is_given.then(|| ENDPOINT.to_owned())
}
