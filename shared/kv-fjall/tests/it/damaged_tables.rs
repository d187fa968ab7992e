//! Damaged tables are named, and a repair keeps every row that can be read.

use std::fs;
use std::path::{Path, PathBuf};

use trestle_kv::conformance::KEYSPACES;
use trestle_kv_fjall::{DamagedFile, FileProblem, FjallEngine, OpenError, RepairPlan};

use crate::world::{commit, everything, get, key, noise, open, options, put};

const ROWS: usize = 400;

fn name(row: usize) -> String {
    format!("row-{row:04}")
}

/// A closed store whose rows are in a table of each of its first two keyspaces, but for one in the journal.
async fn store() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("kv");
    let engine = open(&directory);
    for row in 0..ROWS {
        let value = noise(row as u64, 1000);
        commit(&*engine, vec![put(key(name(row)), value)]).await.unwrap();
    }
    commit(&*engine, vec![put(vec![0x41, b'a'], "other")]).await.unwrap();
    drop(engine);
    trestle_kv_fjall::compact(&options(&directory)).unwrap();
    let engine = open(&directory);
    commit(&*engine, vec![put(key("journaled"), "value")]).await.unwrap();
    root
}

fn kv(root: &tempfile::TempDir) -> PathBuf {
    root.path().join("kv")
}

/// The table of the first keyspace.
fn table(directory: &Path) -> PathBuf {
    let mut tables = fs::read_dir(directory.join("db/keyspaces/1/tables")).unwrap();
    let table = tables.next().unwrap().unwrap().path();
    assert!(tables.next().is_none());
    table
}

fn change(file: &Path, at: impl FnOnce(usize) -> usize) {
    let mut bytes = fs::read(file).unwrap();
    let at = at(bytes.len());
    bytes[at..at + 20].iter_mut().for_each(|byte| *byte ^= 0xff);
    fs::write(file, bytes).unwrap();
}

fn examine(directory: &Path) -> RepairPlan {
    RepairPlan::examine(directory, &KEYSPACES).unwrap()
}

fn damage(directory: &Path) -> Vec<DamagedFile> {
    let plan = examine(directory);
    assert_eq!(plan.is_needed(), !plan.damaged_files().is_empty());
    plan.damaged_files().to_vec()
}

#[tokio::test]
async fn every_table_of_a_sound_store_has_the_checksum_that_is_listed() {
    let root = store().await;

    assert_eq!(damage(&kv(&root)), []);

    table(&kv(&root));
    drop(open(&kv(&root)));
    assert_eq!(damage(&kv(&root)), []);
}

#[tokio::test]
async fn a_store_that_does_not_open_names_the_file_and_its_keyspace() {
    type Damage = fn(&Path);
    let damages: [(Damage, &str); 3] = [
        (|table| fs::remove_file(table).unwrap(), "missing"),
        (|table| fs::write(table, "").unwrap(), "checksum mismatch"),
        (|table| change(table, |bytes| bytes - 100), "checksum mismatch"),
    ];
    for (damage, problem) in damages {
        let root = store().await;
        let table = table(&kv(&root));
        damage(&table);

        let Err(error) = FjallEngine::open(options(&kv(&root))) else { panic!("opened") };

        assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
        let number = table.file_name().unwrap().to_str().unwrap();
        let file =
            format!("file=`db/keyspaces/1/tables/{number}`, keyspace=`{}`", KEYSPACES[0].name);
        for part in [file.as_str(), &format!("problem=`{problem}`"), "trestle repair"] {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    }
}

#[tokio::test]
async fn a_repair_reads_around_a_damaged_block_and_loses_only_its_rows() {
    let root = store().await;
    let before = fs::read(table(&kv(&root))).unwrap();
    change(&table(&kv(&root)), |bytes| bytes / 2);
    let [found] = &damage(&kv(&root))[..] else { panic!("one table is damaged") };
    assert_eq!((found.problem, found.keyspace), (FileProblem::Changed, Some(KEYSPACES[0].name)));
    assert_eq!(found.bytes, before.len() as u64);

    let done = examine(&kv(&root)).accept_loss().unwrap();

    assert_eq!(done.originals, root.path().join("kv-damaged-1"));
    assert_eq!(damage(&kv(&root)), []);
    let (first, others) = done.salvaged.split_first().unwrap();
    assert_eq!(first.gaps, 1);
    assert!(others.iter().all(|keyspace| keyspace.gaps == 0));
    let engine = open(&kv(&root));
    let rows = everything(&*engine).await;
    assert_eq!(rows.len() as u64, first.rows);
    // A block has a few rows of that size.
    assert!((ROWS - 12..=ROWS).contains(&rows.len()), "{}", rows.len());
    for entry in &rows {
        let Some(row) = entry.key.strip_prefix(b"\x01row-") else { continue };
        let row: u64 = std::str::from_utf8(row).unwrap().parse().unwrap();
        assert_eq!(entry.value, noise(row, 1000));
    }
    assert_eq!(get(&*engine, &key("journaled")).await, Some("value".into()));
    assert_eq!(get(&*engine, &[0x41, b'a']).await, Some("other".into()));
    assert!(damage(&done.originals).len() == 1, "the originals are kept");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2, "nothing else is left");
}

