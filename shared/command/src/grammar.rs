//! One grammar for all commands: the names of a verb and of a flag that mean the same are accepted everywhere.

use clap::{Arg, Command};

/// The names of each verb. A command has one of them, and accepts the others.
pub const VERBS: [&[&str]; 3] = [&["list", "ls"], &["get", "show", "stat"], &["delete", "rm"]];

/// A flag, with its short name and its other long names.
struct CommonFlag {
    long: &'static str,
    short: Option<char>,
    others: &'static [&'static str],
}

/// The flags that have one meaning in all commands.
const FLAGS: [CommonFlag; 3] = [
    CommonFlag { long: "limit", short: Some('n'), others: &[] },
    CommonFlag { long: "follow", short: Some('f'), others: &[] },
    CommonFlag { long: "filter", short: None, others: &["where"] },
];

/// The command, and all commands in it, with the other names of their verbs and flags. A name that another verb or
/// flag beside it has remains that one's.
#[must_use]
pub fn with_common_names(command: Command) -> Command {
    let command = with_flags(command);
    let names = command.get_subcommands().flat_map(verb_names);
    let mut used: Vec<String> = names.map(str::to_owned).collect();
    command.mut_subcommands(|inner| with_common_names(with_verbs(inner, &mut used)))
}

/// Every name of a command.
fn verb_names(command: &Command) -> impl Iterator<Item = &str> {
    std::iter::once(command.get_name()).chain(command.get_all_aliases())
}

/// Of several verbs that mean the same beside each other, the first one has the other names.
fn with_verbs(command: Command, used: &mut Vec<String>) -> Command {
    let synonyms = VERBS.iter().find(|names| names.contains(&command.get_name()));
    let names = synonyms.into_iter().flat_map(|names| names.iter().copied());
    let unused: Vec<_> = names.filter(|name| !used.iter().any(|it| it == name)).collect();
    used.extend(unused.iter().map(|name| (*name).to_owned()));
    command.visible_aliases(unused)
}

fn with_flags(command: Command) -> Command {
    let shorts: Vec<char> = command.get_arguments().filter_map(Arg::get_short).collect();
    let longs = command.get_arguments().flat_map(flag_names);
    let longs: Vec<String> = longs.map(str::to_owned).collect();
    command.mut_args(|arg| {
        let Some(flag) = FLAGS.iter().find(|flag| arg.get_long() == Some(flag.long)) else {
            return arg;
        };
        let others = flag.others.iter().filter(|name| !longs.iter().any(|it| it == *name));
        let others: Vec<_> = others.copied().collect();
        let arg = arg.visible_aliases(others);
        match flag.short.filter(|short| !shorts.contains(short)) {
            Some(short) => arg.short(short),
            None => arg,
        }
    })
}

/// Every long name of a flag.
fn flag_names(arg: &Arg) -> Vec<&str> {
    arg.get_long().into_iter().chain(arg.get_all_aliases().unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Command {
        let limit = || Arg::new("limit").long("limit");
        let filter = Arg::new("filter").long("filter");
        let stats = Command::new("stats");
        let query = Command::new("query").args([limit(), filter]);
        let noun = Command::new("noun").subcommands([
            Command::new("ls").arg(limit()).arg(Arg::new("name").short('n')),
            Command::new("get"),
            Command::new("stat"),
            stats,
            query,
            Command::new("delete"),
        ]);
        with_common_names(Command::new("t").subcommand(noun))
    }

    fn parsed(line: &str) -> Option<String> {
        let matches = tree().try_get_matches_from(line.split(' ')).ok()?;
        let (_, noun) = matches.subcommand()?;
        noun.subcommand_name().map(str::to_owned)
    }

    #[test]
    fn a_verb_is_found_by_each_of_its_names_in_commands_at_any_depth() {
        for (line, expected) in [
            ("t noun list", "ls"),
            ("t noun ls", "ls"),
            ("t noun show", "get"),
            ("t noun rm", "delete"),
            ("t noun delete", "delete"),
            ("t noun stats", "stats"),
        ] {
            assert_eq!(parsed(line).as_deref(), Some(expected), "{line}");
        }
        assert_eq!(parsed("t noun remove"), None);
    }

    #[test]
    fn a_name_that_another_verb_or_flag_has_remains_its_own() {
        assert_eq!(parsed("t noun stat").as_deref(), Some("stat"));
        assert_eq!(parsed("t noun get").as_deref(), Some("get"));
        let name = tree().try_get_matches_from(["t", "noun", "ls", "-n", "5"]).unwrap();
        let (_, noun) = name.subcommand().unwrap();
        let (_, list) = noun.subcommand().unwrap();

        assert_eq!(list.get_one::<String>("limit"), None);
        assert_eq!(list.get_one::<String>("name").map(String::as_str), Some("5"));
    }

    #[test]
    fn a_flag_is_found_by_each_of_its_names() {
        let line = ["t", "noun", "query", "-n", "5", "--where", "a eq 1"];
        let matches = tree().try_get_matches_from(line).unwrap();
        let (_, noun) = matches.subcommand().unwrap();
        let (_, query) = noun.subcommand().unwrap();

        assert_eq!(query.get_one::<String>("limit").map(String::as_str), Some("5"));
        assert_eq!(query.get_one::<String>("filter").map(String::as_str), Some("a eq 1"));
    }
}
