//! `trestle backup`: what a server had at the instant is what a restored one has.

mod continuous;
mod damaged;
mod diffs;
mod documented;
mod encrypted;
mod interrupted;
mod kept;
mod mounted;
mod named;
mod scheduled;
mod served;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use trestle_tests::Server;

use crate::client::{Ended, bare, run, succeeds, trestle};

/// Bytes of the blob: three extents.
const BLOB_BYTES: usize = 9 * 1024 * 1024;

/// A data directory and the directory of its backups.
struct Backups {
    folder: TempDir,
}

impl Backups {
    fn new() -> Self {
        Self { folder: tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn serve(&self, data_dir: &str) -> Server {
        Server::start(&["--data-dir", &self.text(data_dir)], &[])
    }

    /// Runs `trestle backup COMMAND TARGET` with more arguments.
    fn backup(&self, command: &str, args: &[&str]) -> Ended {
        let target = self.text("target");
        Ended::of(bare(&[&["backup", command, &target], args].concat()))
    }

    /// Backs `data` up; its record.
    fn create(&self) -> Value {
        let data = self.text("data");
        let created = self.backup("create", &["--data-dir", &data, "-o", "json"]);
        assert_eq!(created.code, Some(0), "{created:?}");
        serde_json::from_str(&created.output).unwrap()
    }

    fn restore(&self, data_dir: &str, args: &[&str]) -> Ended {
        let data_dir = self.text(data_dir);
        self.backup("restore", &[&["--data-dir", &data_dir], args].concat())
    }

    /// How many lists the newest backup has.
    fn lists(&self) -> u64 {
        let shown = self.backup("show", &["-o", "json"]).output;
        serde_json::from_str::<Value>(&shown).unwrap()["lists"].as_u64().unwrap()
    }

    /// The files of the target, by their paths in it, without drafts: a command that is ended may leave one, under the
    /// name of the file with `#` and a number, and both may be one file then.
    fn parts(&self) -> Vec<PathBuf> {
        let mut parts = Vec::new();
        let mut folders = vec![self.path("target")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { parts.push(path) }
            }
        }
        parts.retain(|path| !path.to_str().unwrap().contains('#'));
        parts.sort();
        parts
    }
}

/// Bytes without repetitions.
fn content() -> Vec<u8> {
    let (mut state, mut bytes) = (1_u64, Vec::with_capacity(BLOB_BYTES));
    while bytes.len() < BLOB_BYTES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // The low bits repeat soon.
        bytes.extend((state ^ (state >> 32)).to_le_bytes());
    }
    bytes
}

/// Something of every service.
fn fill(server: &Server, folder: &Path) {
    let (blob, lines) = (folder.join("content"), folder.join("lines"));
    fs::write(&blob, content()).unwrap();
    fs::write(&lines, "{\"body\":\"first\"}\n{\"body\":\"second\"}\n").unwrap();
    let (blob, lines) = (blob.to_str().unwrap(), lines.to_str().unwrap());
    succeeds(server, &["table", "create", "orders"]);
    for row in ["1", "2", "3"] {
        succeeds(server, &["entity", "insert", "orders", "-p", "p", "-r", row, "--set", "v=old"]);
    }
    succeeds(server, &["queue", "create", "jobs"]);
    succeeds(server, &["message", "send", "jobs", "resize"]);
    succeeds(server, &["blob", "container", "create", "pictures"]);
    succeeds(server, &["blob", "cp", blob, "blob://pictures/cat"]);
    succeeds(server, &["blob", "cp", lines, "blob://pictures/small"]);
    succeeds(server, &["log", "create", "app"]);
    succeeds(server, &["log", "append", "app", lines]);
}

/// What a person sees of it.
fn shown(server: &Server, folder: &Path) -> Vec<String> {
    let blob = folder.join("read");
    succeeds(server, &["blob", "cp", "blob://pictures/cat", blob.to_str().unwrap()]);
    assert!(fs::read(&blob).unwrap() == content());
    fs::remove_file(&blob).unwrap();
    let outputs = [
        &["table", "export", "orders", "-"][..],
        &["message", "peek", "jobs", "-o", "jsonl"],
        &["blob", "ls", "pictures", "-o", "jsonl"],
        &["blob", "cat", "blob://pictures/small"],
        &["log", "read", "app", "--json"],
    ];
    outputs.iter().map(|args| succeeds(server, args).output).collect()
}

