//! The names of a verb and of a flag that mean the same are accepted by every command.

use trestle_tests::Server;

use crate::client::{Ended, bare, run, server, succeeds};

/// What the commands print for each name of a verb, which has to be the same.
fn same(server: &Server, noun: &[&str], verbs: &[&str], args: &[&str]) -> String {
    let printed = |verb: &&str| succeeds(server, &[noun, &[*verb], args].concat()).output;
    let all: Vec<String> = verbs.iter().map(printed).collect();
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{noun:?} {verbs:?}: {all:?}");
    all.into_iter().next().unwrap()
}

#[test]
fn lists_of_every_noun_are_printed_by_each_name_and_limited_by_one_flag() {
    let server = server();
    for name in ["one", "two"] {
        succeeds(&server, &["table", "create", name]);
        succeeds(&server, &["queue", "create", name]);
        succeeds(&server, &["blob", "container", "create", name]);
        succeeds(&server, &["log", "create", name]);
    }
    for noun in ["table", "queue", "log"] {
        let listed = same(&server, &[noun], &["list", "ls"], &["-o", "plain"]);
        assert!(listed.contains("one") && listed.contains("two"), "{noun}: {listed}");
    }
    let containers = same(&server, &["blob", "container"], &["list", "ls"], &["-o", "plain"]);
    assert!(containers.contains("one") && containers.contains("two"), "{containers}");
}

#[test]
fn one_thing_is_shown_and_deleted_by_each_name() {
    let server = server();
    for noun in ["table", "queue", "log"] {
        succeeds(&server, &[noun, "create", "things"]);
        let shown = same(&server, &[noun], &["get", "show"], &["things", "-o", "json"]);
        assert!(shown.contains("things"), "{noun}: {shown}");
        succeeds(&server, &[noun, "rm", "things", "--yes"]);
        assert_eq!(run(&server, &[noun, "get", "things"]).code, Some(3), "{noun}");
    }
    succeeds(&server, &["table", "create", "orders"]);
    succeeds(&server, &["entity", "insert", "orders", "p", "r", "--set", "a=1"]);
    let shown =
        same(&server, &["entity"], &["get", "show", "stat"], &["orders", "p", "r", "-o", "json"]);
    assert!(shown.contains("\"a\""), "{shown}");
    succeeds(&server, &["entity", "rm", "orders", "p", "r"]);
    assert_eq!(run(&server, &["entity", "show", "orders", "p", "r"]).code, Some(3));
}

#[test]
fn a_query_is_limited_and_filtered_by_each_name_of_its_flags() {
    let server = server();
    succeeds(&server, &["table", "create", "orders"]);
    for row in ["1", "2", "3"] {
        succeeds(&server, &["entity", "insert", "orders", "p", row, "--set", "a=x"]);
    }
    let rows = |args: &[&str]| {
        let output = succeeds(&server, &[&["entity", "query", "orders", "--json"], args].concat());
        output.output.lines().count()
    };

    assert_eq!((rows(&["--limit", "2"]), rows(&["-n", "2"])), (2, 2));
    let filter = "RowKey ge '2'";
    assert_eq!((rows(&["--filter", filter]), rows(&["--where", filter])), (2, 2));
    assert_eq!(rows(&["--where", filter, "-n", "1"]), 1);
}

#[test]
fn a_pair_without_its_flag_is_answered_with_the_flag() {
    let pair = Ended::of(bare(&["entity", "insert", "orders", "p", "r", "state=open"]));
    assert_eq!(pair.code, Some(2));
    assert!(pair.errors.contains("--set 'state=open'"), "{pair:?}");

    let unknown = Ended::of(bare(&["entity", "query", "orders", "--wher", "a eq 1"]));
    assert_eq!(unknown.code, Some(2));
    assert!(!unknown.errors.contains("-- --"), "{unknown:?}");
}

#[test]
fn completions_offer_the_names() {
    let script = Ended::of(bare(&["completions", "bash"])).output;
    for name in ["list", "ls", "show", "rm", "--where"] {
        assert!(script.contains(name), "{name}");
    }
}
