//! Texts below the help of commands: examples, and the exit codes of each command.

use clap::{
    ValueEnum as _,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use trestle_command::{errors::with_help, output::OutputFormat};

/// The command with exit codes in its help and in that of its commands: its own, else `inherited`.
pub(super) fn with_exit_codes(command: clap::Command, inherited: &str) -> clap::Command {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let own = help.find("Exit codes").and_then(|at| help.get(at..)).map(str::to_owned);
    let command = match &own {
        None if !inherited.is_empty() => with_help(command, inherited),
        _ => command,
    };
    let codes = own.unwrap_or_else(|| inherited.to_owned());
    command.mut_subcommands(|inner| match inner.get_name() {
        "help" => inner,
        _ => with_exit_codes(inner, &codes),
    })
}

/// The argument without a form of output in its help that reports do not have. It is parsed, for its own error.
pub(super) fn without_csv(arg: clap::Arg) -> clap::Arg {
    if arg.get_id() != "output" {
        return arg;
    }
    let forms = OutputFormat::value_variants().iter();
    let forms =
        forms.filter_map(|form| Some(form.to_possible_value()?.hide(*form == OutputFormat::Csv)));
    let parser = PossibleValuesParser::new(forms.collect::<Vec<_>>());
    arg.value_parser(parser.try_map(|form| OutputFormat::from_str(&form, false)))
}

/// Below the help of `trestle`.
pub(super) const ROOT_HELP: &str = "\
Examples:
  trestle serve --data-dir ./data
  trestle table create orders
  trestle entity insert orders -p c42 -r 0001 --set state=open --set total:int64=990
  trestle entity query orders --filter \"PartitionKey eq 'c42'\" -o jsonl
  trestle message send jobs 'resize cat.png'

Exit codes of commands that call a server; the other commands have their own in their help:
    0  done
    1  failed; imports: some rows were not written
    2  usage: a malformed flag, value or file, or a request the server rejects as malformed
    3  not found
    4  already exists, or a condition does not hold
    5  unavailable: the server cannot be reached, is busy, or did not answer in time; try again
    6  wrong address or certificate: no gRPC server answers there, or TLS fails
  130  interrupted by Ctrl-C
  143  terminated by SIGTERM";

/// Of `backup`.
pub(super) const BACKUP_HELP: &str = "\
Examples:
  trestle backup create s3://backups/orders --data-dir ./data
  trestle backup list s3://backups/orders
  trestle backup restore s3://backups/orders --data-dir ./restored
  trestle backup restore s3://backups/orders --table orders=ordersBefore

Exit codes:
    0  done
    1  failed; create and restore: something could not be read when the backup was made; verify: a part is
       missing or damaged
    2  usage: a malformed flag or value, no such backup, or a target or directory of something else
    5  the target or the store is unavailable or in use; try again
  130  interrupted by Ctrl-C
  143  terminated by SIGTERM";

/// Of `completions`.
pub(super) const COMPLETIONS_HELP: &str = "\
  bash: trestle completions bash > ~/.local/share/bash-completion/completions/trestle
  zsh:  trestle completions zsh > a folder of $fpath, as _trestle
  fish: trestle completions fish > ~/.config/fish/completions/trestle.fish

Exit codes:
    0  done
    1  the output cannot be written
    2  wrong arguments";

/// Of commands that print, or write files, alone.
pub(super) const LOCAL_HELP: &str = "\
Exit codes:
    0  done
    1  the output cannot be written
    2  wrong arguments";

/// Of `config` and its commands.
pub(super) const CONFIG_HELP: &str = "\
Exit codes:
    0  done; for check: the configuration is valid
    1  the output cannot be written
    2  wrong arguments, or mistakes in the configuration, each of which is reported";

/// Of `healthcheck`.
pub(super) const HEALTHCHECK_HELP: &str = "\
Exit codes:
    0  it serves: its address is printed, and why it accepts no writes, if so
    1  it does not serve, or it cannot be reached within 3 seconds
    2  wrong arguments or configuration";

/// Of `doctor`.
pub(super) const DOCTOR_HELP: &str = "\
Run it as the user of the server, with the same variables. It may run beside a server.

Exit codes:
    0  a server would start and serve, perhaps with warnings
    1  it would not
    2  wrong arguments or configuration";

/// Of `compact`.
pub(super) const COMPACT_HELP: &str = "\
Exit codes:
    0  compacted
    1  anything else
    2  wrong arguments or configuration
    3  the data directory is in use
    4  there is no store, or it cannot be opened as it is, or be compacted";

/// Of `repair`.
pub(super) const REPAIR_HELP: &str = "\
Without --accept-loss nothing is changed. With it, damaged journals are cut where they are damaged; where tables are
damaged, every row that can be read is copied to a new store, which needs the space for that.

Exit codes:
    0  nothing to repair, or repaired
    1  anything else
    2  wrong arguments or configuration
    3  the data directory is in use
    4  the store cannot be opened as it is, or cannot be repaired";

/// Of `store`.
pub(super) const STORE_HELP: &str = "\
Exit codes:
    0  done
    1  failed
    2  usage: a malformed flag or value, or a store that the command does not apply to
    5  a store is unavailable or in use; try again
  130  interrupted by Ctrl-C
  143  terminated by SIGTERM";

/// Of `store copy`.
pub(super) const STORE_COPY_HELP: &str = "\
Rows and objects are copied, and then compared. What the source stores is not changed. No server starts on the copy
before it is complete; the same command continues one that was interrupted.

Examples:
  trestle store copy --from ./data --to postgres://trestle@db/trestle --to-blob-url s3://objects/prod
  trestle store copy --from postgres://trestle@db/trestle --to ./data

Exit codes:
    0  done, and the copy is the same
    1  failed; the copy differs; or the source lacks objects that its rows name
    2  usage: a malformed flag or value, no store in the source, or a target of something else
    5  a store is unavailable or in use; try again
  130  interrupted by Ctrl-C
  143  terminated by SIGTERM";

/// Of `serve`.
pub(super) const SERVE_HELP: &str = "\
Configuration: defaults, then the file (--config, TRESTLE_CONFIG or ./trestle.toml), then variables \
TRESTLE__SECTION__KEY, then flags; `trestle config print` shows the result, `trestle config check` \
every mistake.

SIGTERM and SIGINT drain calls, a second signal cuts them.

Exit codes:
    0  ended by a signal
    1  anything else
    2  wrong arguments or configuration
    3  the data directory is in use
    4  the data cannot be opened
    5  an address cannot be bound
    6  calls were cut off by the shutdown
    7  a write or a sync of the store failed: restart it, see storage.exit_when_stopped";

#[cfg(test)]
mod tests {
    use trestle_command::grammar::VERBS;

    use super::super::Cli;

    /// The help of every command, from the root.
    fn every_help(mut command: clap::Command, found: &mut Vec<String>) {
        found.push(command.render_long_help().to_string());
        let inner = command.get_subcommands().filter(|inner| inner.get_name() != "help");
        inner.for_each(|inner| every_help(inner.clone(), found));
    }

    #[test]
    fn the_help_of_every_command_has_its_exit_codes_once() {
        for whole in [Cli::complete(), Cli::documented()] {
            let mut found = Vec::new();

            every_help(whole, &mut found);

            assert!(found.len() > 80, "{}", found.len());
            for help in found {
                assert_eq!(help.matches("Exit codes").count(), 1, "{help}");
                assert!(help.contains("\n    0  ") && help.contains("\n    2  "), "{help}");
            }
        }
    }

    /// Every command with its path, from the root.
    fn every_command(
        command: &clap::Command,
        path: &str,
        found: &mut Vec<(String, clap::Command)>,
    ) {
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            let path = format!("{path} {}", inner.get_name());
            every_command(inner, &path, found);
            found.push((path, inner.clone()));
        }
    }

    #[test]
    fn every_noun_has_each_name_of_its_verbs_and_every_command_each_name_of_its_flags() {
        let (whole, mut found) = (Cli::complete(), Vec::new());
        every_command(&whole, "trestle", &mut found);

        let mut verbs = 0;
        for (path, noun) in &found {
            for names in VERBS {
                if names.iter().any(|name| noun.find_subcommand(name).is_some()) {
                    verbs += 1;
                    let missing = names.iter().find(|name| noun.find_subcommand(name).is_none());
                    assert_eq!(missing, None, "{path}");
                }
            }
        }
        for (path, command) in &found {
            let has = |long: &str| {
                let is_named = |arg: &&clap::Arg| {
                    arg.get_long_and_visible_aliases().is_some_and(|all| all.contains(&long))
                };
                command.get_arguments().find(is_named)
            };
            if let Some(limit) = has("limit") {
                assert_eq!(limit.get_short(), Some('n'), "{path}");
            }
            if let Some(follow) = has("follow") {
                assert_eq!(follow.get_short(), Some('f'), "{path}");
            }
            assert_eq!(has("filter").is_some(), has("where").is_some(), "{path}");
        }
        assert!(verbs > 20, "{verbs}");
    }

    /// The long names of the arguments of a command and its commands, with earlier spellings.
    fn flags(command: &clap::Command) -> Vec<String> {
        let own = command.get_arguments().filter_map(clap::Arg::get_long);
        let own = own.map(|name| format!("--{name}"));
        own.chain(command.get_subcommands().flat_map(flags)).collect()
    }

    #[test]
    fn every_flag_that_an_error_names_exists() {
        let existing = flags(&Cli::complete());

        for (field, flag) in trestle_command::errors::FIELD_FLAGS {
            assert!(existing.iter().any(|name| name == flag), "{field}: {flag}");
        }
    }

    #[test]
    fn every_argument_of_the_man_pages_has_a_text_and_none_is_left_out() {
        for command in Cli::documented().get_subcommands() {
            let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
            for arg in shown {
                assert!(arg.get_help().is_some(), "{}: {arg}", command.get_name());
                assert!(!arg.is_hide_short_help_set(), "{}: {arg}", command.get_name());
            }
        }
    }
}
