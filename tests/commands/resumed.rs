//! Loads and imports that were interrupted: nothing is begun anew unasked, and nothing goes on in another file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use trestle_tests::Server;

use crate::client::{Ended, messages, run, server, succeeds};

const ROWS: [&str; 3] = [
    r#"{"PartitionKey":"p","RowKey":"1","n":1}"#,
    r#"{"PartitionKey":"p","RowKey":"2","n":2}"#,
    r#"{"PartitionKey":"p","RowKey":"3","n":3}"#,
];
const LINES: [&str; 3] = [r#"{"text":"one"}"#, r#"{"text":"two"}"#, r#"{"text":"three"}"#];

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
