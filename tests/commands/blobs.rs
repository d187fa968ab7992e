//! Commands on containers and blobs.

mod copies;
mod states;
mod urls;

use std::fs;

use serde_json::Value;
use trestle_tests::{Ended, Server};

use crate::client::{bare, run, server, succeeds};

/// A server with the container `photos`.
fn with_container() -> Server {
    let server = server();
    succeeds(&server, &["blob", "container", "create", "photos"]);
    server
}

/// Writes a blob.
fn put(server: &Server, name: &str, content: &[u8]) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, content).unwrap();
    let to = format!("blob://photos/{name}");
    succeeds(server, &["blob", "cp", file.to_str().unwrap(), &to]);
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn containers_are_created_listed_shown_and_deleted() {
    let server = with_container();
    let container = |args: &[&str]| run(&server, &[&["blob", "container"], args].concat());

    assert_eq!(container(&["create", "photos"]).code, Some(4));
    let again = container(&["create", "photos", "--if-not-exists"]);
    assert_eq!(again.output, "container photos exists already\n");
    assert_eq!(container(&["create", "Photos"]).code, Some(2));
    let listed = container(&["list", "--prefix", "ph", "--json"]);
    assert_eq!(lines(&listed.output)[0]["container"], "photos", "{listed:?}");
    assert_eq!(container(&["list", "--prefix", "x"]).errors, "no containers\n");
    let shown = container(&["stat", "photos", "--json"]);
    assert_eq!(lines(&shown.output)[0]["lease"], "available", "{shown:?}");
    let unconfirmed = container(&["delete", "photos"]);
    assert_eq!(unconfirmed.code, Some(2), "{unconfirmed:?}");
    assert_eq!(container(&["delete", "photos", "--yes"]).code, Some(0));
    assert_eq!(container(&["stat", "photos"]).code, Some(3));
}

#[test]
fn blobs_are_listed_by_prefix_and_delimiter() {
    let server = with_container();
    for name in ["2025/a", "2026/b", "2026/c d", "top"] {
        put(&server, name, b"12345");
    }
    let names = |args: &[&str]| {
        let listed = succeeds(&server, &[&["blob", "ls", "--json"], args].concat()).output;
        let name = |item: &Value| {
            let name = item["blob"].as_str().or(item["prefix"].as_str());
            name.unwrap().to_owned()
        };
        lines(&listed).iter().map(name).collect::<Vec<_>>()
    };

    assert_eq!(names(&["photos"]), ["2025/a", "2026/b", "2026/c d", "top"]);
    assert_eq!(names(&["blob://photos/202", "--delimiter", "/"]), ["2025/", "2026/"]);
    assert_eq!(names(&["photos", "--delimiter", "/"]), ["2025/", "2026/", "top"]);
    assert_eq!(names(&["photos/2026/c"]), ["2026/c d"]);
    let none = succeeds(&server, &["blob", "ls", "photos/x"]);
    let header =
        "blob\tsize_bytes\tlast_modified\tcontent_type\tetag\tcreate_time\tlease\tmetadata\n";
    assert_eq!((none.output.as_str(), none.errors.as_str()), (header, "no blobs\n"));
    let table = succeeds(&server, &["blob", "ls", "photos/top", "-o", "table"]).output;
    assert!(table.contains("┆ top ") && table.contains("┆ 5 B "), "{table}");
}

#[test]
fn snapshots_are_made_and_deleted_and_blobs_restored() {
    let server = with_container();
    put(&server, "text", b"one");
    let blob = |args: &[&str]| run(&server, &[&["blob"], args].concat());

    let name = succeeds(&server, &["blob", "snapshot", "photos/text"]).output;
    assert!(name.len() == 29 && name.ends_with("Z\n"), "{name}");
    let object = lines(&succeeds(&server, &["blob", "snapshot", "photos/text", "--json"]).output);
    assert!(object[0]["snapshot"].as_str().unwrap() > name.trim(), "{object:?}");
    let kept = blob(&["rm", "photos/text"]);
    assert!(kept.code != Some(0), "{kept:?}");
    assert_eq!(
        blob(&["rm", "photos/text", "--snapshots", "only"]).output,
        "deleted the snapshots of blob photos/text\n"
    );
    assert_eq!(blob(&["undelete", "photos/text"]).output, "restored blob photos/text\n");
    succeeds(&server, &["blob", "snapshot", "photos/text"]);
    let deleted = blob(&["rm", "photos/text", "--snapshots", "include"]);
    assert_eq!(deleted.output, "deleted blob photos/text\n");
    assert_eq!(blob(&["undelete", "photos/text"]).code, Some(3), "the settings keep nothing");
    assert_eq!(blob(&["snapshot", "photos/text"]).code, Some(3));
}

