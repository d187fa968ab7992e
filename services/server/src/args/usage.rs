//! Errors of the command line: with the usage of their command, and as JSON where that is the form of the output.

use std::{
    ffi::OsString,
    io::{self, Write as _},
};

use clap::{
    Arg, Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use trestle_command::output::{escaped, report_line};

use crate::process_error::ProcessError;

/// The beginning of an error in the text of the parser.
const PREFIX: &str = "error: ";

/// Reports an error and ends the process with its exit code; help and the version are no errors.
pub(super) fn exit(error: Error, command: &Command, words: &[OsString]) -> ! {
    let error = with_own_suggestion(with_usage(error, command, words), command, words);
    let error = with_listed_commands(error, command, words);
    let error = with_own_tip(error, &innermost(command, words));
    if error.use_stderr() && is_json_requested(words) {
        let text = match error.kind() {
            // Its text is the help.
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                format!("`{}` requires a command", innermost(command, words).get_name())
            }
            _ => message(&error.to_string()),
        };
        trestle_command::outcome::report_usage_json(text);
        std::process::exit(error.exit_code());
    }
    // A closed pipe, such as of `head`, is no error.
    let is_failed = |failed: &io::Error| failed.kind() != io::ErrorKind::BrokenPipe;
    let printed = error.print().and_then(|()| io::stdout().flush());
    if let Some(failed) = printed.err().filter(is_failed).filter(|_| !error.use_stderr()) {
        let failed = ProcessError::Output(failed);
        report_line(&format!("{PREFIX}{}", failed.chain()));
        std::process::exit(1);
    }
    std::process::exit(error.exit_code())
}

/// The words with their control characters escaped: an error that shows them must not control the terminal.
pub(super) fn escaped_words(words: &[OsString]) -> Vec<OsString> {
    words.iter().map(|word| escaped(&word.to_string_lossy()).into()).collect()
}

/// The error with the usage of its command: the parser shows arguments that come from variables as required ones.
fn with_usage(mut error: Error, command: &Command, words: &[OsString]) -> Error {
    let has_usage = error.get(ContextKind::Usage).is_some();
    if has_usage {
        let usage = innermost(command, words).render_usage();
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    }
    error
}

/// The error without the suggestion of an argument that the help of its command does not list: the parser accepts those
/// for clients with every command, and the others reject them.
fn with_own_suggestion(mut error: Error, command: &Command, words: &[OsString]) -> Error {
    let Some(ContextValue::String(suggested)) = error.get(ContextKind::SuggestedArg) else {
        return error;
    };
    let name = suggested.trim_start_matches('-').to_owned();
    let inner = innermost(command, words);
    let is_listed = |arg: &Arg| arg.get_long() == Some(&*name) && !arg.is_hide_set();
    if !inner.get_arguments().any(is_listed) {
        error.remove(ContextKind::SuggestedArg);
    }
    error
}

