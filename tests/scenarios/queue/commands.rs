//! `trestle queue` against a server in a process of its own.

use std::process::{Command, Output};

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
async fn a_drained_queue_is_in_the_file_and_can_be_loaded_again() {
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
    let mut seen = Vec::new();
    while let received = again.receive(32, seconds(600)).await.unwrap()
        && !received.is_empty()
    {
        seen.extend(texts(&received).into_iter().map(str::to_owned));
    }
    let mut expected: Vec<_> = (0..150).map(|number| format!("m {number}\n\"\u{e9}\"")).collect();
    expected.push(String::new());
    assert_eq!(seen, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_send_receive_and_delete_and_say_why_they_fail() {
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

    for (args, code, said) in [
        (&["clear", "jobs"][..], 2, "--yes"),
        (&["send", "nothing", "a"], 3, "QUEUE_NOT_FOUND"),
        (&["create", "jobs"], 4, "QUEUE_ALREADY_EXISTS"),
        (&["delete", "jobs", "id", "receipt"], 2, "Invalid pop receipt format"),
    ] {
        let output = run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
        assert!(errors.contains(said), "{args:?}: {errors}");
    }
    lines(&run(&["clear", "jobs", "--yes"]));
    lines(&run(&["delete", "jobs", "--yes"]));
}