#[test]
fn content_and_ranges_of_it_are_written_to_standard_output() {
    let server = with_container();
    put(&server, "text", b"0123456789");
    put(&server, "empty", b"");
    let cat = |args: &[&str]| run(&server, &[&["blob", "cat"], args].concat());

    assert_eq!(cat(&["photos/text"]).output, "0123456789");
    assert_eq!(cat(&["photos/text", "--offset", "7"]).output, "789");
    assert_eq!(cat(&["photos/text", "--offset", "2", "--length", "3"]).output, "234");
    assert_eq!(cat(&["photos/text", "--length", "100"]).output, "0123456789");
    let empty = cat(&["photos/empty"]);
    assert_eq!((empty.code, empty.output.as_str()), (Some(0), ""));
    assert_eq!(cat(&["photos/text", "--offset", "10"]).code, Some(2));
}

#[test]
fn the_exit_code_is_3_where_a_blob_or_its_container_is_absent() {
    let (server, directory) = (with_container(), tempfile::tempdir().unwrap());
    let file = directory.path().join("file");
    fs::write(&file, "text").unwrap();
    let file = file.to_str().unwrap();
    let target = directory.path().join("target");
    let target = target.to_str().unwrap();

    for args in [
        &["cat", "photos/absent"][..],
        &["stat", "photos/absent"],
        &["rm", "photos/absent"],
        &["cp", "blob://photos/absent", target],
        &["cp", file, "blob://absent/file"],
        &["ls", "absent"],
        &["verify", "absent"],
        &["lease", "acquire", "photos/absent"],
        &["container", "delete", "absent", "--yes"],
    ] {
        let ended = run(&server, &[&["blob"], args].concat());
        assert_eq!(ended.code, Some(3), "{args:?}: {ended:?}");
        assert!(ended.errors.contains("reason: "), "{args:?}: {ended:?}");
    }
    assert!(!fs::exists(target).unwrap(), "an absent blob makes no file");
}

#[test]
fn malformed_commands_have_exit_code_2() {
    let server = with_container();
    for args in [
        &["cp", "a", "b"][..],
        &["cp", "blob://photos/a", "https://example.com/b"],
        &["cp", "/no/such/file", "blob://photos/a"],
        &["cp", "blob://photos/a", "-"],
        &["cat", "photos"],
        &["stat", "blob://photos/"],
        &["rm", "photos/a", "--recursive"],
        &["lease", "acquire", "photos", "--duration", "1s"],
    ] {
        let ended = run(&server, &[&["blob"], args].concat());
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
    }
    let help = Ended::of(bare(&["blob", "container", "create", "--help"])).output;
    assert!(help.contains("no such container or blob"), "{help}");
}

#[test]
fn a_leased_blob_is_deleted_by_the_holder_of_the_lease_only() {
    let server = with_container();
    put(&server, "cat.png", b"12345");
    let blob = |args: &[&str]| run(&server, &[&["blob"], args].concat());

    let acquired = blob(&["lease", "acquire", "photos/cat.png", "--json"]);
    let id = lines(&acquired.output)[0]["lease_id"].as_str().unwrap().to_owned();
    let shown = lines(&blob(&["stat", "photos/cat.png", "--json"]).output);
    assert_eq!(shown[0]["lease"], "leased", "{shown:?}");
    assert_eq!(blob(&["rm", "photos/cat.png"]).code, Some(4));
    let renewed = blob(&["lease", "renew", "photos/cat.png", &id]);
    assert_eq!(renewed.output, format!("renewed: lease_id={id}\n"));
    let other = "00000000-0000-0000-0000-000000000001";
    assert_eq!(blob(&["lease", "release", "photos/cat.png", other]).code, Some(4));
    assert_eq!(blob(&["rm", "photos/cat.png", "--lease-id", &id]).code, Some(0));

    let acquired = blob(&["lease", "acquire", "photos", "--duration", "60s"]);
    assert!(acquired.output.starts_with("acquired: lease_id="), "{acquired:?}");
    assert_eq!(blob(&["container", "delete", "photos", "--yes"]).code, Some(4));
    let broken = blob(&["lease", "break", "photos", "--period", "0"]);
    assert_eq!(broken.output, "broken: remaining_seconds=0\n", "{broken:?}");
    assert_eq!(blob(&["container", "delete", "photos", "--yes"]).code, Some(0));
}

