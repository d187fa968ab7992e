//! The arguments that every client command has, which help shows once: in `trestle options`.

use clap::{Command, builder::StyledStr};

use super::client_flags::{CALLING, SERVER_COMMANDS, SIGNING, shared_flags};

/// Where they are, below the help of a command that has them.
const NOTE: &str =
    "`trestle options` shows the flags of every client command: server, credentials, output.";
/// The commands that store these arguments, or have some of them: their help shows those.
const WITH_OWN: [&str; 3] = [SIGNING, "context", "help"];
/// The command with commands among its own that call a server.
const BACKUP: &str = "backup";

/// The command line as help shows it, without the arguments that `trestle options` shows.
pub(super) fn set_apart(command: Command) -> Command {
    let shared = shared_flags();
    let command = command.mut_subcommands(|inner| {
        let name = inner.get_name();
        let is_of_server = SERVER_COMMANDS.iter().any(|(known, _)| *known == name);
        let without_shared = |inner| without_shared(inner, &shared);
        match name {
            BACKUP => CALLING
                .iter()
                .fold(inner, |inner, calling| inner.mut_subcommand(calling, without_shared)),
            name if is_of_server || WITH_OWN.contains(&name) => inner,
            _ => without_shared(inner),
        }
    });
    without_own(command, &shared)
}

fn without_shared(command: Command, shared: &Command) -> Command {
    without_own(command, shared).mut_subcommands(|inner| match inner.get_name() {
        "help" => inner,
        _ => without_shared(inner, shared),
    })
}

fn without_own(command: Command, shared: &Command) -> Command {
    let command = command.mut_args(|arg| {
        let is_shared = shared.get_arguments().any(|it| it.get_id() == arg.get_id());
        if is_shared { arg.hide(true) } else { arg }
    });
    // In front of what is there: examples, and the exit codes at the end.
    let below = |help: &StyledStr| format!("{NOTE}\n\n{help}");
    let short = command.get_after_help().map(below).unwrap_or_else(|| NOTE.to_owned());
    let long = command.get_after_long_help().map_or_else(|| short.clone(), below);
    command.after_help(short).after_long_help(long)
}

/// The arguments of every client command, with their texts.
#[must_use]
pub fn shared_options() -> String {
    let alone = shared_flags().disable_help_flag(true).disable_version_flag(true);
    alone.help_template("{all-args}").render_long_help().to_string()
}
