//! What commands show of queues and messages.

use serde_json::Value;

use crate::client::{Ended, bare, run, server, succeeds};

#[test]
fn a_dead_letter_tells_where_it_comes_from_and_how_often_it_was_tried() {
    let server = server();
    succeeds(&server, &["queue", "create", "failed"]);
    let dead = ["--dead-letter", "failed", "--max-dequeue-count", "1"];
    succeeds(&server, &[&["queue", "create", "jobs"][..], &dead].concat());
    succeeds(&server, &["queue", "send", "jobs", "a job"]);
    let without = succeeds(&server, &["queue", "peek", "jobs"]).output;
    succeeds(&server, &["queue", "receive", "jobs", "--hidden", "1s"]);
    succeeds(&server, &["queue", "receive", "jobs", "--wait", "3s"]);

    let peeked = succeeds(&server, &["queue", "peek", "failed"]).output;

    let header = peeked.lines().nth(1).unwrap();
    assert!(header.contains("From") && header.contains("Tried"), "{peeked}");
    let row = peeked.lines().nth(3).unwrap();
    let cells: Vec<_> = row.split(['│', '┆']).map(str::trim).collect();
    assert!(cells.contains(&"jobs") && cells.contains(&"1"), "{peeked}");
    assert!(!without.contains("From") && !without.contains("Tried"), "{without}");
    let moved = succeeds(&server, &["queue", "redrive", "failed"]).output;
    assert_eq!(moved, "moved 1 message\n");
}

#[test]
fn the_settings_of_a_queue_are_shown() {
    let server = server();
    succeeds(&server, &["queue", "create", "failed"]);
    let settings = [
        "--dead-letter",
        "failed",
        "--max-dequeue-count",
        "3",
        "--deduplication-window",
        "5m",
        "--metadata",
        "owner=me",
    ];
    succeeds(&server, &[&["queue", "create", "jobs"][..], &settings].concat());

    let stats = succeeds(&server, &["queue", "stats", "jobs"]).output;
    let json = succeeds(&server, &["queue", "stats", "jobs", "--json"]).output;
    let list = succeeds(&server, &["queue", "list", "--prefix", "jobs", "--json"]).output;

    for said in ["failed", "after 3 deliveries", "300 s", "owner=me"] {
        assert!(stats.contains(said), "{said}: {stats}");
    }
    for json in [json, list] {
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["dead_letter"], "failed", "{json}");
        assert_eq!(json["max_dequeue_count"], 3, "{json}");
        assert_eq!(json["deduplication_window_seconds"], 300, "{json}");
        assert_eq!(json["metadata"]["owner"], "me", "{json}");
    }
}

#[test]
fn help_of_queues_speaks_of_queues() {
    for command in ["send", "drain", "stats"] {
        let help = Ended::of(bare(&["queue", command, "--help"])).output;
        assert!(help.contains("no such queue or message"), "{help}");
        assert!(!help.contains("entity") && !help.contains("rows"), "{help}");
    }
    let help = Ended::of(bare(&["queue", "properties", "set", "--help"])).output;
    assert!(help.contains("\"allowed_origins\""), "{help}");
}

#[test]
fn deleting_and_clearing_a_queue_unasked_names_it_and_deletes_nothing() {
    let server = server();
    succeeds(&server, &["queue", "create", "jobs"]);

    for command in ["delete", "clear"] {
        let refused = run(&server, &["queue", command, "jobs"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.errors.contains("repeat with --yes: queue=`jobs`"), "{refused:?}");
    }
    succeeds(&server, &["queue", "stats", "jobs"]);
}