/// The error with the flag that a bare NAME=VALUE belongs to, and without the tip of the parser to pass an unknown flag
/// as a value.
fn with_own_tip(mut error: Error, inner: &Command) -> Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let word = word.clone();
    error.remove(ContextKind::Suggested);
    let is_of_pairs = |arg: &&Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        arg.get_long().is_some() && names.iter().any(|name| name.ends_with("=VALUE"))
    };
    let is_pair = !word.starts_with('-') && word.contains('=');
    let flag = inner.get_arguments().filter(|_| is_pair).find(is_of_pairs).and_then(Arg::get_long);
    if let Some(flag) = flag {
        let tip = format!("a NAME=VALUE needs its flag: --{flag} '{word}'").into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// The error without commands that the help does not list, such as earlier spellings.
fn with_listed_commands(mut error: Error, command: &Command, words: &[OsString]) -> Error {
    let inner = innermost(command, words);
    let is_listed =
        |name: &String| inner.find_subcommand(name).is_none_or(|found| !found.is_hide_set());
    for kind in [ContextKind::ValidSubcommand, ContextKind::SuggestedSubcommand] {
        let Some(ContextValue::Strings(names)) = error.remove(kind) else { continue };
        let listed: Vec<_> = names.into_iter().filter(is_listed).collect();
        if !listed.is_empty() {
            error.insert(kind, ContextValue::Strings(listed));
        }
    }
    error
}

/// The command that these words name.
pub(super) fn innermost(command: &Command, words: &[OsString]) -> Command {
    let names = words.iter().filter_map(|word| word.to_str());
    names.fold(command, |command, name| command.find_subcommand(name).unwrap_or(command)).clone()
}

/// Whether errors are to be JSON. The arguments are not parsed, so their words are searched.
fn is_json_requested(words: &[OsString]) -> bool {
    let words: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
    let is_json = |form: &str| matches!(form, "json" | "jsonl");
    let is_flag = |word: &str| {
        let form = word.strip_prefix("--output=").or_else(|| word.strip_prefix("-o"));
        word == "--json" || form.is_some_and(|form| is_json(form.trim_start_matches('=')))
    };
    let is_pair = |pair: &[&str]| matches!(pair, ["-o" | "--output", form] if is_json(form));
    words.iter().any(|word| is_flag(word)) || words.windows(2).any(is_pair)
}

/// The first paragraph of an error, on one line.
fn message(text: &str) -> String {
    let text = text.strip_prefix(PREFIX).unwrap_or(text);
    let paragraph = text.split("\n\n").next().unwrap_or(text);
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn json_is_found_in_each_form_of_its_argument() {
        for line in ["t --json", "t -o json", "t -ojsonl", "t --output jsonl", "t --output=json x"]
        {
            assert!(is_json_requested(&words(line)), "{line}");
        }
        for line in ["t", "t -o csv", "t json", "t -o table json", "t --output=plain"] {
            assert!(!is_json_requested(&words(line)), "{line}");
        }
    }

    #[test]
    fn words_of_an_error_have_no_control_characters() {
        let shown = escaped_words(&words("t \u{1b}[31ma\nb é"));

        assert_eq!(shown, words("t \\u001b[31ma\\nb é"));
    }

    #[test]
    fn an_argument_is_suggested_only_where_it_is_listed() {
        let flag = |name: &'static str| Arg::new(name).long(name);
        let inner = Command::new("serve").args([flag("listen"), flag("endpoint").hide(true)]);
        let mut root = Command::new("t").subcommand(inner);
        let mut suggested = |line: &str| {
            let error = root.try_get_matches_from_mut(words(line)).expect_err("unknown");
            let error = with_own_suggestion(error, &root, &words(line));
            error.get(ContextKind::SuggestedArg).map(ToString::to_string)
        };

        assert_eq!(suggested("t serve --lisen x").as_deref(), Some("--listen"));
        assert_eq!(suggested("t serve --endpont x"), None);
    }

    #[test]
    fn a_bare_pair_is_answered_with_its_flag_and_an_unknown_flag_with_no_way_to_pass_it() {
        let set = Arg::new("set").long("set").value_name("NAME[:TYPE]=VALUE");
        let insert = Command::new("insert").args([set, Arg::new("table")]);
        let mut root = Command::new("t").subcommand(insert).subcommand(Command::new("get"));
        let mut text = |line: &str| {
            let error = root.try_get_matches_from_mut(words(line)).expect_err("unknown");
            with_own_tip(error, &innermost(&root, &words(line))).to_string()
        };

        let pair = text("t insert orders state=open");
        assert!(pair.contains("tip: a NAME=VALUE needs its flag: --set 'state=open'"), "{pair}");
        let flag = text("t insert --whre x");
        assert!(flag.contains("'--whre'") && !flag.contains("-- --whre"), "{flag}");
        let other = text("t get state=open");
        assert!(!other.contains("tip:"), "{other}");
    }

    #[test]
    fn a_missing_or_unknown_command_is_answered_with_the_listed_ones() {
        let inner = ["create", "insert"].map(|name| Command::new(name).hide(name == "insert"));
        let table = Command::new("table").subcommands(inner).subcommand_required(true);
        let mut root = Command::new("t").subcommand(table.arg(Arg::new("quiet").short('q')));
        let mut text = |line: &str| {
            let error = root.try_get_matches_from_mut(words(line)).expect_err("no command");
            with_listed_commands(error, &root, &words(line)).to_string()
        };

        let missing = text("t table -q 1");
        assert!(missing.contains("[subcommands: create, help]"), "{missing}");
        let unknown = text("t table inser");
        assert!(unknown.contains("inser") && !unknown.contains("insert"), "{unknown}");
    }

    #[test]
    fn the_message_of_an_error_is_its_first_paragraph_on_one_line() {
        let text = "error: these are required:\n  <TABLE>\n  <FILE>\n\nUsage: t <TABLE>\n";

        assert_eq!(message(text), "these are required: <TABLE> <FILE>");
    }

    #[test]
    fn the_command_of_an_error_is_the_innermost_one() {
        let get = Command::new("get").subcommand(Command::new("more"));
        let mut root = Command::new("t").subcommand(Command::new("table").subcommand(get));
        root.build();

        let found = |line: &str| innermost(&root, &words(line)).get_name().to_owned();

        assert_eq!(found("t --flag table get orders"), "get");
        assert_eq!(found("t orders"), "t");
    }
}
