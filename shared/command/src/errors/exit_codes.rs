//! The exit codes of commands, as their help lists them.

use clap::{Command, builder::StyledStr};

/// Text for `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  failed
    2  usage: a malformed flag, value or file, or a request the server rejects as malformed
    3  not found: no such table or entity
    4  already exists, or a condition (--if-match) does not hold
    5  unavailable: the server cannot be reached, is busy, or did not answer in time; try again
    6  wrong address or certificate: the service is not served there, or TLS fails; trying again does not help
  130  interrupted by Ctrl-C
  143  terminated by SIGTERM";

/// The same for commands that write rows of a file or of another store.
#[must_use]
pub fn import_exit_codes() -> String {
    EXIT_CODES.replace("1  failed", "1  failed, or some rows were not written")
}

/// The same for a command on tables, by its name.
pub fn table_exit_codes(command: &str) -> String {
    if command == "import" { import_exit_codes() } else { EXIT_CODES.to_owned() }
}

/// The same for queues.
pub const QUEUE_EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  failed
    2  usage: a malformed flag, value or file, or a request the server rejects as malformed
    3  not found: no such queue or message, or the receipt is not its last one
    4  already exists, with other settings
    5  unavailable: the server cannot be reached, is busy, or did not answer in time; try again
    6  wrong address or certificate: the service is not served there, or TLS fails; trying again does not help
  130  interrupted by Ctrl-C
  143  terminated by SIGTERM";

/// The same for blobs.
pub const BLOB_EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  failed; for verify: a blob is damaged
    2  usage: a malformed flag, value or file, or a request the server rejects as malformed
    3  not found: no such container or blob
    4  already exists, or a lease does not permit the command
    5  unavailable: the server cannot be reached, is busy, or did not answer in time; try again
    6  wrong address or certificate: the service is not served there, or TLS fails; trying again does not help
  130  interrupted by Ctrl-C
  143  terminated by SIGTERM";

/// Appends a text, such as the exit codes, to the help of a command, unless that has it.
#[must_use]
pub fn with_help(command: Command, text: &str) -> Command {
    let appended = |help: Option<&StyledStr>| match help {
        Some(help) if help.to_string().contains(text) => help.to_string(),
        Some(help) => format!("{help}\n\n{text}"),
        None => text.to_owned(),
    };
    let short = appended(command.get_after_help());
    let long = appended(command.get_after_long_help().or(command.get_after_help()));
    command.after_help(short).after_long_help(long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_appended_to_the_help_of_a_command() {
        let plain = with_help(with_help(Command::new("x"), "codes"), "codes");
        assert_eq!(plain.get_after_help().unwrap().to_string(), "codes");

        let longer = Command::new("x").after_help("short").after_long_help("long");
        let longer = with_help(longer, "codes");
        assert_eq!(longer.get_after_help().unwrap().to_string(), "short\n\ncodes");
        assert_eq!(longer.get_after_long_help().unwrap().to_string(), "long\n\ncodes");
    }
}