#[tokio::test]
async fn a_repair_without_a_table_keeps_the_journals_and_the_other_keyspaces() {
    type Damage = fn(&Path);
    let damages: [Damage; 2] =
        [|table| fs::remove_file(table).unwrap(), |table| change(table, |bytes| bytes - 100)];
    for damage_table in damages {
        let root = store().await;
        damage_table(&table(&kv(&root)));

        let done = examine(&kv(&root)).accept_loss().unwrap();

        // The journals still have all rows.
        assert_eq!(done.salvaged[0].rows, ROWS as u64 + 1);
        let engine = open(&kv(&root));
        assert_eq!(get(&*engine, &key("journaled")).await, Some("value".into()));
        assert_eq!(get(&*engine, &[0x41, b'a']).await, Some("other".into()));
        commit(&*engine, vec![put(key("later"), "value")]).await.unwrap();
    }
}

#[tokio::test]
async fn a_repair_rebuilds_a_damaged_list_of_tables_from_the_files() {
    for part in ["current", "v"] {
        let root = store().await;
        let keyspace = kv(&root).join("db/keyspaces/1");
        for entry in fs::read_dir(&keyspace).unwrap().map(Result::unwrap) {
            if entry.file_name().to_str().unwrap().starts_with(part) {
                fs::write(entry.path(), [0; 8]).unwrap();
            }
        }
        let [found] = &damage(&kv(&root))[..] else { panic!("one file is damaged") };
        assert!(found.file.starts_with("db/keyspaces/1/"), "{found}");

        let done = examine(&kv(&root)).accept_loss().unwrap();

        assert_eq!(done.salvaged[0].rows, ROWS as u64 + 1);
        let engine = open(&kv(&root));
        assert_eq!(everything(&*engine).await.len(), ROWS + 1);
    }
}

#[tokio::test]
async fn a_repair_takes_damaged_journals_and_damaged_tables_together() {
    let root = store().await;
    for entry in fs::read_dir(kv(&root).join("db")).unwrap().map(Result::unwrap) {
        if entry.file_name().to_str().unwrap().ends_with(".jnl") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    change(&table(&kv(&root)), |bytes| bytes / 2);

    let done = examine(&kv(&root)).accept_loss().unwrap();

    assert!(done.salvaged[0].rows > ROWS as u64 - 12, "{done:?}");
    let engine = open(&kv(&root));
    assert_eq!(get(&*engine, &key("journaled")).await, None);
    assert_eq!(get(&*engine, &key(name(0))).await, Some(noise(0, 1000).into()));
}

#[tokio::test]
async fn names_of_keyspaces_that_are_damaged_cannot_be_repaired() {
    let root = store().await;
    let names = fs::read_dir(kv(&root).join("db/keyspaces/0/tables")).unwrap();
    names.map(Result::unwrap).for_each(|table| fs::write(table.path(), "").unwrap());

    let error = RepairPlan::examine(&kv(&root), &KEYSPACES).unwrap_err().to_string();

    for part in ["db/keyspaces/0/tables/", "a repair cannot bring it back", "restore a backup"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}
