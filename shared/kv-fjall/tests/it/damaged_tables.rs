//! Damaged tables are named, and a repair keeps every row that can be read.

use std::fs;
use std::path::{Path, PathBuf};

use trestle_kv::conformance::KEYSPACES;
use trestle_kv_fjall::{
    DamagedFile, FileProblem, FjallEngine, FjallOptions, OpenError, RepairPlan,
};

use crate::world::{commit, everything, get, key, noise, open, options, put, rules};

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
async fn a_repair_reads_around_a_damaged_block_and_takes_its_rows_from_the_journals() {
    let root = store().await;
    let before = fs::read(table(&kv(&root))).unwrap();
    change(&table(&kv(&root)), |bytes| bytes / 2);
    let [found] = &damage(&kv(&root))[..] else { panic!("one table is damaged") };
    assert_eq!((found.problem, found.keyspace), (FileProblem::Changed, Some(KEYSPACES[0].name)));
    assert_eq!(found.bytes, before.len() as u64);

    let done = examine(&kv(&root)).accept_loss(&rules()).unwrap();

    assert_eq!(done.originals, root.path().join("kv-damaged-1"));
    assert_eq!(damage(&kv(&root)), []);
    let (first, others) = done.salvaged.split_first().unwrap();
    assert_eq!(first.unreadable.count, 1);
    assert!(others.iter().all(|keyspace| keyspace.unreadable.count == 0));
    assert!(done.salvaged.iter().all(|keyspace| keyspace.lost_tables.is_empty()));
    let engine = open(&kv(&root));
    let rows = everything(&*engine).await;
    assert_eq!(rows.len() as u64, first.rows);
    // The journals have those of the block.
    assert_eq!(rows.len(), ROWS + 1);
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

        let done = examine(&kv(&root)).accept_loss(&rules()).unwrap();

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

        let done = examine(&kv(&root)).accept_loss(&rules()).unwrap();

        assert_eq!(done.salvaged[0].rows, ROWS as u64 + 1);
        let engine = open(&kv(&root));
        assert_eq!(everything(&*engine).await.len(), ROWS + 1);
    }
}

