//! Targets of exports and drains: pipes, links, standard output.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    process::{Command, Stdio},
};

use crate::client::{Ended, bare, is_pipe, pipe, run, server, spawned, succeeds, wait};

const KEYS: [&str; 4] = ["-p", "p", "-r", "r"];
const LINE: &str = "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\n";

/// A server with a table of one entity.
fn with_table() -> trestle_tests::Server {
    let server = server();
    succeeds(&server, &["table", "create", "rows"]);
    succeeds(&server, &[&["table", "insert", "rows"][..], &KEYS].concat());
    server
}

#[test]
fn an_export_or_drain_writes_to_a_pipe_without_replacing_it() {
    let (server, directory) = (with_table(), tempfile::tempdir().unwrap());
    succeeds(&server, &["queue", "create", "jobs"]);
    succeeds(&server, &["queue", "send", "jobs", "a job"]);
    let (fifo, copy) = (directory.path().join("pipe.jsonl"), directory.path().join("copy"));
    let name = fifo.to_str().unwrap();
    pipe(&fifo);

    for (args, expected) in [
        (&["table", "export", "rows", name][..], LINE),
        (&["queue", "drain", "jobs", "--to", name], "\"text\":\"a job\"}\n"),
    ] {
        let out = Stdio::from(File::create(&copy).unwrap());
        let mut reader = Command::new("cat").arg(&fifo).stdout(out).spawn().unwrap();
        let ended = run(&server, args);
        if !is_pipe(&fifo) || ended.code != Some(0) {
            reader.kill().unwrap();
        }
        reader.wait().unwrap();
        assert!(is_pipe(&fifo), "{ended:?}");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let read = fs::read_to_string(&copy).unwrap();
        assert!(read.ends_with(expected) && read.lines().count() == 1, "{read}");
    }
    let resumed = run(&server, &["table", "export", "rows", name, "--resume"]);
    assert_eq!(resumed.code, Some(2), "{resumed:?}");
    let beside: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(beside.len(), 2, "no checkpoint remains: {beside:?}");
}

#[test]
fn an_export_into_a_closed_pipe_fails() {
    let (server, directory) = (with_table(), tempfile::tempdir().unwrap());
    // More than the buffer of a pipe holds.
    let text = format!("text={}", "x".repeat(30_000));
    for row in ["1", "2", "3", "4"] {
        let keys = ["-p", "p", "-r", row, "-s", &text];
        succeeds(&server, &[&["table", "insert", "rows"][..], &keys].concat());
    }
    let fifo = directory.path().join("pipe.jsonl");
    pipe(&fifo);

    let child = spawned(&server, &["table", "export", "rows", fifo.to_str().unwrap()]);
    drop(File::open(&fifo).unwrap());
    let ended = wait(child);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("the reader closed it"), "{ended:?}");
}

#[test]
fn a_missing_folder_is_named_before_anything_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("nosuch");
    let file = folder.join("rows.jsonl");
    let name = file.to_str().unwrap();
    let nowhere = ["--endpoint", "127.0.0.1:1"];

    for args in [&["table", "export", "rows", name][..], &["queue", "drain", "jobs", "--to", name]]
    {
        let ended = Ended::of(bare(&[args, &nowhere].concat()));

        assert_eq!(ended.code, Some(2), "{ended:?}");
        let text = format!(
            "error: cannot write `{name}`: the folder does not exist, create it: folder=`{}`\n",
            folder.display()
        );
        assert_eq!(ended.errors, text);
    }
    assert!(!folder.exists());
}

#[test]
fn an_export_to_a_link_replaces_its_target() {
    let (server, directory) = (with_table(), tempfile::tempdir().unwrap());
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("inner")).unwrap();
    fs::write(path("inner/real.jsonl"), "before").unwrap();
    symlink("inner/real.jsonl", path("middle")).unwrap();
    symlink("middle", path("there.jsonl")).unwrap();
    symlink("inner/new.jsonl", path("ahead.jsonl")).unwrap();
    symlink("itself.jsonl", path("itself.jsonl")).unwrap();

    for (link, real) in [("there.jsonl", "inner/real.jsonl"), ("ahead.jsonl", "inner/new.jsonl")] {
        succeeds(&server, &["table", "export", "rows", path(link).to_str().unwrap()]);
        assert!(path(link).is_symlink(), "{link}");
        assert!(!path(real).is_symlink());
        assert_eq!(fs::read_to_string(path(real)).unwrap(), LINE);
    }
    for rejected in ["itself.jsonl", "inner"] {
        let name = path(rejected);
        let args = ["table", "export", "rows", name.to_str().unwrap(), "--format", "jsonl"];
        let ended = run(&server, &args);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.errors.contains(rejected), "{ended:?}");
    }
}
