//! Segments whose bytes are not as they were written.

use std::{fs, path::PathBuf};

use trestle_tests::Server;

use super::{append, bodies, lines};
use crate::client::{run, succeeds};

#[test]
fn a_damaged_segment_is_reported_shown_and_dropped() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&["--data-dir", data.path().to_str().unwrap()], &[]);
    succeeds(&server, &["log", "create", "app"]);
    for text in ["one\ntwo\n", "three\n"] {
        append::succeeds(&server, &append::file(text), &["--format", "text"]);
        succeeds(&server, &["log", "flush", "app"]);
    }
    let verified = succeeds(&server, &["log", "verify", "app"]).output;
    assert!(verified.starts_with("verified 2 segments ("), "{verified}");
    assert!(verified.ends_with("), 0 damaged\n"), "{verified}");
    let segments = lines(&succeeds(&server, &["log", "segments", "app", "--json"]).output);
    let damaged = segments.iter().find(|segment| segment["records"] == 2).unwrap();
    let id = damaged["id"].to_string();
    let file = PathBuf::from(damaged["url"].as_str().unwrap().strip_prefix("file://").unwrap());
    let mut bytes = fs::read(&file).unwrap();
    bytes[100] ^= 1;
    fs::write(&file, bytes).unwrap();

    let verified = run(&server, &["log", "verify", "app", "--json"]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let verified = lines(&verified.output);
    assert_eq!((&verified[0]["id"], &verified[0]["records"]), (&damaged["id"], &2.into()));
    assert_eq!(verified[0]["readable_records"], 0, "{verified:?}");
    assert_eq!((&verified[1]["verified"], &verified[1]["damaged"]), (&2.into(), &1.into()));
    let shown = succeeds(&server, &["log", "segments", "app"]).output;
    assert!(shown.contains("a checksum does not match"), "{shown}");

    let unconfirmed = run(&server, &["log", "drop-segment", "app", &id]);
    assert_eq!(unconfirmed.code, Some(2), "{unconfirmed:?}");
    let whole = segments.iter().find(|segment| segment["records"] == 1).unwrap()["id"].to_string();
    let kept = run(&server, &["log", "drop-segment", "app", &whole, "--yes"]);
    assert!(kept.errors.contains("must be a damaged segment"), "{kept:?}");
    let dropped = succeeds(&server, &["log", "drop-segment", "app", &id, "--yes"]).output;
    assert_eq!(dropped, format!("dropped segment {id} of stream app with 2 records\n"));
    assert_eq!(bodies(&server, &[]), ["three"]);
    assert!(
        succeeds(&server, &["log", "verify", "app"]).output.starts_with("verified 1 segment (")
    );
}
