//! Numbers and times out of their ranges.

use super::*;

#[test]
fn numbers_and_times_are_rejected_with_their_range() {
    let times = "must be 1ms to 36500d";
    for (args, rule) in [
        (&["entity", "query", "t", "--limit", "99999999999"][..], "0 to 4294967295"),
        (&["entity", "query", "t", "--top", "-1"], "must be a whole number, 0 to 4294967295"),
        (&["log", "read", "s", "--limit", "0"], "must be a whole number, 1 to "),
        (&["log", "tail", "s", "-n", "99999999999"], "must be a whole number, 0 to 10000"),
        (&["log", "append", "s", "--batch", "0"], "must be a whole number, 1 to 4294967295"),
        (&["log", "append", "s", "--utc-offset", "+99:99"], "must be -23:59 to +23:59"),
        (&["blob", "cat", "c/b", "--offset", "x"], "must be a whole number, 0 to "),
        (&["blob", "lease", "break", "c/b", "--period", "61"], "must be a whole number, 0 to 60"),
        (&["blob", "protection", "--keep-deleted", "366"], "1 to 365, or `off`"),
        (&["queue", "create", "q", "--max-dequeue-count", "0"], "1 to 1000"),
        (&["import", "azurite", ".", "--parallel", "0"], "must be a whole number, 1 to 1024"),
        (&["table", "list", "--timeout", "100000000000d"], times),
        (&["table", "list", "--timeout", "99999999999999999999s"], times),
        (&["table", "list", "--timeout", "-1s"], times),
        (&["bench", "table", "--duration", "-5s"], times),
        (&["message", "receive", "q", "--wait", "5000000d"], "must be 0s to 20s: "),
        (&["message", "receive", "q", "--wait", "-1s"], "must be 0s to 20s: "),
        (
            &["message", "receive", "q", "--wait", "--limit", "3"],
            "a value is required for '--wait <TIME>'",
        ),
        (&["message", "receive", "q", "--visibility-timeout", "0s"], "must be 1s to 7d: "),
        (&["message", "send", "q", "a", "--visibility-timeout", "-1s"], "must be 0s to 7d: "),
        (&["message", "extend", "q", "i", "r", "--visibility-timeout", "8d"], "must be 0s to 7d: "),
        (&["message", "send", "q", "a", "--ttl", "1.5s"], "must be 1s to 36500d: "),
        (&["message", "send", "q", "a", "--ttl", "-1s"], "must be 1s to 36500d: "),
        (&["queue", "create", "q", "--deduplication-window", "0s"], "must be 1s to 7d: "),
        (&["log", "create", "s", "--roll-age", "2d"], "must be 1s to 1d: "),
        (&["log", "create", "s", "--retention", "1s"], "must be 1m to 36500d: "),
        (&["log", "update", "s", "--retention", "1s"], "or `off`"),
        (&["log", "read", "s", "--since", "-1h"], "must be a time ago, such as 15m"),
        (&["log", "segments", "s", "--until", "-1h"], "must be a time ago, such as 15m"),
        (&["sas", "explain", "--from", "banana", "--over", "http"], "must be an IP address"),
    ] {
        let errors = usage(args);
        assert!(errors.contains(rule), "{args:?}: {errors}");
        for foreign in ["target type", "tip:", "invalid digit", "is not in", "input is"] {
            assert!(!errors.contains(foreign), "{args:?}: {errors}");
        }
    }
}

#[test]
fn the_shortest_and_the_longest_times_are_accepted() {
    let server = server();
    succeeds(&server, &["queue", "create", "jobs"]);
    let send = ["message", "send", "jobs", "a", "--visibility-timeout"];

    succeeds(&server, &["table", "list", "--timeout", "36500d"]);
    succeeds(&server, &["message", "receive", "jobs", "--wait", "0s"]);
    succeeds(&server, &[&send[..], &["0s", "--ttl", "1s"]].concat());
    succeeds(&server, &[&send[..], &["7d", "--ttl", "36500d"]].concat());
    succeeds(&server, &["message", "send", "jobs", "a"]);
    let receive = ["message", "receive", "jobs", "--visibility-timeout", "7d", "--wait", "20s"];
    succeeds(&server, &receive);
}

#[test]
fn a_negative_expiry_is_rejected_with_its_rule() {
    let mut sas = bare(&["sas", "queue", "jobs", "--permissions", "r", "--expiry", "-1h"]);
    sas.env("TRESTLE_ACCOUNT", "shop").env("TRESTLE_ACCOUNT_KEY", "YWJj");

    let ended = Ended::of(sas);

    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.errors.contains("--expiry: must be 30m, 8h or 7d from now on"), "{ended:?}");
}

#[test]
fn a_range_of_times_that_ends_before_it_begins_is_rejected_before_a_call() {
    let server = server();

    // A call would find that there is no such stream.
    for (verb, since, until) in [
        ("read", "1h", "2h"),
        ("read", "1h", "1h"),
        ("read", "2026-01-31", "2026-01-30T23:59:59Z"),
        ("segments", "1h", "2h"),
    ] {
        let ended = run(&server, &["log", verb, "app", "--since", since, "--until", until]);

        assert_eq!(ended.code, Some(2), "{ended:?}");
        let rule = "error: --until: must be after --since: since=`20";
        assert!(ended.errors.starts_with(rule), "{ended:?}");
    }
}
