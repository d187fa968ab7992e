//! The command `repair`: it shows what a store that does not open would lose, and removes it only with `--accept-loss`.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tempfile::{TempDir, tempdir};
use trestle_tests::Server;

use crate::client::{Ended, bare, succeeds};

const ROWS: usize = 8;

/// A server with rows that were inserted one by one, killed; their table is `rows`.
struct KilledStore {
    data: TempDir,
}

impl KilledStore {
    fn new() -> Self {
        let store = Self { data: tempdir().unwrap() };
        let server = store.serve();
        succeeds(&server, &["table", "create", "rows"]);
        for row in 0..ROWS {
            let name = format!("row-{row}");
            let value = format!("value={}", "v".repeat(200 + row));
            succeeds(&server, &["table", "insert", "rows", "-p", "p", "-r", &name, "-s", &value]);
        }
        server.kill();
        store
    }

    fn path(&self) -> &str {
        self.data.path().to_str().unwrap()
    }

    fn journal(&self) -> PathBuf {
        self.data.path().join("kv/db/0.jnl")
    }

    fn serve(&self) -> Server {
        Server::start(&["--data-dir", self.path()], &[])
    }

    /// The rows of a server.
    fn rows(&self) -> Vec<String> {
        let ended = succeeds(&self.serve(), &["table", "export", "rows", "-"]);
        let names = (0..ROWS).map(|row| format!("row-{row}"));
        names.filter(|name| ended.output.contains(&format!("\"{name}\""))).collect()
    }

    /// Starts a server that must be rejected.
    fn rejected(&self) -> Ended {
        let free = "127.0.0.1:0";
        let mut serve = bare(&["serve", "--data-dir", self.path(), "--listen", free]);
        serve.args(["--admin", free, "--azure-table", free, "--azure-queue", free]);
        serve.args(["--azure-blob", free]);
        let ended = Ended::of(serve);
        assert_eq!(ended.code, Some(4), "{ended:?}");
        ended
    }

    fn repair(&self, more: &[&str]) -> Ended {
        let mut repair = bare(&["repair", "--data-dir", self.path()]);
        repair.args(more);
        Ended::of(repair)
    }

    /// Changes the journal at the value of a row, and what follows it; what it holds then.
    fn damage(&self, row: usize, damage: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let mut bytes = fs::read(self.journal()).unwrap();
        let value = "v".repeat(200 + row);
        let at = bytes.windows(value.len()).position(|part| part == value.as_bytes()).unwrap();
        damage(&mut bytes[at..]);
        fs::write(self.journal(), &bytes).unwrap();
        bytes
    }
}

fn contains(ended: &Ended, parts: &[&str]) {
    for part in parts {
        assert!(ended.output.contains(part) || ended.errors.contains(part), "{part}: {ended:?}");
    }
}

#[test]
fn repair_reports_damaged_rows_and_removes_only_those() {
    let store = KilledStore::new();
    let damaged = store.damage(5, |bytes| bytes[0] ^= 1);
    let rejected = store.rejected();
    contains(&rejected, &["db/0.jnl", "offset=`", "groups_after=`", "trestle repair"]);

    let shown = store.repair(&[]);

    assert_eq!(shown.code, Some(4), "{shown:?}");
    let parts = [
        "damaged, would be lost: file=`db/0.jnl`",
        "groups_at_most=`1`",
        "recognised_rows=`entity=1`",
    ];
    contains(&shown, &parts);
    contains(&shown, &["nothing was changed", "--accept-loss"]);
    assert!(fs::read(store.journal()).unwrap() == damaged, "the journal was changed");
    assert_eq!(store.rejected().errors, rejected.errors);

    let repaired = store.repair(&["--accept-loss"]);

    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    let originals = store.data.path().join("kv/damaged-1");
    contains(&repaired, &[originals.to_str().unwrap()]);
    assert!(fs::read(originals.join("0.jnl")).unwrap() == damaged, "the original is not kept");
    let kept: Vec<_> = (0..ROWS).filter(|row| *row != 5).map(|row| format!("row-{row}")).collect();
    assert_eq!(store.rows(), kept);
    assert_eq!(store.repair(&[]).code, Some(0));
}

#[test]
fn repair_reports_a_missing_journal_and_accepts_its_loss() {
    let store = KilledStore::new();
    assert_eq!(store.serve().terminate(), Some(0));
    fs::remove_file(store.journal()).unwrap();
    contains(&store.rejected(), &["every journal is missing", "trestle repair"]);

    let shown = store.repair(&[]);
    assert_eq!(shown.code, Some(4), "{shown:?}");
    contains(&shown, &["a journal is missing: file=`db/0.jnl`, left=`", "nothing was changed"]);
    store.rejected();

    assert_eq!(store.repair(&["--accept-loss"]).code, Some(0));
    // Rows that were flushed before exist.
    succeeds(&store.serve(), &["table", "list"]);
    assert!(store.data.path().join("kv/damaged-1/CLOSED").exists());
}