#[test]
fn a_restored_store_has_what_the_server_had_at_the_instant_and_goes_on() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    let before = shown(&server, backups.folder.path());
    let created = backups.create();
    assert_eq!((&created["objects"], &created["damage"]), (&3.into(), &Value::Array(vec![])));

    for change in [
        &["entity", "delete", "orders", "-p", "p", "-r", "1"][..],
        &["blob", "rm", "blob://pictures/cat"],
        &["message", "send", "jobs", "later"],
        &["table", "create", "later"],
    ] {
        succeeds(&server, change);
    }
    let restored = backups.restore("restored", &[]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let copy = backups.serve("restored");
    assert_eq!(shown(&copy, backups.folder.path()), before);
    assert_eq!(run(&copy, &["entity", "query", "later"]).code, Some(3));
    // Both go on, each on its own.
    succeeds(&copy, &["message", "send", "jobs", "of the copy"]);
    succeeds(&copy, &["entity", "insert", "orders", "-p", "p", "-r", "9", "--set", "v=new"]);
    succeeds(&copy, &["log", "append", "app", backups.path("lines").to_str().unwrap()]);
    succeeds(&server, &["entity", "query", "later"]);
    let ids = ["data", "restored"].map(|it| fs::read(backups.path(it).join("store-id")).unwrap());
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn what_was_sent_is_not_sent_again_and_a_stopped_store_is_backed_up_too() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    let first = backups.create();
    assert!(first["sent_bytes"].as_u64().unwrap() > BLOB_BYTES as u64, "{first}");

    succeeds(&server, &["entity", "insert", "orders", "-p", "p", "-r", "4", "--set", "v=new"]);
    let second = backups.create();
    assert!(second["sent_bytes"].as_u64().unwrap() < 64 * 1024, "{second}");
    assert_eq!(server.terminate(), Some(0));
    let third = backups.create();
    assert_eq!(third["rows"], second["rows"]);

    let listed = backups.backup("list", &["-o", "jsonl"]).output;
    let ids: Vec<String> = listed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
        .collect();
    let expected = [&first, &second, &third].map(|it| it["id"].as_str().unwrap().to_owned());
    assert_eq!(ids, expected);
    let shown = backups.backup("show", &["--id", &ids[0], "-o", "json"]).output;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["rows"], first["rows"]);
    assert_eq!(backups.backup("verify", &["--all"]).code, Some(0));
    // The spool is empty again.
    assert_eq!(fs::read_dir(backups.path("data").join("backup")).unwrap().count(), 0);
}

#[test]
fn the_data_directory_is_that_of_the_configuration_where_none_is_named() {
    let backups = Backups::new();
    let server = backups.serve("store");
    succeeds(&server, &["table", "create", "orders"]);
    fs::write(backups.path("trestle.toml"), "[storage]\ndata_dir = \"store\"\n").unwrap();
    let create = |change: &dyn Fn(&mut Command)| {
        let mut create = bare(&["backup", "create", &backups.text("target"), "-o", "json"]);
        change(create.current_dir(backups.folder.path()));
        let created = Ended::of(create);
        assert_eq!(created.code, Some(0), "{created:?}");
        serde_json::from_str::<Value>(&created.output).unwrap()["rows"].clone()
    };
    let found = create(&|_| {});
    fs::rename(backups.path("trestle.toml"), backups.path("other.toml")).unwrap();
    let named = create(&|it| {
        it.env("TRESTLE_CONFIG", backups.path("other.toml"));
    });
    assert!(found == named && found.as_u64().unwrap() > 0, "{found} {named}");
}

#[test]
fn pruning_deletes_what_only_dropped_backups_have() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    backups.create();
    let parts = backups.parts().len();
    succeeds(&server, &["entity", "insert", "orders", "-p", "p", "-r", "4", "--set", "v=new"]);
    backups.create();
    assert!(backups.parts().len() > parts + 1);

    let foreign = backups.path("target/parts/keep.txt");
    fs::write(&foreign, "x").unwrap();
    assert_eq!(backups.backup("prune", &[]).code, Some(2), "no rule");
    let planned = backups.backup("prune", &["--keep-last", "1", "--dry-run", "-o", "json"]);
    let before = backups.parts();
    let done = backups.backup("prune", &["--keep-last", "1", "-o", "json"]);
    let read = |ended: &Ended| serde_json::from_str::<Value>(&ended.output).unwrap();
    let (planned, done) = (read(&planned), read(&done));
    assert_eq!((&planned["parts"], &planned["bytes"]), (&done["parts"], &done["bytes"]));
    let deleted = before.len() - backups.parts().len();
    assert_eq!(deleted as u64, done["parts"].as_u64().unwrap() + 1, "{done}");
    assert!(foreign.exists());
    assert_eq!(backups.backup("verify", &["--all"]).code, Some(0));
    assert_eq!(backups.restore("restored", &[]).code, Some(0));
    shown(&backups.serve("restored"), backups.folder.path());
}

#[test]
fn a_target_and_a_directory_of_something_else_are_not_touched() {
    let backups = Backups::new();
    let server = backups.serve("data");
    succeeds(&server, &["table", "create", "orders"]);
    let none = backups.backup("list", &[]);
    assert_eq!(none.code, Some(2), "{none:?}");
    fs::create_dir(backups.path("target")).unwrap();
    let none = backups.backup("list", &[]);
    assert!(none.errors.contains("no backups are at this target"), "{none:?}");
    backups.create();

    let other = backups.serve("other");
    let data = backups.text("other");
    let refused = backups.backup("create", &["--data-dir", &data]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.errors.contains("the backups of another data directory"), "{refused:?}");
    drop(other);
    let refused = backups.restore("other", &[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let data = backups.text("data");
    let own = Ended::of(bare(&["backup", "create", &format!("{data}/x"), "--data-dir", &data]));
    assert_eq!(own.code, Some(2), "{own:?}");
    assert!(own.errors.contains("must be outside of the data directory"), "{own:?}");
    fs::create_dir(backups.path("empty")).unwrap();
    let empty = backups.text("empty");
    let none = backups.backup("create", &["--data-dir", &empty]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.errors.contains("there is no store in the data directory"), "{none:?}");
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    let unknown = backups.backup("show", &["--id", "x"]);
    assert!(unknown.errors.contains("no such backup") && unknown.errors.contains("id=`x`"));
    assert_eq!(unknown.code, Some(2));
    backups.serve("other");
}
