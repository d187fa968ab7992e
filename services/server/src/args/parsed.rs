//! The command line as it is parsed: values that begin with a dash, and variables without a value.

use std::{env, ffi::OsString};

use clap::{Arg, Command};

/// The name of a value that is a time.
const TIME: &str = "TIME";

/// The command where a value may be a negative number: it is rejected with the rule of its argument.
pub(super) fn accepts_negative_numbers(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let takes_values = arg.get_action().takes_values();
        arg.allow_negative_numbers(takes_values)
    });
    command.mut_subcommands(accepts_negative_numbers)
}

/// The words with each negative time in one word with its argument: the parser reads `-1h` as other arguments, and
/// where it accepts any word with a dash, it accepts a following argument as a value too.
pub(super) fn with_negative_times(command: &Command, words: &[OsString]) -> Vec<OsString> {
    let times: Vec<_> =
        command.get_arguments().filter(|arg| has_time(arg)).flat_map(names).collect();
    let mut joined: Vec<OsString> = Vec::with_capacity(words.len());
    let mut is_option = true;
    for word in words {
        is_option &= word != "--";
        match joined.last_mut() {
            Some(last)
                if is_option
                    && is_negative(word)
                    && times.iter().any(|name| last == name.as_str()) =>
            {
                last.push("=");
                last.push(word);
            }
            _ => joined.push(word.clone()),
        }
    }
    joined
}

fn has_time(arg: &Arg) -> bool {
    arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == TIME))
}

/// The long names of an argument, with their dashes.
fn names(arg: &Arg) -> impl Iterator<Item = String> {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    arg.get_long().into_iter().chain(aliases).map(|name| format!("--{name}"))
}

fn is_negative(word: &OsString) -> bool {
    let number = word.to_str().and_then(|word| word.strip_prefix('-'));
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// The command without the variables that are set to an empty text, which is how a template of a container leaves out
/// a value.
#[expect(clippy::disallowed_methods, reason = "the parser has no call for the value of a variable")]
pub(super) fn without_empty_variables(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let variable = arg.get_env().and_then(env::var_os);
        if variable.is_some_and(|value| value.is_empty()) { arg.env(None::<&str>) } else { arg }
    });
    command.mut_subcommands(without_empty_variables)
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    #[test]
    fn a_negative_time_is_joined_with_its_argument_and_no_other_word_is() {
        let time = |name: &'static str| Arg::new(name).long(name).value_name(TIME);
        let command = Command::new("t")
            .args([time("since"), time("wait").alias("delay")])
            .arg(Arg::new("limit").long("limit").value_name("N"))
            .arg(Arg::new("json").long("json").action(ArgAction::SetTrue));

        for (words, expected) in [
            ("t --since -1h a", "t --since=-1h a"),
            ("t --delay -1 --since -2d", "t --delay=-1 --since=-2d"),
            ("t --wait --limit 3", "t --wait --limit 3"),
            ("t --wait -q", "t --wait -q"),
            ("t --wait 1s -1s", "t --wait 1s -1s"),
            ("t --limit -1 --json -1h", "t --limit -1 --json -1h"),
            ("t --since=1h -1", "t --since=1h -1"),
            ("t -- --since -1h", "t -- --since -1h"),
            ("t --since", "t --since"),
        ] {
            let words: Vec<_> = words.split(' ').map(OsString::from).collect();
            let joined = with_negative_times(&command, &words).join(" ".as_ref());
            assert_eq!(joined, expected);
        }
    }
}
