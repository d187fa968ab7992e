//! The output of commands on queues and messages.

use serde_json::Value;

use crate::client::{Ended, bare, run, server, succeeds};

#[test]
fn a_dead_letter_is_shown_with_its_source_queue_and_dequeue_count() {
    let server = server();
    succeeds(&server, &["queue", "create", "failed"]);
    let dead = ["--dead-letter", "failed", "--max-dequeue-count", "1"];
    succeeds(&server, &[&["queue", "create", "jobs"][..], &dead].concat());
    succeeds(&server, &["queue", "send", "jobs", "a job"]);
    let without = succeeds(&server, &["queue", "peek", "jobs", "-o", "table"]).output;
    succeeds(&server, &["queue", "receive", "jobs", "--visibility-timeout", "1s"]);
    succeeds(&server, &["queue", "receive", "jobs", "--wait", "3s"]);

    let peeked = succeeds(&server, &["queue", "peek", "failed", "-o", "table"]).output;

    let row = peeked.lines().find(|row| row.contains("│ Dead letter origin ")).expect(&peeked);
    let cells: Vec<_> = row.split(['│', '┆']).map(str::trim).collect();
    assert!(cells.contains(&"queue=jobs, dequeue_count=1"), "{peeked}");
    assert!(!without.contains("Dead letter origin"), "{without}");
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

    let stats = succeeds(&server, &["queue", "stats", "jobs", "-o", "table"]).output;
    let json = succeeds(&server, &["queue", "stats", "jobs", "--json"]).output;
    let list = succeeds(&server, &["queue", "list", "--prefix", "jobs", "--json"]).output;

    for (name, value) in [
        ("Dead letter", "failed"),
        ("Max dequeue count", "3"),
        ("Deduplication window seconds", "300"),
        ("Metadata", "owner=me"),
    ] {
        let row = stats.lines().find(|row| row.contains(&format!("│ {name} ")));
        let row = row.unwrap_or_else(|| panic!("{name}: {stats}"));
        assert!(row.contains(&format!("┆ {value} ")), "{row}");
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
fn help_of_queue_commands_has_the_exit_codes_of_queues() {
    for command in ["send", "drain", "stats"] {
        let help = Ended::of(bare(&["queue", command, "--help"])).output;
        assert!(help.contains("no such queue or message"), "{help}");
        assert!(!help.contains("entity") && !help.contains("rows"), "{help}");
    }
    let help = Ended::of(bare(&["queue", "properties", "set", "--help"])).output;
    assert!(help.contains("\"allowed_origins\""), "{help}");
}

#[test]
fn deleting_or_clearing_a_queue_needs_confirmation() {
    let server = server();
    succeeds(&server, &["queue", "create", "jobs"]);

    for command in ["delete", "clear"] {
        let rejected = run(&server, &["queue", command, "jobs"]);
        assert_eq!(rejected.code, Some(2), "{rejected:?}");
        assert!(rejected.errors.contains("repeat with --yes: queue=`jobs`"), "{rejected:?}");
    }
    succeeds(&server, &["queue", "stats", "jobs"]);
}