#[test]
fn a_torn_end_needs_no_repair() {
    let store = KilledStore::new();
    let bytes = store.damage(ROWS - 1, |bytes| bytes[100..].fill(0));

    let shown = store.repair(&[]);

    assert_eq!(shown.code, Some(0), "{shown:?}");
    contains(&shown, &["torn end, never acknowledged", "nothing to repair"]);
    assert!(fs::read(store.journal()).unwrap() == bytes, "the journal was changed");
    assert_eq!(store.rows().len(), ROWS - 1);
}

#[test]
fn reports_what_cannot_be_repaired() {
    let store = KilledStore::new();
    let running = store.serve();
    let locked = store.repair(&["--accept-loss"]);
    assert_eq!(locked.code, Some(3), "{locked:?}");
    running.kill();

    fs::remove_dir_all(store.data.path().join("kv/db/keyspaces/1")).unwrap();
    let missing = store.repair(&["--accept-loss"]);
    assert_eq!(missing.code, Some(4), "{missing:?}");
    contains(&missing, &["db/keyspaces/1", "a repair cannot bring it back"]);

    let empty = tempdir().unwrap();
    for path in [empty.path(), Path::new("/nonexistent")] {
        let none = Ended::of(bare(&["repair", "--data-dir", path.to_str().unwrap()]));
        assert_eq!(none.code, Some(4), "{none:?}");
        assert!(!empty.path().join("kv").exists());
    }
}

#[test]
fn repair_names_a_damaged_table_and_keeps_what_can_be_read() {
    let store = KilledStore::new();
    assert_eq!(store.serve().terminate(), Some(0));
    let compacted = Ended::of(bare(&["compact", "--data-dir", store.path()]));
    assert_eq!(compacted.code, Some(0), "{compacted:?}");
    let tables = store.data.path().join("kv/db/keyspaces/2/tables");
    let table = fs::read_dir(tables).unwrap().next().unwrap().unwrap().path();
    fs::write(&table, "damaged").unwrap();
    let named =
        ["file=`db/keyspaces/2/tables/", "keyspace=`entity`", "problem=`checksum mismatch`"];
    let rejected = store.rejected();
    contains(&rejected, &named);
    contains(&rejected, &["trestle repair"]);
    assert!(!rejected.errors.contains("Unrecoverable"), "{rejected:?}");

    let shown = store.repair(&[]);

    assert_eq!(shown.code, Some(4), "{shown:?}");
    contains(&shown, &named);
    contains(&shown, &["nothing was changed", "--accept-loss"]);

    let repaired = store.repair(&["--accept-loss"]);

    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    contains(&repaired, &["keyspace=`meta`, rows=`", "/kv-damaged-1`", "compare with a backup"]);
    // The journal has them.
    assert_eq!(store.rows().len(), ROWS);
    assert_eq!(
        fs::read(
            store
                .data
                .path()
                .join("kv-damaged-1/db/keyspaces/2/tables")
                .join(table.file_name().unwrap(),)
        )
        .unwrap(),
        b"damaged"
    );
}

#[test]
fn a_store_that_is_lost_beside_its_objects_is_not_made_anew() {
    let store = KilledStore::new();
    let server = store.serve();
    succeeds(&server, &["blob", "container", "create", "photos"]);
    let content = store.data.path().join("content");
    fs::write(&content, vec![7; 100_000]).unwrap();
    succeeds(&server, &["blob", "cp", content.to_str().unwrap(), "blob://photos/a"]);
    assert_eq!(server.terminate(), Some(0));
    let (kv, aside) = (store.data.path().join("kv"), store.data.path().join("aside"));
    fs::rename(&kv, &aside).unwrap();

    let rejected = store.rejected();

    contains(&rejected, &["storage is damaged", "there are objects of one", "/blob`"]);
    assert!(!kv.exists(), "nothing is made");
    fs::rename(&aside, &kv).unwrap();
    let read = succeeds(&store.serve(), &["blob", "cat", "photos/a"]).output;
    assert_eq!(read.as_bytes(), vec![7; 100_000]);
}

/// The files below a folder, with what they hold.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = files.partition(|path| path.is_dir());
    let files = files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap()));
    files.chain(folders.iter().flat_map(|folder| contents(folder))).collect()
}

