//! Interrupted loads and imports: no accidental restart, and no resume with another file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use trestle_tests::Server;

use crate::client::{Ended, run, server, succeeds};

const ROWS: [&str; 3] = [
    r#"{"PartitionKey":"p","RowKey":"1","n":1}"#,
    r#"{"PartitionKey":"p","RowKey":"2","n":2}"#,
    r#"{"PartitionKey":"p","RowKey":"3","n":3}"#,
];
const LINES: [&str; 3] = [r#"{"text":"one"}"#, r#"{"text":"two"}"#, r#"{"text":"three"}"#];
/// The hash of no bytes, as a checkpoint holds it.
const HASH_OF_NOTHING: &str = "99aa06d3014798d86001c324468d497f";

/// A file whose third line is malformed, and a command that stopped at it.
struct Stopped {
    server: Server,
    _directory: TempDir,
    file: PathBuf,
    checkpoint: PathBuf,
    command: Vec<String>,
    lines: [&'static str; 3],
}

impl Stopped {
    fn load() -> Self {
        Self::at_third(["queue", "load", "jobs"], LINES, "lines.jsonl.trestle-load")
    }

    fn import() -> Self {
        Self::at_third(["table", "import", "jobs"], ROWS, "lines.jsonl.trestle-import")
    }

    fn at_third(command: [&str; 3], lines: [&'static str; 3], checkpoint: &str) -> Self {
        let (server, directory) = (server(), tempdir().unwrap());
        succeeds(&server, &[command[0], "create", "jobs"]);
        let path = |name: &str| directory.path().join(name);
        let (file, checkpoint) = (path("lines.jsonl"), path(checkpoint));
        let command = command.into_iter().chain([file.to_str().unwrap()]);
        let command = command.map(str::to_owned).collect();
        let stopped = Self { server, _directory: directory, file, checkpoint, command, lines };
        stopped.write([lines[0], lines[1], "oops"]);
        let ended = stopped.run(&[]);
        assert!(ended.errors.contains(":3"), "{ended:?}");
        assert!(ended.errors.contains("--resume"), "{ended:?}");
        assert!(stopped.checkpoint.exists());
        stopped
    }

    fn write(&self, lines: [&str; 3]) {
        fs::write(&self.file, format!("{}\n", lines.join("\n"))).unwrap();
    }

    fn run(&self, more: &[&str]) -> Ended {
        let command = self.command.iter().map(String::as_str);
        run(&self.server, &command.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    fn object(&self) -> Value {
        serde_json::from_slice(&fs::read(&self.checkpoint).unwrap()).unwrap()
    }
}

/// Resets the checkpoint of a load to its start, as it is while the first batch is pending.
fn put_back(stopped: &Stopped) {
    let mut saved = stopped.object();
    saved["state"]["sent"] = json!({ "byte": 0, "line": 0, "row": 0 });
    saved["source_hash"] = json!(HASH_OF_NOTHING);
    fs::write(&stopped.checkpoint, saved.to_string()).unwrap();
}

/// The messages of a queue in their order; they are short.
fn texts(server: &Server) -> Vec<String> {
    let peeked = succeeds(server, &["queue", "peek", "jobs", "-n", "32", "--json"]).output;
    let line = |line: &str| serde_json::from_str::<Value>(line).unwrap()["text"].clone();
    peeked.lines().map(|text| line(text).as_str().unwrap().to_owned()).collect()
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn an_interrupted_command_is_not_restarted_without_resume() {
    for (stopped, what) in [(Stopped::load(), "load"), (Stopped::import(), "import")] {
        let checkpoint = fs::read(&stopped.checkpoint).unwrap();
        stopped.write(stopped.lines);

        let again = stopped.run(&[]);

        assert_eq!(again.code, Some(2), "{again:?}");
        let text = format!(
            "an interrupted {what} was found: `{}`: continue with --resume, or remove it",
            name(&stopped.checkpoint)
        );
        assert!(again.errors.contains(&text), "{again:?}");
        assert!(
            fs::read(&stopped.checkpoint).unwrap() == checkpoint,
            "the checkpoint is unchanged"
        );
        let resumed = stopped.run(&["--resume"]);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
        assert!(!stopped.checkpoint.exists());
    }
}

#[test]
fn resume_without_a_checkpoint_starts_from_the_beginning() {
    for (stopped, what) in [(Stopped::load(), "load"), (Stopped::import(), "import")] {
        fs::remove_file(&stopped.checkpoint).unwrap();
        stopped.write(stopped.lines);

        let mode: &[&str] = if what == "import" { &["--mode", "replace"] } else { &[] };
        let begun = stopped.run(&[&["--resume"][..], mode].concat());

        assert_eq!(begun.code, Some(0), "{begun:?}");
        let text = format!("no interrupted {what} was found; starting from the beginning\n");
        assert!(begun.errors.starts_with(&text), "{begun:?}");
    }
}

#[test]
fn a_file_that_changed_before_the_checkpoint_is_not_resumed() {
    for stopped in [Stopped::load(), Stopped::import()] {
        let other = stopped.lines[0].replace("one", "eno").replace("\"n\":1", "\"n\":7");
        assert_eq!(other.len(), stopped.lines[0].len());
        let before = fs::read(&stopped.checkpoint).unwrap();

        stopped.write([&other, stopped.lines[1], "oops"]);
        let changed = stopped.run(&["--resume"]);
        fs::write(&stopped.file, "{}\n").unwrap();
        let shorter = stopped.run(&["--resume"]);

        for rejected in [changed, shorter] {
            assert_eq!(rejected.code, Some(2), "{rejected:?}");
            let text = "has changed before the position where it was interrupted";
            assert!(rejected.errors.contains(text), "{rejected:?}");
            assert!(rejected.errors.contains(name(&stopped.checkpoint)), "{rejected:?}");
        }
        assert!(fs::read(&stopped.checkpoint).unwrap() == before, "the checkpoint is unchanged");
        stopped.write(stopped.lines);
        let resumed = stopped.run(&["--resume", "--json"]);
        assert_eq!(resumed.code, Some(0), "fixed behind that position: {resumed:?}");
        assert!(resumed.output.contains(":2"), "resumed after line 2: {resumed:?}");
    }
}

#[test]
fn rejects_a_checkpoint_of_another_version_or_job_with_a_hint() {
    for stopped in [Stopped::load(), Stopped::import()] {
        let saved = stopped.object();
        let hint = format!("to start again, remove `{}`", name(&stopped.checkpoint));
        for (pointer, value, rule) in [
            ("/version", json!(7), "the checkpoint has version 7"),
            (
                "/job/endpoint",
                json!("http://elsewhere"),
                "was another one (endpoint changed: was=`http://elsewhere`, is=",
            ),
            ("/state", json!(1), "the checkpoint is damaged"),
        ] {
            let mut other = saved.clone();
            *other.pointer_mut(pointer).unwrap() = value;
            fs::write(&stopped.checkpoint, other.to_string()).unwrap();

            let rejected = stopped.run(&["--resume"]);

            assert_eq!(rejected.code, Some(2), "{rejected:?}");
            assert!(rejected.errors.contains(rule), "{rule}: {rejected:?}");
            assert!(rejected.errors.contains(&hint), "{rejected:?}");
        }
        fs::remove_file(&stopped.checkpoint).unwrap();
        let mode: &[&str] =
            if stopped.command[0] == "table" { &["--mode", "replace"] } else { &[] };
        stopped.write(stopped.lines);
        assert_eq!(stopped.run(mode).code, Some(0), "the hint works");
    }
}

#[test]
fn a_load_that_sent_nothing_writes_no_checkpoint() {
    let (server, directory) = (server(), tempdir().unwrap());
    succeeds(&server, &["queue", "create", "jobs"]);
    let file = directory.path().join("lines.jsonl");

    let missing = run(&server, &["queue", "load", "jobs", name(&file)]);
    fs::write(&file, "oops\n").unwrap();
    let malformed = run(&server, &["queue", "load", "jobs", name(&file)]);

    assert_eq!((missing.code, malformed.code), (Some(2), Some(2)), "{missing:?} {malformed:?}");
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_committed_pending_batch_is_sent_once_also_where_lines_were_appended() {
    let three = [LINES[0], LINES[1], r#"{"text":"three"}"#].join("\n");
    for (text, expected) in [
        (format!("{}\n{}\n", LINES[0], LINES[1]), &["one", "two"][..]),
        // The same messages, though not the same bytes.
        (format!("{}\r\n{}", LINES[0], LINES[1]), &["one", "two"]),
        (format!("{three}\n{{\"text\":\"four\"}}\n"), &["one", "two", "three", "four"]),
    ] {
        let load = Stopped::load();
        put_back(&load);
        fs::write(&load.file, text).unwrap();

        let loaded = load.run(&["--resume"]);

        assert_eq!(loaded.code, Some(0), "{loaded:?}");
        assert_eq!(texts(&load.server), expected, "{loaded:?}");
        assert!(!loaded.errors.contains("warning"), "{loaded:?}");
        let text = format!("loaded {} messages", expected.len());
        assert!(loaded.output.contains(&text), "{loaded:?}");
    }
}

#[test]
fn a_file_that_was_loaded_is_sent_again_by_another_load() {
    let (server, directory) = (server(), tempdir().unwrap());
    let file = directory.path().join("lines.jsonl");
    fs::write(&file, LINES.join("\n")).unwrap();
    succeeds(&server, &["queue", "create", "jobs"]);

    for _ in 0..2 {
        succeeds(&server, &["queue", "load", "jobs", name(&file)]);
    }

    assert_eq!(texts(&server), ["one", "two", "three", "one", "two", "three"]);
}

#[test]
fn a_changed_pending_batch_is_sent_completely_with_a_warning() {
    let load = Stopped::load();
    put_back(&load);
    load.write([LINES[0], r#"{"text":"fixed"}"#, LINES[2]]);

    let loaded = load.run(&["--resume"]);

    assert_eq!(loaded.code, Some(0), "{loaded:?}");
    assert_eq!(texts(&load.server), ["one", "two", "one", "fixed", "three"], "{loaded:?}");
    let text = "warning: lines of an unfinished batch have changed: 2 messages may be sent twice";
    assert!(loaded.errors.contains(text), "{loaded:?}");
}