/// Removes the journals, so that only tables have rows.
fn remove_journals(directory: &Path) {
    for entry in fs::read_dir(directory.join("db")).unwrap().map(Result::unwrap) {
        if entry.file_name().to_str().unwrap().ends_with(".jnl") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// The rows of the helper that makes the store which are left, by number.
fn numbers(rows: &[trestle_kv::Entry]) -> Vec<usize> {
    let number =
        |key: &[u8]| std::str::from_utf8(key.strip_prefix(b"\x01row-")?).ok()?.parse().ok();
    rows.iter().filter_map(|row| number(&row.key)).collect()
}

#[tokio::test]
async fn a_repair_reads_what_is_between_damaged_blocks_and_names_the_keys_around_them() {
    let root = store().await;
    remove_journals(&kv(&root));
    change(&table(&kv(&root)), |bytes| bytes / 4);
    change(&table(&kv(&root)), |bytes| bytes / 2);
    change(&table(&kv(&root)), |bytes| bytes / 4 * 3);

    let done = examine(&kv(&root)).accept_loss(&rules()).unwrap();

    let unreadable = &done.salvaged[0].unreadable;
    assert_eq!((unreadable.count, unreadable.first.len()), (3, 3));
    let engine = open(&kv(&root));
    let left = numbers(&everything(&*engine).await);
    let mut expected: Vec<_> = (0..ROWS).map(name).collect();
    for range in &unreadable.first {
        let [after, before] = [&range.after, &range.before].map(|key| key.clone().unwrap());
        expected.retain(|row| key(row) <= after || key(row) >= before);
    }
    assert_eq!(left.iter().copied().map(name).collect::<Vec<_>>(), expected);
    // A block has a few rows of that size.
    assert!(left.len() > ROWS - 3 * 6, "{}", left.len());
}

#[tokio::test]
async fn a_table_that_does_not_open_takes_no_other_damaged_one_with_it() {
    let root = store().await;
    remove_journals(&kv(&root));
    change(&table(&kv(&root)), |bytes| bytes / 2);
    let other = fs::read_dir(kv(&root).join("db/keyspaces/2/tables")).unwrap();
    let other = other.map(Result::unwrap).next().unwrap().path();
    let bytes = fs::read(&other).unwrap();
    fs::write(&other, &bytes[..bytes.len() - 10]).unwrap();

    let done = examine(&kv(&root)).accept_loss(&rules()).unwrap();

    assert!(done.salvaged[0].rows > ROWS as u64 - 6, "{done:?}");
    assert_eq!(done.salvaged[0].lost_tables, Vec::<String>::new());
    let number = other.file_name().unwrap().to_str().unwrap();
    assert_eq!(done.salvaged[1].lost_tables, [format!("db/keyspaces/2/tables/{number}")]);
}

#[tokio::test]
async fn rows_of_a_lost_table_are_taken_from_journals_that_a_later_table_has_passed() {
    let root = tempfile::tempdir().unwrap();
    let small = || FjallOptions { memtable_bytes: 64 * 1024, ..options(&kv(&root)) };
    let engine = FjallEngine::open(small()).unwrap();
    for row in 0..ROWS {
        commit(&engine, vec![put(key(name(row)), noise(row as u64, 1000))]).await.unwrap();
    }
    commit(&engine, vec![trestle_kv::Write::Delete { key: key(name(7)) }]).await.unwrap();
    drop(engine);
    let tables = fs::read_dir(kv(&root).join("db/keyspaces/1/tables")).unwrap();
    let oldest = tables
        .map(|table| table.unwrap().path())
        .min_by_key(|table| table.file_name().unwrap().to_str().unwrap().parse::<u64>().unwrap());
    fs::remove_file(oldest.unwrap()).unwrap();

    let done = examine(&kv(&root)).accept_loss(&rules()).unwrap();

    assert_eq!(done.salvaged[0].lost_tables.len(), 1, "{done:?}");
    let left = numbers(&everything(&*open(&kv(&root))).await);
    assert_eq!(left, (0..ROWS).filter(|row| *row != 7).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_store_that_a_killed_repair_left_is_kept_and_copies_are_removed() {
    let root = store().await;
    change(&table(&kv(&root)), |bytes| bytes / 2);
    // As a kill left it that ended a repair between its last two steps.
    let (left, copy) = (root.path().join("kv-repaired"), root.path().join("kv-readable"));
    fs::create_dir(&left).unwrap();
    fs::write(left.join("MANIFEST"), "originals").unwrap();
    fs::create_dir(&copy).unwrap();

    let done = examine(&kv(&root)).accept_loss(&rules()).unwrap();

    assert_eq!(done.originals, root.path().join("kv-damaged-2"));
    let kept = fs::read(root.path().join("kv-damaged-1/MANIFEST")).unwrap();
    assert_eq!(kept, b"originals");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3, "nothing else is left");
}

pub(crate) fn repair_on_a_full_disk(directory: &Path) {
    let plan = examine(&directory.join("kv"));
    fs::write(directory.join("triggers/disk-full"), "").unwrap();
    let error = plan.accept_loss(&rules()).unwrap_err();
    fs::remove_file(directory.join("triggers/disk-full")).unwrap();
    crate::child::report(&format!("{error}: {}", std::error::Error::source(&error).unwrap()));
}

#[tokio::test]
async fn a_repair_without_space_leaves_nothing_and_changes_nothing() {
    let root = store().await;
    change(&table(&kv(&root)), |bytes| bytes / 2);
    let before = fs::read(table(&kv(&root))).unwrap();

    let Some(events) = crate::faults::run("repair-on-a-full-disk", root.path()) else { return };

    assert!(events.iter().any(|event| event.contains("os error 28")), "{events:?}");
    let mut left: Vec<_> =
        fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["kv", "triggers"]);
    assert!(fs::read(table(&kv(&root))).unwrap() == before);
    assert_eq!(damage(&kv(&root)).len(), 1);
}

#[tokio::test]
async fn a_repair_takes_damaged_journals_and_damaged_tables_together() {
    let root = store().await;
    remove_journals(&kv(&root));
    change(&table(&kv(&root)), |bytes| bytes / 2);

    let done = examine(&kv(&root)).accept_loss(&rules()).unwrap();

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
