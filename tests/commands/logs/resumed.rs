//! Interrupted appends.

use std::{fs, path::PathBuf};

use super::{append, bodies, with_stream};
use crate::client::{interrupt, run, spawned, wait};

fn checkpoint(file: &append::InputFile) -> PathBuf {
    PathBuf::from(format!("{}.trestle-append", file.path().display()))
}

#[test]
fn a_strict_append_stops_at_a_malformed_line_and_continues_once_it_is_fixed() {
    let server = with_stream();
    let input = append::file("{\"msg\":\"a\"}\n{\"msg\":\"b\"}\noops\n");
    let args = ["--strict", "--batch", "1"];

    let stopped = append::append(&server, input.path(), &args);

    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    assert!(stopped.errors.contains(":3: must be a JSON object"), "{stopped:?}");
    assert!(stopped.errors.contains("2 records appended") && stopped.errors.contains("--resume"));
    assert!(checkpoint(&input).exists());
    let again = append::append(&server, input.path(), &args);
    assert_eq!(again.code, Some(2), "{again:?}");

    fs::write(input.path(), "{\"msg\":\"a\"}\n{\"msg\":\"b\"}\n{\"msg\":\"c\"}\n").unwrap();
    let resumed = append::succeeds(&server, &input, &["--strict", "--batch", "1", "--resume"]);
    assert!(resumed.output.contains("resumed after line 2"), "{resumed:?}");
    assert_eq!(bodies(&server, &[]), ["a", "b", "c"]);
    assert!(!checkpoint(&input).exists());
}

#[test]
fn an_interrupted_append_is_resumed_without_doubled_records() {
    let server = with_stream();
    let text: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    let input = append::file(&text);
    let path = input.path().to_str().unwrap();
    let args = ["log", "append", "app", path, "--format", "text", "--batch", "50"];
    let child = spawned(&server, &args);
    assert!(crate::client::becomes(|| !bodies(&server, &["--limit", "1"]).is_empty()));
    interrupt(&child);
    let ended = wait(child);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(checkpoint(&input).exists());

    let resumed = run(&server, &[&args[..], &["--resume"]].concat());

    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let mut read: Vec<u32> = bodies(&server, &[]).iter().map(|one| one.parse().unwrap()).collect();
    read.sort_unstable();
    assert!(read.iter().copied().eq(0..200_000), "{} records", read.len());
}

#[test]
fn another_file_or_other_options_are_not_resumed() {
    let server = with_stream();
    let input = append::file("{\"msg\":\"a\"}\noops\n");
    append::append(&server, input.path(), &["--strict", "--batch", "1"]);
    let other = append::append(&server, input.path(), &["--strict", "--batch", "2", "--resume"]);
    assert!(other.code == Some(2) && other.errors.contains("batch changed"), "{other:?}");
    fs::write(input.path(), "{\"msg\":\"b\"}\n").unwrap();
    let other = append::append(&server, input.path(), &["--strict", "--batch", "1", "--resume"]);
    assert!(other.code == Some(2) && other.errors.contains("has changed"), "{other:?}");
    let pipe = run(&server, &["log", "append", "app", "-", "--resume"]);
    assert_eq!(pipe.code, Some(2), "{pipe:?}");
}
