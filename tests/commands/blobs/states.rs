//! Snapshots, versions and deleted blobs, and copies that the server makes.

use std::fs;

use serde_json::Value;
use trestle_tests::Server;

use super::{lines, put, with_container};
use crate::client::{run, succeeds};

fn cat(server: &Server, args: &[&str]) -> String {
    succeeds(server, &[&["blob", "cat"], args].concat()).output
}

fn listed(server: &Server, args: &[&str]) -> Vec<Value> {
    lines(&succeeds(server, &[&["blob", "ls", "photos", "--json"], args].concat()).output)
}

#[test]
fn versions_are_listed_read_restored_and_deleted() {
    let server = with_container();
    let shown = succeeds(&server, &["blob", "protection", "--versions", "on", "--json"]).output;
    let expected = serde_json::json!({
        "keep_deleted_days": null,
        "keep_containers_days": null,
        "versions": true,
    });
    assert_eq!(lines(&shown), [expected]);
    put(&server, "a", b"one");
    put(&server, "a", b"two");

    let states = listed(&server, &["--versions"]);
    assert_eq!(states.len(), 2, "{states:?}");
    assert_eq!(states[0]["is_current_version"], false);
    let first = states[0]["version_id"].as_str().unwrap();
    let leases = [&states[0]["lease"], &states[1]["lease"]];
    assert_eq!(leases, [&Value::Null, &Value::from("available")], "a version has none");
    let table = succeeds(&server, &["blob", "ls", "photos", "--versions", "-o", "table"]).output;
    let rows = table.lines().filter(|line| line.contains('┆'));
    let cells = |row: &str| row.split('┆').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = rows.map(cells).collect();
    let column = rows[0].iter().position(|name| name == "Is current version").expect(&table);
    let marks: Vec<&str> = rows[1..].iter().map(|row| row[column].as_str()).collect();
    assert_eq!(marks, ["no", "yes"], "{table}");
    let of_first = ["photos/a", "--version-id", first];
    assert_eq!(cat(&server, &of_first), "one");
    let shown = succeeds(&server, &[&["blob", "stat", "--json"], &of_first[..]].concat()).output;
    assert_eq!(lines(&shown)[0]["size_bytes"], 3);

    succeeds(&server, &["blob", "rm", "photos/a"]);
    assert_eq!(listed(&server, &[]), [Value::Null; 0]);
    let restore = ["blob", "cp", "--version-id", first, "blob://photos/a", "blob://photos/a"];
    assert_eq!(succeeds(&server, &restore).output, "copied 1 blob (3 B)\n");
    assert_eq!(cat(&server, &["photos/a"]), "one");
    let removed = succeeds(&server, &[&["blob", "rm"], &of_first[..]].concat()).output;
    assert_eq!(removed, "deleted a version of blob photos/a\n");
    assert_eq!(run(&server, &[&["blob", "cat"], &of_first[..]].concat()).code, Some(3));
    let both = run(&server, &["blob", "cat", "photos/a", "--snapshot", "x", "--version-id", "y"]);
    assert_eq!(both.code, Some(2), "{both:?}");
    let folder = ["blob", "cp", "-r", "--version-id", first, "blob://photos/a", "blob://photos/b"];
    assert_eq!(run(&server, &folder).code, Some(2));
}

#[test]
fn snapshots_and_deleted_blobs_are_listed() {
    let server = with_container();
    succeeds(&server, &["blob", "protection", "--keep-deleted", "7"]);
    put(&server, "a", b"one");
    let snapshot = succeeds(&server, &["blob", "snapshot", "photos/a"]).output;
    let snapshot = snapshot.trim();
    assert_eq!(cat(&server, &["photos/a", "--snapshot", snapshot]), "one");
    assert_eq!(listed(&server, &["--snapshots"])[0]["snapshot"], snapshot);
    let removed = succeeds(&server, &["blob", "rm", "photos/a", "--snapshot", snapshot]).output;
    assert_eq!(removed, "deleted a snapshot of blob photos/a\n");
    succeeds(&server, &["blob", "rm", "photos/a"]);
    assert_eq!(listed(&server, &[]).len(), 0);
    let states = listed(&server, &["--deleted"]);
    assert!(states.len() == 1 && states[0]["delete_time"].is_string(), "{states:?}");
    succeeds(&server, &["blob", "undelete", "photos/a"]);
    let off = succeeds(&server, &["blob", "protection", "--keep-deleted", "off", "--json"]).output;
    assert_eq!(lines(&off)[0]["keep_deleted_days"], Value::Null);
    for days in ["0", "366", "x"] {
        let rejected = run(&server, &["blob", "protection", "--keep-deleted", days]);
        assert_eq!(rejected.code, Some(2), "{rejected:?}");
    }
}

