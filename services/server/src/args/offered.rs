//! The command line as completions offer it.

/// A command without the commands and the arguments that its help does not list, such as earlier spellings. The parser
/// has no call that removes one, so each command is made again.
pub(super) fn listed_only(command: &clap::Command) -> clap::Command {
    let is_offered = |arg: &clap::Arg| {
        // The parser adds these by itself.
        !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version")
    };
    let arguments: Vec<_> = command.get_arguments().filter(|arg| is_offered(arg)).collect();
    let has = |id: &&clap::Id| arguments.iter().any(|arg| arg.get_id() == *id);
    let group = |group: &clap::ArgGroup| {
        let ids = group.get_args().filter(has).cloned();
        clap::ArgGroup::new(group.get_id().clone()).args(ids).multiple(true)
    };
    let listed = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    let names: Vec<_> = command.get_visible_aliases().map(str::to_owned).collect();
    clap::Command::new(command.get_name().to_owned())
        .visible_aliases(names)
        .about(command.get_about().cloned().unwrap_or_default())
        .version(env!("CARGO_PKG_VERSION"))
        .groups(command.get_groups().map(group))
        .args(arguments.iter().copied().cloned())
        .disable_help_subcommand(true)
        .subcommands(listed.filter(|inner| inner.get_name() != "help").map(listed_only))
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn what_help_does_not_list_is_not_offered() {
        let old = Command::new("old").hide(true);
        let inner = Command::new("inner").about("inner one").arg(Arg::new("flag").long("flag"));
        let inner = inner.arg(Arg::new("unlisted").long("unlisted").hide(true));
        let inner = inner.subcommand(Command::new("kept")).subcommand(old.clone());

        let offered = listed_only(&Command::new("root").subcommand(inner).subcommand(old));

        let of_root: Vec<_> = offered.get_subcommands().map(Command::get_name).collect();
        assert_eq!(of_root, ["inner"]);
        let inner = offered.find_subcommand("inner").unwrap();
        let of_inner: Vec<_> = inner.get_subcommands().map(Command::get_name).collect();
        assert_eq!(of_inner, ["kept"]);
        let flags: Vec<_> = inner.get_arguments().filter_map(Arg::get_long).collect();
        assert_eq!(flags, ["flag"]);
        assert_eq!(inner.get_about().unwrap().to_string(), "inner one");
    }
}
