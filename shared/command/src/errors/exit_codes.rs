//! The exit codes of commands, as their help lists them.

use clap::{Command, builder::StyledStr};

/// The list with the meaning of the codes 1, 3 and 4, which differs between commands.
macro_rules! exit_codes {
    ($failed:literal, $not_found:literal, $conflict:literal) => {
        concat!(
            "Exit codes:\n",
            "    0  done\n",
            "    1  ",
            $failed,
            "\n",
            "    2  usage: a malformed flag, value or file, or a request the server rejects as malformed\n",
            "    3  not found: ",
            $not_found,
            "\n",
            "    4  already exists, ",
            $conflict,
            "\n",
            "    5  unavailable: the server cannot be reached, is busy, or did not answer in time; try again\n",
            "    6  wrong address or certificate: the service is not served there, or TLS fails; ",
            "trying again does not help\n",
            "  130  interrupted by Ctrl-C\n",
            "  143  terminated by SIGTERM"
        )
    };
}

/// Text for `--help`.
pub const EXIT_CODES: &str =
    exit_codes!("failed", "no such table or entity", "or a condition (--if-match) does not hold");

/// The same for commands that write rows of a file or of another store.
pub const IMPORT_EXIT_CODES: &str = exit_codes!(
    "failed, or some rows were not written",
    "no such table or entity",
    "or a condition (--if-match) does not hold"
);

/// The same for a command on tables, by its name.
#[must_use]
pub fn table_exit_codes(command: &str) -> &'static str {
    if command == "import" { IMPORT_EXIT_CODES } else { EXIT_CODES }
}

/// The same for queues.
pub const QUEUE_EXIT_CODES: &str = exit_codes!(
    "failed",
    "no such queue or message, or the receipt is not its last one",
    "with other settings"
);

/// The same for blobs.
pub const BLOB_EXIT_CODES: &str = exit_codes!(
    "failed; for cp and rm: some were not copied or deleted; for verify: a blob is damaged",
    "no such container or blob",
    "or a lease does not permit the command"
);

/// The same for `verify`.
pub const VERIFY_EXIT_CODES: &str = exit_codes!(
    "failed, or something is damaged or was not verified",
    "no such table, queue, container or stream",
    "with other settings"
);

/// The same for logs.
pub const LOG_EXIT_CODES: &str = exit_codes!(
    "failed; for append: some lines were not appended",
    "no such stream",
    "with other settings"
);

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
