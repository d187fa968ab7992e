//! Blobs of a workspace, and of an account that is another server: whole, damaged, changed, and killed on the way.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::Stdio,
    time::Instant,
};

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use trestle_identity::account::DEVELOPMENT_KEY;
use trestle_tests::{HANG, Server};

use crate::{
    blob_workspace::{BLOBS_FILE, BlobWorkspace, EXTENT},
    command::{run, start, succeeds, trestle},
};

/// A blob of more than one window.
const LARGE: usize = 9 * 1024 * 1024 + 7;
/// Enough blobs for three batches.
const MANY: usize = 1200;

fn large() -> Vec<u8> {
    (0..LARGE).map(|at| u8::try_from(at.wrapping_mul(31) >> 7 & 0xFF).unwrap()).collect()
}

/// One container with a blob of every type.
fn every_type() -> BlobWorkspace {
    let mut blobs = BlobWorkspace::default();
    let policy = r#"{"id":"p1","accessPolicy":{"start":"2026-01-01T00:00:00.0000000Z","permission":"rl"}}"#;
    blobs.container(
        "docs",
        &format!(
            r#""metadata":{{"Owner":"me"}},"properties":{{"publicAccess":"blob"}},"containerAcl":[{policy}]"#
        ),
    );
    let snapshot = "2026-11-28T12:23:38.3530000Z";
    let cool = r#","accessTier":"Cool","accessTierInferred":false"#;
    blobs.block("a/ü 1.txt", snapshot, b"before", [cool, ""]);
    let md5: Vec<_> = "6e809cbda0732ac4845916a59016f954".as_bytes().chunks(2).collect();
    let md5: Vec<_> = md5
        .iter()
        .enumerate()
        .map(|(at, hex)| {
            let byte = u8::from_str_radix(str::from_utf8(hex).unwrap(), 16).unwrap();
            format!(r#""{at}":{byte}"#)
        })
        .collect();
    let properties = format!(
        r#","cacheControl":"no-cache","contentMD5":{{{}}},"accessTier":"Hot","accessTierInferred":true"#,
        md5.join(",")
    );
    let tags = r#","metadata":{"K":"v"},"blobTags":{"blobTagSet":[{"key":"t","value":"1"}]}"#;
    blobs.block("a/ü 1.txt", "", b"hello2", [&properties, tags]);
    blobs.block("archived", "", b"cold", [r#","accessTier":"Archive""#, ""]);
    blobs.block("empty", "", b"", ["", ""]);
    blobs.block("large", "", &large(), ["", ""]);
    blobs.append("log", &[b"one", b"two!"], "");
    blobs.append("sealed", &[b"x"], r#","isSealed":true"#);
    blobs.pages("disk", 1 << 20, &[(512, &[1; 1024]), (4096, &[2; 512])]);
    blobs
}

fn written(blobs: &BlobWorkspace) -> TempDir {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("ws")).unwrap();
    blobs.write(&directory.path().join("ws"));
    directory
}

fn path(directory: &TempDir) -> String {
    directory.path().join("ws").to_str().unwrap().to_owned()
}

/// The connection string of the account of a server.
fn connection(server: &Server) -> String {
    let address = server.address("azure_blob");
    format!(
        "AccountName=devstoreaccount1;AccountKey={DEVELOPMENT_KEY};\
         BlobEndpoint=http://{address}/devstoreaccount1"
    )
}

/// The lines of a result.
fn lines(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a list has of each blob, without what every write makes anew.
fn listed(server: &Server, snapshots: bool) -> Vec<Value> {
    let mut args = vec!["blob", "ls", "docs", "--json"];
    args.extend(snapshots.then_some("--snapshots"));
    let mut found = lines(&succeeds(server, &args));
    for blob in &mut found {
        let members = blob.as_object_mut().unwrap();
        for name in ["etag", "last_modified", "create_time", "access_tier_change_time"] {
            members.remove(name);
        }
        if let Some(snapshot) = members.get_mut("snapshot") {
            *snapshot = Value::Bool(snapshot.as_str().is_some_and(|name| !name.is_empty()));
        }
    }
    found
}

fn stat(server: &Server, blob: &str) -> Value {
    let found = succeeds(server, &["blob", "stat", &format!("docs/{blob}"), "--json"]);
    serde_json::from_str(&found).unwrap()
}

/// Checks that a server has the blobs of [`every_type`].
fn check(server: &Server, directory: &Path) {
    let content = |name: &str| succeeds(server, &["blob", "cat", &format!("docs/{name}")]);
    assert_eq!((content("a/ü 1.txt").as_str(), content("empty").as_str()), ("hello2", ""));
    assert_eq!((content("log").as_str(), content("sealed").as_str()), ("onetwo!", "x"));
    for (name, expected) in [("large", large()), ("disk", disk())] {
        let file = directory.join(name);
        let _ = fs::remove_file(&file);
        let from = format!("blob://docs/{name}");
        succeeds(server, &["blob", "cp", &from, file.to_str().unwrap()]);
        assert!(fs::read(&file).unwrap() == expected, "{name}");
    }
    let first = stat(server, "a/ü 1.txt");
    assert_eq!(first["metadata"]["K"], "v", "{first}");
    assert_eq!(first["content_type"], "text/plain", "{first}");
    assert_eq!(first["cache_control"], "no-cache", "{first}");
    let tags = succeeds(server, &["blob", "tags", "show", "docs/a/ü 1.txt", "--json"]);
    assert!(tags.contains(r#""t":"1""#), "{tags}");
    assert_eq!(stat(server, "archived")["access_tier"], "ARCHIVE");
    assert_eq!(stat(server, "sealed")["is_sealed"], true);
    assert_eq!(stat(server, "disk")["sequence_number"], 7);
    let container = succeeds(server, &["blob", "container", "stat", "docs", "--json"]);
    assert!(container.contains(r#""Owner":"me""#), "{container}");
    assert!(container.to_lowercase().contains(r#""public_access":"blob""#), "{container}");
    let policies = succeeds(server, &["blob", "container", "policy", "list", "docs", "--json"]);
    assert!(policies.contains(r#""id":"p1""#), "{policies}");
}

fn disk() -> Vec<u8> {
    let mut disk = vec![0; 1 << 20];
    disk[512..1536].fill(1);
    disk[4096..4608].fill(2);
    disk
}

#[test]
fn blobs_of_every_type_are_copied_from_a_workspace_and_on_from_that_account() {
    let (first_data, second_data) = (tempdir().unwrap(), tempdir().unwrap());
    let (first, second) = (start(&first_data), start(&second_data));
    let directory = written(&every_type());

    let import = ["import", "azurite", &path(&directory), "--snapshots", "--json"];
    let output = succeeds(&first, &import);

    let found = lines(&output);
    let bytes = 6 + 6 + 4 + LARGE + 7 + 1 + (1 << 20);
    let summary = serde_json::json!({
        "tables": 0, "queues": 0, "containers": 1, "blobs": 9, "bytes": bytes, "not_copied": 0,
        "match": true,
    });
    assert_eq!(found.last(), Some(&summary), "{output}");
    assert_eq!(found[0]["container"], "docs", "{output}");
    assert_eq!(found[0]["digest_written"], found[0]["digest_target"], "{output}");
    check(&first, directory.path());
    let snapshots = listed(&first, true);
    assert_eq!(snapshots.len(), 9, "{snapshots:?}");
    assert_eq!(snapshots.iter().filter(|blob| blob["snapshot"] == true).count(), 1);

    // An archived blob cannot be read.
    succeeds(&first, &["blob", "rm", "docs/archived"]);
    let checkpoint = directory.path().join("checkpoint");
    let (connection, checkpoint) = (connection(&first), checkpoint.to_str().unwrap().to_owned());
    let import = ["import", "azure", &connection, "--checkpoint", &checkpoint, "--snapshots"];
    let output = succeeds(&second, &import);

    let last = output.lines().last().unwrap();
    assert!(last.starts_with("copied 0 tables, 0 queues, 1 container, 8 blobs ("), "{output}");
    let archive = ["import", "azurite", &path(&directory), "--into-existing"];
    let ended = run(&second, &archive);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    check(&second, directory.path());
}