#[test]
fn the_server_copies_blobs_and_folders() {
    let server = with_container();
    succeeds(&server, &["blob", "container", "create", "archive"]);
    for name in ["2026/a", "2026/b/c", "other"] {
        put(&server, name, name.as_bytes());
    }
    let folder = ["blob", "cp", "-r", "blob://photos/2026", "blob://archive/old"];
    assert_eq!(succeeds(&server, &folder).output, "copied 2 blobs (14 B)\n");
    assert_eq!(cat(&server, &["archive/old/b/c"]), "2026/b/c");
    succeeds(&server, &["blob", "cp", "blob://photos/other", "blob://archive"]);
    assert_eq!(cat(&server, &["archive/other"]), "other");
    let url = "http://127.0.0.1:10000/devstoreaccount1/photos/2026/a?sig=x";
    succeeds(&server, &["blob", "cp", url, "blob://archive/x/"]);
    assert_eq!(cat(&server, &["archive/x/a"]), "2026/a");

    let absent = run(&server, &["blob", "cp", "blob://photos/none", "blob://archive/none"]);
    assert_eq!(absent.code, Some(3), "{absent:?}");
    for args in [
        ["cp", "http://127.0.0.1:1/a", "blob://archive/a"],
        ["cp", "http://127.0.0.1:1/a", "a"],
        ["cp", "blob://archive/other", "http://127.0.0.1:1/a"],
        ["cp", "a", "b"],
    ] {
        let rejected = run(&server, &[&["blob"], &args[..]].concat());
        assert!(matches!(rejected.code, Some(2 | 4)), "{args:?} {rejected:?}");
    }
}

#[test]
fn a_deleted_container_is_restored() {
    let server = with_container();
    succeeds(&server, &["blob", "protection", "--keep-containers", "1"]);
    put(&server, "a", b"one");
    succeeds(&server, &["blob", "container", "delete", "photos", "--yes"]);
    let container = |args: &[&str]| succeeds(&server, &[&["blob", "container"], args].concat());
    assert_eq!(container(&["list"]).errors, "no containers\n");
    let deleted = lines(&container(&["list", "--deleted", "--json"]).output).remove(0);
    let version = deleted["version"].as_str().unwrap();
    assert_eq!(deleted["lease"], Value::Null, "{deleted}");
    let table = container(&["list", "--deleted"]).output;
    assert!(table.contains(version) && !table.contains("unspecified"), "{table}");
    assert_eq!(container(&["undelete", "photos", version]).output, "restored container photos\n");
    assert_eq!(cat(&server, &["photos/a"]), "one");
}

#[test]
fn tags_are_set_and_blobs_found_by_them() {
    let (server, directory) = (with_container(), tempfile::tempdir().unwrap());
    let file = directory.path().join("file");
    fs::write(&file, vec![7; 9 * 1024 * 1024]).unwrap();
    let file = file.to_str().unwrap();
    let upload = ["blob", "cp", file, "blob://photos/large", "--tag", "day=02", "--tag", "s=a=b"];
    succeeds(&server, &upload);
    put(&server, "small", b"x");
    let tags = |args: &[&str]| succeeds(&server, &[&["blob", "tags"], args].concat()).output;
    assert_eq!(tags(&["get", "photos/large"]), "day=02\ns=a=b\n");
    assert_eq!(tags(&["get", "photos/small"]), "no tags\n");
    let set = tags(&["set", "photos/small", "day=01"]);
    assert_eq!(set, "set the tags of blob photos/small\n");
    let find = |args: &[&str]| {
        let found = succeeds(&server, &[&["blob", "find", "--json"], args].concat()).output;
        let name = |found: Value| found["blob"].as_str().unwrap().to_owned();
        lines(&found).into_iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(find(&["day >= '01'"]), ["small", "large"]);
    assert_eq!(find(&["day > '01'", "--container", "photos"]), ["large"]);
    tags(&["set", "photos/large"]);
    let none = succeeds(&server, &["blob", "find", "day = '02'"]).errors;
    assert_eq!(none, "no blobs\n");
    assert_eq!(run(&server, &["blob", "find", "day"]).code, Some(2));
    assert_eq!(run(&server, &["blob", "tags", "set", "photos/small", "day"]).code, Some(2));
}
