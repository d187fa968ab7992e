//! `trestle queue` against a server in a process of its own.

use std::process::{Command, Output};

use serde_json::{Value, json};
use trestle_tests::{Server, World, data, seconds, server_binary, text, texts};

/// Runs a client command; what it printed.
fn trestle(endpoint: &str, args: &[&str]) -> Output {
    let mut command = Command::new(server_binary());
    command.args(["queue", "--endpoint", endpoint]).args(args);
    command.output().expect("the client runs")
}

fn lines(output: &Output) -> Vec<String> {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {errors}", output.status);
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drained_queue_can_be_loaded_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("messages.jsonl");
    let file = file.to_str().unwrap();
    let path = directory.path().join("data");
    let server = Server::start(&["--data-dir", path.to_str().unwrap()], &[]);
    let endpoint = server.endpoint();
    let world = World::of(server).await;
    let queue = world.queue("jobs").await;
    for number in 0..150 {
        queue.send(text(&format!("m {number}\n\"\u{e9}\""))).await.unwrap();
    }
    queue.send(data(vec![0, 255])).await.unwrap();

    let drained = lines(&trestle(&endpoint, &["drain", "jobs", "--to", file, "--json"]));
    assert!(drained[0].contains("\"drained\":151"), "{drained:?}");
    assert_eq!(queue.count().await, 0);
    assert_eq!(lines(&trestle(&endpoint, &["create", "again"])), ["created queue again"]);
    let loaded = lines(&trestle(&endpoint, &["load", "again", file, "--json"]));
    assert!(loaded[0].contains("\"loaded\":151"), "{loaded:?}");

    let again = world.existing_queue("again");
    let mut delivered = Vec::new();
    while let received = again.receive(32, seconds(600)).await.unwrap()
        && !received.is_empty()
    {
        delivered.extend(texts(&received).into_iter().map(str::to_owned));
    }
    let mut expected: Vec<_> = (0..150).map(|number| format!("m {number}\n\"\u{e9}\"")).collect();
    expected.push(String::new());
    assert_eq!(delivered, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn properties_are_printed_as_set_and_unset_parts_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["--ephemeral"], &[]);
    let endpoint = server.endpoint();
    let file = |text: &str| {
        let path = directory.path().join("properties.json");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let set = |text: &str| trestle(&endpoint, &["properties", "set", &file(text)]);
    let get = || -> Value {
        let printed = lines(&trestle(&endpoint, &["properties", "get", "--json"]));
        assert_eq!(printed.len(), 1);
        serde_json::from_str(&printed[0]).unwrap()
    };
    let off = json!({ "enabled": false, "include_apis": false, "retention_days": null });

    lines(&set(r#"{"logging":{"write":true,"retention_days":7}}"#));
    let cors = json!([{
        "allowed_origins": ["*"], "allowed_methods": ["GET"], "allowed_headers": [],
        "exposed_headers": ["x-ms-meta-*"], "max_age_seconds": 60,
    }]);
    lines(&set(&json!({ "cors": cors }).to_string()));

    let all = json!({
        "logging": { "read": false, "write": true, "delete": false, "retention_days": 7 },
        "hour_metrics": off, "minute_metrics": off, "cors": cors,
    });
    assert_eq!(get(), all);
    let printed = lines(&trestle(&endpoint, &["properties", "get"])).join("\n");
    lines(&set(r#"{"cors":[],"logging":{},"hour_metrics":{"enabled":true}}"#));
    let cleared = get();
    assert_eq!((&cleared["cors"], &cleared["minute_metrics"]), (&json!([]), &off));
    assert_eq!(cleared["hour_metrics"]["enabled"], true);
    lines(&set(&printed));
    assert_eq!(get(), all, "what is printed can be set");

    for (text, expected) in [
        ("", "it ends before it is complete"),
        (r#"{"cors":{}}"#, "as `get` prints it"),
        (r#"{"loging":{}}"#, "loging: unknown field"),
        (
            r#"{"logging":{"retention_days":366}}"#,
            "logging.retention_days: must be 1 to 365: value=`366`",
        ),
        (&" ".repeat(300_000), "at most 262144 bytes"),
    ] {
        let output = set(text);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
    assert_eq!(get(), all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_send_receive_delete_and_report_errors() {
    let server = Server::start(&["--ephemeral"], &[]);
    let endpoint = server.endpoint();
    let run = |args: &[&str]| trestle(&endpoint, args);

    lines(&run(&["create", "jobs", "--metadata", "owner=me"]));
    lines(&run(&["send", "jobs", "a", "b"]));
    assert_eq!(lines(&run(&["peek", "jobs", "-n", "5", "--json"])).len(), 2);
    let received = lines(&run(&["receive", "jobs", "-n", "5", "--delete", "--json"]));
    assert!(received[0].contains("\"text\":\"a\""), "{received:?}");
    let stats = lines(&run(&["stats", "jobs", "--json"]));
    assert!(stats[0].contains("\"messages\":0"), "{stats:?}");

    for (args, code, expected) in [
        (&["clear", "jobs"][..], 2, "--yes"),
        (&["send", "nothing", "a"], 3, "QUEUE_NOT_FOUND"),
        (&["create", "jobs"], 4, "QUEUE_ALREADY_EXISTS"),
        (&["delete", "jobs", "id", "receipt"], 2, "Invalid pop receipt format"),
    ] {
        let output = run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
        assert!(errors.contains(expected), "{args:?}: {errors}");
    }
    lines(&run(&["clear", "jobs", "--yes"]));
    lines(&run(&["delete", "jobs", "--yes"]));
}