#[test]
fn a_signature_over_a_container_is_for_its_blobs() {
    let server = with_container();
    put(&server, "a b/ü%", b"12345");
    let account = ["--account", "devstoreaccount1"];
    let terms = ["--permissions", "rl", "--expiry", "1h"];
    let sign = [&["sas", "container", "photos"][..], &terms, &account].concat();
    let token = Ended::of(bare(&sign)).output;
    let signed = |args: &[&str]| run(&server, &[args, &["--sas", token.trim()]].concat());

    assert_eq!(signed(&["blob", "cat", "photos/a b/ü%"]).output, "12345");
    assert!(signed(&["blob", "ls", "photos/a b/"]).output.contains("ü%"));
    assert_eq!(signed(&["blob", "rm", "photos/a b/ü%"]).code, Some(1));
}

#[test]
fn verify_reports_the_damaged_blob() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&["--data-dir", data.path().to_str().unwrap()], &[]);
    succeeds(&server, &["blob", "container", "create", "photos"]);
    put(&server, "damaged", &[7; 100_000]);
    let objects = || fs::read_dir(data.path().join("blob")).unwrap();
    let damaged = objects().next().unwrap().unwrap().path();
    for whole in ["large", "a/small"] {
        put(&server, whole, &[8; 50_000]);
    }
    let verified = succeeds(&server, &["blob", "verify", "photos"]).output;
    assert_eq!(verified, "verified 3 blobs (195.31 KiB), 0 damaged\n");

    let mut bytes = fs::read(&damaged).unwrap();
    bytes[70_000] ^= 1;
    fs::write(&damaged, bytes).unwrap();

    let verified = run(&server, &["blob", "verify", "photos", "--json"]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let verified = lines(&verified.output);
    assert_eq!(verified[0]["damaged"], "damaged", "{verified:?}");
    assert_eq!((&verified[1]["verified"], &verified[1]["damaged"]), (&3.into(), &1.into()));
    assert_eq!(run(&server, &["blob", "verify", "photos/a/"]).code, Some(0));
}

#[test]
fn verify_goes_on_after_a_blob_that_the_disk_cannot_read_and_reads_deleted_ones() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&["--data-dir", data.path().to_str().unwrap()], &[]);
    succeeds(&server, &["blob", "container", "create", "photos"]);
    succeeds(&server, &["blob", "protection", "--keep-deleted", "7"]);
    put(&server, "a", &[7; 100_000]);
    let unreadable = fs::read_dir(data.path().join("blob")).unwrap().next().unwrap().unwrap();
    for whole in ["b", "c"] {
        put(&server, whole, &[8; 50_000]);
    }
    succeeds(&server, &["blob", "snapshot", "photos/b"]);
    succeeds(&server, &["blob", "rm", "photos/c"]);
    fs::remove_file(unreadable.path()).unwrap();
    // A read of it fails, as one of a bad sector does.
    fs::create_dir(unreadable.path()).unwrap();

    let verified = run(&server, &["blob", "verify", "photos"]);

    assert_eq!(verified.code, Some(1), "{verified:?}");
    let mut lines = verified.output.lines();
    let damaged = "damaged: blob=`a`, error=`the object store failed`";
    assert!(lines.next().unwrap().starts_with(damaged), "{verified:?}");
    assert_eq!(lines.next().unwrap(), "verified 4 blobs (146.48 KiB), 1 damaged");
}
