use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

#[test]
fn the_command_that_words_name_has_the_same_arguments_as_among_all() {
    for line in [
        "trestle serve --data-dir d --ephemeral=false",
        "trestle serve --ephemeral",
        "trestle table ls --json",
        "trestle table list -n 3 --endpoint http://h:1 --timeout 3s",
        "trestle entity query t --where a eq -o jsonl",
        "trestle -q entity get t serve table",
        "trestle message send q -- --help",
        "trestle log read s --since -1h",
        "trestle log read s --since=-1h --limit 3",
        "trestle backup list ./b",
        "trestle context set x --endpoint http://h:1",
        "trestle healthcheck --endpoint http://h:1",
        "trestle config check --roles gateway",
        "trestle version",
        "trestle version -o csv",
        "trestle version --endpoint http://h:1",
        "trestle entity get t serve",
        "trestle table lst",
        "trestle tabel list",
        "trestle table list --help",
        "trestle help table",
        "trestle",
    ] {
        let words = words(line);
        let mut all = accepts_negative_numbers(Cli::complete());
        let joined = with_negative_times(&usage::innermost(&all, &words), &words);
        let of_all = Cli::parse_words(&mut all, &joined).ok();

        let named = Cli::of_right_words(&words);

        assert_eq!(format!("{named:?}"), format!("{of_all:?}"), "{line}");
    }
}
