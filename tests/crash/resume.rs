//! An import of rows and a load of messages whose client is killed continue from their checkpoint without loss or
//! duplicates.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;
use trestle_tests::{Server, becomes, server_binary};

/// Rows of the file: enough for many chunks, so that a kill falls between two of them.
const ROWS: usize = 60_000;

fn trestle(server: &Server, args: &[&str]) -> Command {
    let mut command = Command::new(server_binary());
    let (noun, args) = args.split_first().expect("a command");
    command.args([noun, "--endpoint", &server.endpoint()]).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn succeeds(server: &Server, args: &[&str]) {
    let status = trestle(server, args).status().expect("the client runs");
    assert!(status.success(), "{args:?}: {status}");
}

/// Rows in key order, as an export writes them.
fn write_rows(path: &Path) {
    let mut text = String::new();
    for row in 0..ROWS {
        let (partition, row) = (row / 1000, row % 1000);
        writeln!(
            text,
            r#"{{"PartitionKey":"p{partition:03}","RowKey":"{row:04}","n@odata.type":"Edm.Int64","n":"{row}"}}"#
        )
        .expect("a string takes any text");
    }
    fs::write(path, text).expect("the file is written");
}

/// Kills the import once it has a checkpoint; false if it ended before.
fn kill_on_the_way(server: &Server, args: &[&str], checkpoint: &Path) -> bool {
    let mut import = trestle(server, args).spawn().expect("the client runs");
    let mut has_ended = false;
    becomes(|| {
        has_ended = import.try_wait().expect("the client is ours").is_some();
        has_ended || has_progress(checkpoint)
    });
    if has_ended {
        return false;
    }
    import.kill().expect("the client is killed");
    import.wait().expect("the client is ours").code().is_none()
}

/// Whether the checkpoint contains progress.
fn has_progress(checkpoint: &Path) -> bool {
    fs::read_to_string(checkpoint).is_ok_and(|checkpoint| !checkpoint.contains(r#""byte":0"#))
}

fn files(directory: &TempDir) -> [PathBuf; 3] {
    ["rows.jsonl", "rows.jsonl.trestle-import", "exported.jsonl"]
        .map(|name| directory.path().join(name))
}

#[test]
fn killed_import_resumes_to_exactly_the_rows_of_its_file() {
    let (data, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [rows, checkpoint, exported] = files(&directory);
    let server = crate::start(&data, &[]);
    write_rows(&rows);
    succeeds(&server, &["table", "create", "rows"]);
    let import = ["table", "import", "rows", rows.to_str().unwrap()];

    assert!(kill_on_the_way(&server, &import, &checkpoint), "the import was killed on the way");
    let resume = ["table", "import", "rows", rows.to_str().unwrap(), "--resume"];
    succeeds(&server, &resume);

    succeeds(&server, &["table", "export", "rows", exported.to_str().unwrap()]);
    let (before, after) = (fs::read(&rows).unwrap(), fs::read(&exported).unwrap());
    assert!(before == after, "{} bytes became {}", before.len(), after.len());
    assert!(!checkpoint.exists(), "the checkpoint is deleted once the import is complete");
}

/// Messages of the file: enough for many batches.
const MESSAGES: usize = 10_000;

#[test]
fn repeatedly_killed_load_sends_every_message_once() {
    let (data, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [lines, checkpoint, drained] =
        ["lines", "lines.trestle-load", "drained.jsonl"].map(|name| directory.path().join(name));
    let server = crate::start(&data, &[]);
    let texts: Vec<_> = (0..MESSAGES).map(|number| format!("message {number}")).collect();
    fs::write(&lines, texts.join("\n")).unwrap();
    succeeds(&server, &["queue", "create", "jobs"]);
    let load = ["queue", "load", "jobs", lines.to_str().unwrap(), "--text"];
    let resume = [&load[..], &["--resume"]].concat();

    assert!(kill_on_the_way(&server, &load, &checkpoint), "the load was killed on the way");
    for _ in 0..3 {
        let before = fs::read(&checkpoint).unwrap();
        let mut load = trestle(&server, &resume).spawn().expect("the client runs");
        becomes(|| fs::read(&checkpoint).unwrap() != before);
        load.kill().expect("the client is killed");
        load.wait().expect("the client is ours");
        assert!(checkpoint.exists(), "the load was killed on the way");
    }
    succeeds(&server, &resume);

    assert!(!checkpoint.exists(), "the checkpoint is deleted once the load is complete");
    succeeds(&server, &["queue", "drain", "jobs", "--to", drained.to_str().unwrap()]);
    let lines = fs::read_to_string(&drained).unwrap();
    let text = |line: &str| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        object["text"].as_str().unwrap().to_owned()
    };
    let lines: Vec<_> = lines.lines().map(text).collect();
    assert_eq!(lines.len(), MESSAGES);
    assert!(lines == texts, "every message once, in its order");
}