/// The only table of a keyspace.
fn table(store: &KilledStore, keyspace: &str) -> PathBuf {
    let tables = store.data.path().join("kv/db/keyspaces").join(keyspace).join("tables");
    fs::read_dir(tables).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn numbers_are_not_given_again_where_a_repair_lost_their_counters() {
    let store = KilledStore::new();
    let server = store.serve();
    succeeds(&server, &["blob", "container", "create", "photos"]);
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("big"), vec![7; 100_000]).unwrap();
    (0..300).for_each(|file| fs::write(folder.path().join(format!("{file}")), "x").unwrap());
    let photos = format!("{}/", folder.path().display());
    succeeds(&server, &["blob", "cp", "-r", &photos, "blob://photos/"]);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(Ended::of(bare(&["compact", "--data-dir", store.path()])).code, Some(0));
    fs::remove_file(store.journal()).unwrap();
    // The catalog of tables, and the first block of blobs: containers and counters.
    fs::remove_file(table(&store, "1")).unwrap();
    let mut bytes = fs::read(table(&store, "6")).unwrap();
    bytes[60] ^= 1;
    fs::write(table(&store, "6"), bytes).unwrap();

    let repaired = store.repair(&["--accept-loss"]);

    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    contains(&repaired, &["lost, nothing of it can be read: file=`db/keyspaces/1/tables/"]);
    contains(&repaired, &["keyspace=`entity`, rows=`8`", "  lost, between keys: after="]);
    let objects = contents(&store.data.path().join("blob"));
    let server = store.serve();
    succeeds(&server, &["table", "create", "other"]);
    assert_eq!(succeeds(&server, &["table", "export", "other", "-"]).output, "");
    succeeds(&server, &["blob", "container", "create", "other"]);
    let listed = succeeds(&server, &["blob", "ls", "other/", "-o", "jsonl"]);
    assert_eq!(listed.output, "");
    fs::write(folder.path().join("big"), vec![8; 100_000]).unwrap();
    let big = folder.path().join("big").display().to_string();
    succeeds(&server, &["blob", "cp", &big, "blob://other/big"]);
    let after = contents(&store.data.path().join("blob"));
    assert_eq!(after.len(), objects.len() + 1);
    assert!(objects.iter().all(|(object, bytes)| after.get(object) == Some(bytes)));
}

#[test]
fn a_repaired_store_is_for_its_owner_alone() {
    let store = KilledStore::new();
    assert_eq!(store.serve().terminate(), Some(0));
    assert_eq!(Ended::of(bare(&["compact", "--data-dir", store.path()])).code, Some(0));
    fs::write(table(&store, "2"), "damaged").unwrap();

    assert_eq!(store.repair(&["--accept-loss"]).code, Some(0));

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let kv = store.data.path().join("kv");
    assert_eq!(mode(&kv), 0o700);
    let files = contents(&kv);
    let open: Vec<_> = files.keys().filter(|file| mode(file) != 0o600).collect();
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_repair_of_a_journal_that_loses_a_counter_costs_no_blob_its_content() {
    let store = KilledStore::new();
    let content = store.data.path().join("content");
    let upload = |server: &Server, name: &str, byte: u8| {
        fs::write(&content, vec![byte; 100_000]).unwrap();
        succeeds(server, &["blob", "cp", content.to_str().unwrap(), name]);
    };
    let server = store.serve();
    succeeds(&server, &["blob", "container", "create", "photos"]);
    upload(&server, "blob://photos/a", 7);
    server.kill();
    // The row of the next content id, which a group of its own wrote.
    let mut bytes = fs::read(store.journal()).unwrap();
    let counter = [0x52, 1, 1, 0, 0, 0];
    let at = bytes.windows(counter.len()).position(|part| part == counter).unwrap();
    bytes[at + 9] ^= 1;
    fs::write(store.journal(), bytes).unwrap();

    let repaired = store.repair(&["--accept-loss"]);

    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    contains(&repaired, &["groups_at_most=`1`", "recognised_rows=`blob_meta="]);
    let server = store.serve();
    upload(&server, "blob://photos/b", 8);
    for (name, byte) in [("photos/a", 7), ("photos/b", 8)] {
        let read = succeeds(&server, &["blob", "cat", name]).output;
        assert!(read.as_bytes() == vec![byte; 100_000], "{name}");
    }
}

#[test]
fn a_table_that_is_another_one_is_named_though_all_of_it_can_be_read() {
    let store = KilledStore::new();
    assert_eq!(store.serve().terminate(), Some(0));
    assert_eq!(Ended::of(bare(&["compact", "--data-dir", store.path()])).code, Some(0));
    // That of queues in the place of that of tables.
    fs::copy(table(&store, "3"), table(&store, "1")).unwrap();
    contains(&store.repair(&[]), &["file=`db/keyspaces/1/tables/", "checksum mismatch"]);

    let repaired = store.repair(&["--accept-loss"]);

    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    let named = "read without an error, but not as it was written: file=`db/keyspaces/1/tables/";
    contains(&repaired, &[named]);
}

#[test]
fn copies_of_a_repair_that_was_killed_are_removed_by_the_next_one() {
    let store = KilledStore::new();
    assert_eq!(store.serve().terminate(), Some(0));
    let copies = ["kv-readable", "kv-repaired"].map(|copy| store.data.path().join(copy));
    for copy in &copies {
        fs::create_dir(copy).unwrap();
        fs::write(copy.join("RESTORING"), "").unwrap();
    }

    let shown = store.repair(&[]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(copies.iter().all(|copy| copy.exists()), "nothing is changed without --accept-loss");

    let repaired = store.repair(&["--accept-loss"]);
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    contains(&repaired, &["nothing to repair"]);
    assert!(copies.iter().all(|copy| !copy.exists()));
    assert_eq!(store.rows().len(), ROWS);
}
