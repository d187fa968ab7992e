//! Drains: of missing queues, of queues with invisible messages, and interrupted.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    path::Path,
    process::{Child, Stdio},
};

use rustix::process::Signal;
use tempfile::tempdir;
use trestle_tests::Server;

use crate::client::{
    Ended, becomes, interrupt, messages, pipe, run, send, server, spawned, succeeds, trestle, wait,
};

/// More of one receive than the buffer of a pipe holds.
const LARGE: usize = 40;
const RECEIVED: u64 = 32;

#[test]
fn a_drain_to_standard_output_prints_only_messages() {
    let server = server();
    succeeds(&server, &["queue", "create", "jobs"]);
    succeeds(&server, &["queue", "send", "jobs", "a", "b"]);
    let directory = tempdir().unwrap();

    let mut command = trestle(&server, &["queue", "drain", "jobs", "--to", "-"]);
    let drained = Ended::of({
        command.current_dir(directory.path());
        command
    });

    assert_eq!(drained.code, Some(0), "{drained:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "no file of that name");
    let texts: Vec<_> = drained.output.lines().map(text_of).collect();
    assert_eq!(texts, ["a", "b"]);
    assert_eq!(drained.errors, "drained 2 messages to standard output\n");
    assert_eq!(messages(&server, "jobs"), 0);
}

fn text_of(line: &str) -> String {
    let object: serde_json::Value = serde_json::from_str(line).unwrap();
    object["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_drain_of_a_missing_queue_creates_no_file() {
    let (server, directory) = (server(), tempdir().unwrap());
    let file = directory.path().join("drained.jsonl");
    let drain = ["queue", "drain", "nosuch", "--to", file.to_str().unwrap()];

    let rejected = run(&server, &drain);
    let existed = file.exists();
    fs::write(&file, "kept\n").unwrap();
    run(&server, &drain);

    assert_eq!(rejected.code, Some(3), "{rejected:?}");
    assert!(!rejected.errors.contains("hint:"), "{rejected:?}");
    assert!(!existed, "an empty file was left");
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept\n");
}

#[test]
fn a_drain_reports_the_number_of_invisible_messages() {
    let (server, directory) = (server(), tempdir().unwrap());
    let file = directory.path().join("drained.jsonl");
    succeeds(&server, &["queue", "create", "jobs"]);
    succeeds(&server, &["queue", "send", "jobs", "a", "b", "c"]);
    succeeds(&server, &["queue", "receive", "jobs", "--limit", "2", "--visibility-timeout", "5m"]);
    let drain = ["queue", "drain", "jobs", "--to", file.to_str().unwrap()];

    let first = succeeds(&server, &drain);
    let second = succeeds(&server, &[&drain[..], &["--json"]].concat());

    let text = format!(
        "drained 1 message to {}; 2 messages invisible or new in the queue\n",
        file.display()
    );
    assert_eq!(first.output, text);
    assert!(second.output.contains("\"drained\":0"), "{second:?}");
    assert!(second.output.contains("\"left\":2"), "{second:?}");
}

/// A drain that hangs, because the pipe that it writes to has no reader.
fn hanging(server: &Server, fifo: &Path) -> (Child, File) {
    pipe(fifo);
    succeeds(server, &["queue", "create", "jobs"]);
    let mut load = trestle(server, &["queue", "load", "jobs", "-", "--text"]);
    let mut load = load.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let lines = format!("{}\n", "x".repeat(48 * 1024)).repeat(LARGE);
    load.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(load.wait().unwrap().success());
    let child = spawned(server, &["queue", "drain", "jobs", "--to", fifo.to_str().unwrap()]);
    let reader = File::open(fifo).unwrap();
    let is_received = || {
        let peeked = succeeds(server, &["queue", "peek", "jobs", "-n", "32", "--json"]);
        LARGE - peeked.output.lines().count() == usize::try_from(RECEIVED).unwrap()
    };
    assert!(becomes(is_received), "the drain has received");
    (child, reader)
}

#[test]
fn an_interrupted_or_terminated_drain_makes_unwritten_messages_visible() {
    for (signal, code, text) in
        [(Signal::INT, 130, "error: interrupted"), (Signal::TERM, 143, "error: terminated")]
    {
        let (server, directory) = (server(), tempdir().unwrap());
        let (child, reader) = hanging(&server, &directory.path().join("pipe"));

        send(&child, signal);
        let ended = wait(child);

        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.errors.contains(text), "{ended:?}");
        assert!(ended.errors.contains("0 messages drained"), "{ended:?}");
        drop(reader);
        let out = succeeds(&server, &["queue", "drain", "jobs", "--to", "-"]).output;
        assert_eq!(out.lines().count(), LARGE, "all of them are to be had at once");
    }
}

#[test]
fn a_drain_that_cannot_release_messages_reports_how_many_and_until_when() {
    let (server, directory) = (server(), tempdir().unwrap());
    let (child, _reader) = hanging(&server, &directory.path().join("pipe"));

    server.kill();
    send(&child, Signal::TERM);
    let ended = wait(child);

    assert_eq!(ended.code, Some(143), "{ended:?}");
    let text = "hint: repeat it later: 32 messages invisible until 2";
    assert!(ended.errors.contains(text), "{ended:?}");
}

#[test]
fn an_interrupted_drain_writes_no_message_twice() {
    const MESSAGES: usize = 3000;
    let (server, directory) = (server(), tempdir().unwrap());
    let (file, texts) = (directory.path().join("drained.jsonl"), directory.path().join("texts"));
    let lines: Vec<_> = (0..MESSAGES).map(|number| number.to_string()).collect();
    fs::write(&texts, lines.join("\n")).unwrap();
    succeeds(&server, &["queue", "create", "jobs"]);
    succeeds(&server, &["queue", "load", "jobs", texts.to_str().unwrap(), "--text"]);
    let drain = ["queue", "drain", "jobs", "--to", file.to_str().unwrap()];
    let length = || fs::metadata(&file).map_or(0, |found| found.len());

    // Interrupted while it writes, since each line is on stable storage before the next receive.
    for _ in 0..20 {
        let before = length();
        let child = spawned(&server, &drain);
        becomes(|| length() > before);
        interrupt(&child);
        wait(child);
    }
    succeeds(&server, &drain);

    let written = fs::read_to_string(&file).unwrap();
    let mut written: Vec<_> = written.lines().map(text_of).collect();
    written.sort_by_key(|text| text.parse::<usize>().unwrap());
    assert_eq!(written, lines);
}

#[test]
fn a_drain_into_a_closed_pipe_fails_and_makes_unread_messages_visible() {
    let (server, directory) = (server(), tempdir().unwrap());
    let (child, reader) = hanging(&server, &directory.path().join("pipe"));

    drop(reader);
    let ended = wait(child);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    for text in ["the reader closed it", "0 messages drained"] {
        assert!(ended.errors.contains(text), "{text}: {ended:?}");
    }
    let out = succeeds(&server, &["queue", "drain", "jobs", "--to", "-"]).output;
    assert_eq!(out.lines().count(), LARGE, "all of them are to be had at once");
}

#[test]
fn a_drain_disconnected_from_its_server_reports_its_progress() {
    let (server, directory) = (server(), tempdir().unwrap());
    let (child, mut reader) = hanging(&server, &directory.path().join("pipe"));
    let endpoint = server.endpoint();

    server.kill();
    let read = std::thread::spawn(move || reader.read_to_end(&mut Vec::new()));
    let ended = wait(child);

    assert_eq!(ended.code, Some(5), "{ended:?}");
    for text in [&endpoint[..], "0 messages drained", "32 messages invisible until 2"] {
        assert!(ended.errors.contains(text), "{text}: {ended:?}");
    }
    assert!(!ended.errors.contains("nothing was sent"), "{ended:?}");
    read.join().unwrap().unwrap();
}
