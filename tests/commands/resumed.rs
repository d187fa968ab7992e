//! Loads and imports that were interrupted: nothing is begun anew unasked, and nothing goes on in another file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use trestle_tests::Server;

use crate::client::{Ended, messages, run, server, succeeds};

const ROWS: [&str; 3] = [
    r#"{"PartitionKey":"p","RowKey":"1","n":1}"#,
    r#"{"PartitionKey":"p","RowKey":"2","n":2}"#,
    r#"{"PartitionKey":"p","RowKey":"3","n":3}"#,
];
const LINES: [&str; 3] = [r#"{"text":"one"}"#, r#"{"text":"two"}"#, r#"{"text":"three"}"#];
/// What notes say of the bytes before the start of a file.
const HASH_OF_NOTHING: &str = "99aa06d3014798d86001c324468d497f";

/// A file whose third line is malformed, and a command that stopped there.
struct Stopped {
    server: Server,
    _directory: TempDir,
    file: PathBuf,
    notes: PathBuf,
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

    fn at_third(command: [&str; 3], lines: [&'static str; 3], notes: &str) -> Self {
        let (server, directory) = (server(), tempdir().unwrap());
        succeeds(&server, &[command[0], "create", "jobs"]);
        let path = |name: &str| directory.path().join(name);
        let (file, notes) = (path("lines.jsonl"), path(notes));
        let command = command.into_iter().chain([file.to_str().unwrap()]);
        let command = command.map(str::to_owned).collect();
        let stopped = Self { server, _directory: directory, file, notes, command, lines };
        stopped.write([lines[0], lines[1], "oops"]);
        let ended = stopped.run(&[]);
        assert!(ended.errors.contains(":3"), "{ended:?}");
        assert!(ended.errors.contains("--resume"), "{ended:?}");
        assert!(stopped.notes.exists());
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
        serde_json::from_slice(&fs::read(&self.notes).unwrap()).unwrap()
    }
}

/// Puts the notes of a load back to its start, as they are while the first batch is under way.
fn put_back(stopped: &Stopped) {
    let mut notes = stopped.object();
    notes["done"] = json!({ "byte": 0, "line": 0, "messages": 0 });
    notes["hash"] = json!(HASH_OF_NOTHING);
    fs::write(&stopped.notes, notes.to_string()).unwrap();
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
fn what_was_interrupted_is_not_begun_anew_unasked() {
    for (stopped, what) in [(Stopped::load(), "load"), (Stopped::import(), "import")] {
        let notes = fs::read(&stopped.notes).unwrap();
        stopped.write(stopped.lines);

        let again = stopped.run(&[]);

        assert_eq!(again.code, Some(2), "{again:?}");
        let said = format!(
            "an interrupted {what} was found: `{}`: go on with --resume, or remove it",
            name(&stopped.notes)
        );
        assert!(again.errors.contains(&said), "{again:?}");
        assert!(fs::read(&stopped.notes).unwrap() == notes, "the notes are as they were");
        let resumed = stopped.run(&["--resume"]);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
        assert!(!stopped.notes.exists());
    }
}

#[test]
fn what_was_not_interrupted_begins_at_line_1_and_says_so() {
    for (stopped, what) in [(Stopped::load(), "load"), (Stopped::import(), "import")] {
        fs::remove_file(&stopped.notes).unwrap();
        stopped.write(stopped.lines);

        let mode: &[&str] = if what == "import" { &["--mode", "replace"] } else { &[] };
        let begun = stopped.run(&[&["--resume"][..], mode].concat());

        assert_eq!(begun.code, Some(0), "{begun:?}");
        let said = format!("no interrupted {what} was found; begins at line 1\n");
        assert!(begun.errors.starts_with(&said), "{begun:?}");
    }
}

#[test]
fn a_file_that_changed_before_where_it_stopped_does_not_go_on() {
    for stopped in [Stopped::load(), Stopped::import()] {
        let other = stopped.lines[0].replace("one", "eno").replace("\"n\":1", "\"n\":7");
        assert_eq!(other.len(), stopped.lines[0].len());
        let before = fs::read(&stopped.notes).unwrap();

        stopped.write([&other, stopped.lines[1], "oops"]);
        let changed = stopped.run(&["--resume"]);
        fs::write(&stopped.file, "{}\n").unwrap();
        let shorter = stopped.run(&["--resume"]);

        for refused in [changed, shorter] {
            assert_eq!(refused.code, Some(2), "{refused:?}");
            let said = "has changed before the place where it was interrupted";
            assert!(refused.errors.contains(said), "{refused:?}");
            assert!(refused.errors.contains(name(&stopped.notes)), "{refused:?}");
        }
        assert!(fs::read(&stopped.notes).unwrap() == before, "the notes are as they were");
        stopped.write(stopped.lines);
        let resumed = stopped.run(&["--resume", "--json"]);
        assert_eq!(resumed.code, Some(0), "mended behind that place: {resumed:?}");
        assert!(resumed.output.contains(":2"), "resumed after line 2: {resumed:?}");
    }
}

#[test]
fn notes_of_an_older_version_are_taken_as_far_as_they_can_be_checked() {
    let load = Stopped::load();
    let import = Stopped::import();
    for stopped in [&load, &import] {
        let mut notes = stopped.object();
        assert!(notes.as_object_mut().unwrap().remove("hash").is_some(), "{notes}");
        fs::write(&stopped.notes, notes.to_string()).unwrap();
        stopped.write(stopped.lines);
    }

    let loaded = load.run(&["--resume"]);
    let longer = import.run(&["--resume"]);
    let size = format!("{}\n{}\noops\n", ROWS[0], ROWS[1]).len();
    import.write([ROWS[0], ROWS[1], "1234"]);
    assert_eq!(fs::metadata(&import.file).unwrap().len(), u64::try_from(size).unwrap());
    let same = import.run(&["--resume", "--keep-going"]);

    assert_eq!(loaded.code, Some(0), "{loaded:?}");
    assert!(loaded.errors.contains("whether the file changed is not known"), "{loaded:?}");
    assert_eq!(messages(&load.server, "jobs"), 3);
    assert_eq!(longer.code, Some(2), "{longer:?}");
    assert!(longer.errors.contains("file size"), "{longer:?}");
    assert_eq!(same.code, Some(1), "the third row is malformed: {same:?}");
    assert!(same.errors.contains("resumed after row 2"), "{same:?}");
}

#[test]
fn a_load_that_did_not_begin_leaves_no_notes() {
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
fn a_load_whose_batch_under_way_was_committed_sends_it_once_also_where_lines_were_appended() {
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
        let said = format!("loaded {} messages", expected.len());
        assert!(loaded.output.contains(&said), "{loaded:?}");
    }
}

#[test]
fn a_load_whose_batch_under_way_was_changed_sends_all_of_it_and_warns() {
    let load = Stopped::load();
    put_back(&load);
    load.write([LINES[0], r#"{"text":"mended"}"#, LINES[2]]);

    let loaded = load.run(&["--resume"]);

    assert_eq!(loaded.code, Some(0), "{loaded:?}");
    assert_eq!(texts(&load.server), ["one", "two", "one", "mended", "three"], "{loaded:?}");
    let said = "warning: lines that were under way have changed: 2 messages may be sent twice";
    assert!(loaded.errors.contains(said), "{loaded:?}");
}

#[test]
fn a_load_that_an_older_version_began_sends_all_and_warns() {
    let load = Stopped::load();
    put_back(&load);
    let mut notes = load.object();
    notes.as_object_mut().unwrap().remove("under_way");
    fs::write(&load.notes, notes.to_string()).unwrap();
    load.write(LINES);

    let loaded = load.run(&["--resume"]);

    assert_eq!(texts(&load.server), ["one", "two", "one", "two", "three"], "{loaded:?}");
    assert!(loaded.errors.contains("up to 100 messages may be sent twice"), "{loaded:?}");
}
