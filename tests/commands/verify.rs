//! `trestle verify`.

use std::{fs, path::Path};

use serde_json::Value;
use trestle_tests::Server;

use crate::client::{Ended, bare, run, server, succeeds};

/// Something of every kind.
fn fill(server: &Server, folder: &Path) {
    let (content, lines) = (folder.join("content"), folder.join("lines"));
    fs::write(&content, vec![7; 100_000]).unwrap();
    fs::write(&lines, "{\"body\":\"one\"}\n{\"body\":\"two\"}\n").unwrap();
    let (content, lines) = (content.to_str().unwrap(), lines.to_str().unwrap());
    succeeds(server, &["table", "create", "orders"]);
    for row in ["1", "2", "3"] {
        succeeds(server, &["entity", "insert", "orders", "-p", "p", "-r", row, "--set", "v=a"]);
    }
    succeeds(server, &["queue", "create", "jobs"]);
    succeeds(server, &["message", "send", "jobs", "visible"]);
    succeeds(server, &["message", "send", "jobs", "later", "--delay", "1h"]);
    succeeds(server, &["blob", "container", "create", "photos"]);
    succeeds(server, &["blob", "cp", content, "blob://photos/cat"]);
    succeeds(server, &["blob", "cp", content, "blob://photos/dog"]);
    succeeds(server, &["log", "create", "app"]);
    succeeds(server, &["log", "append", "app", lines]);
    succeeds(server, &["log", "flush", "app"]);
    succeeds(server, &["log", "append", "app", lines]);
}

fn verify(server: &Server, args: &[&str]) -> (Ended, Vec<Value>) {
    let ended = run(server, &[&["verify", "-o", "jsonl"], args].concat());
    let records = ended.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (ended, records)
}

/// The kind, the name, the state and the number of items of each.
fn states(records: &[Value]) -> Vec<String> {
    let text = |record: &Value| {
        let field = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        format!("{}/{} {} {}", field("kind"), field("name"), field("state"), record["items"])
    };
    records.iter().map(text).collect()
}

#[test]
fn everything_of_an_account_is_read() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    fill(&server, folder.path());

    let (ended, records) = verify(&server, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let all =
        ["table/orders whole 3", "queue/jobs whole 2", "blob/photos whole 2", "log/app whole 1"];
    assert_eq!(states(&records), all);
    assert!(records.iter().all(|record| record["bytes"].as_u64().unwrap() > 0), "{records:?}");
    let shown = succeeds(&server, &["verify", "-o", "table"]);
    assert!(shown.errors.contains("verified 4 of 4 things"), "{shown:?}");

    let (_, some) = verify(&server, &["--only", "queue,log"]);
    assert_eq!(states(&some), [all[1], all[3]]);
    let (_, named) = verify(&server, &["blob/photos", "table/orders"]);
    assert_eq!(states(&named), [all[2], all[0]]);
    let (absent, rest) = verify(&server, &["table/absent", "queue/jobs"]);
    assert_eq!(absent.code, Some(3), "{absent:?}");
    assert_eq!(states(&rest), ["table/absent not verified 0", all[1]], "the rest is read");
    assert!(rest[0]["error"].as_str().unwrap().contains("absent"), "{rest:?}");
    let (malformed, _) = verify(&server, &["orders"]);
    assert_eq!(malformed.code, Some(2));
    assert!(malformed.errors.contains("table/NAME"), "{malformed:?}");
}

#[test]
fn what_is_damaged_is_named_and_the_rest_is_read() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&["--data-dir", data.path().to_str().unwrap()], &[]);
    let folder = tempfile::tempdir().unwrap();
    fill(&server, folder.path());
    for objects in ["blob", "log"] {
        change_one(&data.path().join(objects));
    }

    let (ended, records) = verify(&server, &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let expected = [
        "table/orders whole 3",
        "queue/jobs whole 2",
        "blob/photos damaged item null",
        "blob/photos damaged 2",
        "log/app damaged item null",
        "log/app damaged 1",
    ];
    assert_eq!(states(&records), expected);
    let blob = records[2]["item"].as_str().unwrap();
    assert!(["cat", "dog"].contains(&blob), "{records:?}");
    for damage in [&records[2], &records[4]] {
        assert!(damage["error"].as_str().is_some_and(|error| !error.is_empty()), "{damage}");
    }
    // What is known to be damaged is named again.
    let (again, records) = verify(&server, &[]);
    assert_eq!((again.code, states(&records)), (Some(1), expected.map(str::to_owned).to_vec()));
    let shown = run(&server, &["verify", "-o", "table"]);
    assert!(shown.errors.contains("verified 4 of 4 things"), "{shown:?}");
    assert!(shown.errors.contains("), 2 damaged"), "{shown:?}");
}

/// Changes a byte of a file in a directory or in those in it.
fn change_one(directory: &Path) {
    let mut entries: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    while let Some(path) = entries.pop() {
        if path.is_dir() {
            entries.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let mut bytes = fs::read(&path).unwrap();
        if bytes.len() < 200 {
            continue;
        }
        bytes[100] ^= 1;
        fs::write(&path, bytes).unwrap();
        return;
    }
    panic!("no object in {directory:?}");
}

#[test]
fn kinds_that_are_not_served_are_left_out_and_so_said() {
    let server = Server::start(&["--ephemeral", "--roles", "table"], &[]);
    succeeds(&server, &["table", "create", "orders"]);

    let ended = run(&server, &["verify", "-o", "plain"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.output.contains("orders"), "{ended:?}");
    for kind in ["queue", "blob", "log"] {
        assert!(ended.errors.contains(&format!("{kind}: not served here")), "{ended:?}");
    }
    let (only, _) = verify(&server, &["--only", "queue"]);
    assert_eq!(only.code, Some(6), "{only:?}");
}

#[test]
fn what_a_credential_does_not_permit_is_not_verified() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    fill(&server, folder.path());
    let args = ["sas", "account", "--account", "devstoreaccount1", "--services", "t"];
    let more = ["--resource-types", "sco", "--permissions", "rl", "--expiry", "1h"];
    let sas = Ended::of(bare(&[&args[..], &more].concat()));
    assert_eq!(sas.code, Some(0), "{sas:?}");

    let (ended, records) = verify(&server, &["--sas", sas.output.trim()]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let expected = [
        "table/orders whole 3",
        "queue/ not verified null",
        "blob/ not verified null",
        "log/ not verified null",
    ];
    assert_eq!(states(&records), expected);
}
