//! Little free space: puts are rejected, removal and reads go on, and what was deleted is given back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use trestle_kv::{CommitError, Engine, Span, Write};
use trestle_kv_fjall::{FjallEngine, FjallOptions};

use crate::HANG;
use crate::small_disk::SmallDisk;
use crate::world::{NO_LIMIT, commit, get, key, noise, options, put};

const MIB: u64 = 1024 * 1024;

#[tokio::test]
async fn below_the_reserve_only_changes_that_reclaim_are_accepted_until_space_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let free = Arc::new(AtomicU64::new(500 * MIB));
    let probed = Arc::clone(&free);
    let engine = FjallEngine::open(FjallOptions {
        min_free_bytes: 100 * MIB,
        space_probe: Arc::new(move |_| Ok(probed.load(Ordering::SeqCst))),
        ..options(directory.path())
    });
    let engine = engine.unwrap();
    let reaches = |mebibytes: u64| {
        free.store(mebibytes * MIB, Ordering::SeqCst);
        let engine = &engine;
        async move {
            let is_settled = |status: trestle_kv::EngineStatus| {
                status.disk.is_some_and(|disk| disk.free_bytes == mebibytes * MIB)
                    && status.is_space_short() == (mebibytes < 106)
            };
            while !is_settled(engine.status()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    commit(&engine, vec![put(key("a"), "1"), put(key("b"), "1")]).await.unwrap();

    reaches(99).await;
    let rejected = commit(&engine, vec![put(key("c"), "1")]).await;
    let reclaimed =
        commit(&engine, vec![Write::Delete { key: key("a") }, put(key("count"), "1")]).await;

    let text = rejected.unwrap_err().to_string();
    let free_text = format!("free_bytes=`{}`", 99 * MIB);
    let reserve_text = format!("storage.min_free_bytes=`{}`", 100 * MIB);
    for part in [&*free_text, &reserve_text, "delete tables, queues, blobs or rows"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(reclaimed.is_ok(), "{reclaimed:?}");
    assert_eq!(get(&engine, &key("a")).await, None);
    assert_eq!(get(&engine, &key("b")).await, Some("1".into()));

    reaches(107).await;
    commit(&engine, vec![put(key("c"), "1")]).await.unwrap();
}

#[tokio::test]
async fn a_store_on_a_short_disk_reports_it_as_soon_as_it_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let with_free = |mebibytes: u64| FjallOptions {
        min_free_bytes: 100 * MIB,
        space_probe: Arc::new(move |_| Ok(mebibytes * MIB)),
        ..options(directory.path())
    };
    let engine = FjallEngine::open(with_free(1000)).unwrap();
    commit(&engine, vec![put(key("a"), "1")]).await.unwrap();
    drop(engine);

    let engine = FjallEngine::open(with_free(90)).unwrap();

    assert!(engine.status().is_space_short());
    let rejected = commit(&engine, vec![put(key("b"), "1")]).await;
    assert!(matches!(rejected, Err(CommitError::Full { .. })), "{rejected:?}");
    commit(&engine, vec![Write::Delete { key: key("a") }]).await.unwrap();
}

/// A row of a table, and a value that does not compress.
fn row(table: &str, number: u32) -> (Bytes, Bytes) {
    let value = noise(u64::from(number) + 1, 64 * 1024);
    // Spread, so that compactions overlap.
    (key(format!("{table}{:08x}", number.wrapping_mul(0x9E37_79B1))), value.into())
}

/// Writes rows from `first` on, each 16th one to the table that stays. Returns the number of the first rejected one.
async fn fill(engine: &FjallEngine, first: u32) -> (u32, CommitError) {
    let mut number = first;
    loop {
        let table = if number.is_multiple_of(16) { "kept" } else { "big" };
        let (key, value) = row(table, number);
        match commit(engine, vec![put(key, value)]).await {
            Ok(_) => number += 1,
            Err(CommitError::Busy { .. }) => {}
            Err(error) => return (number, error),
        }
    }
}

/// As [`fill`], until rows are rejected for as long as several measurements take: between two of them, what was written
/// counts twice.
async fn fill_up(engine: &FjallEngine, first: u32) -> (u32, CommitError) {
    let (mut number, mut rejected) = (first, 0);
    loop {
        let (end, error) = fill(engine, number).await;
        rejected = if end == number { rejected + 1 } else { 0 };
        number = end;
        if rejected == 15 {
            return (number, error);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn keys_of(engine: &FjallEngine, table: &str) -> Vec<Bytes> {
    let (mut span, mut keys) = (Span::prefix(&key(table)), Vec::new());
    loop {
        // A page each: on a busy machine a view over all of them may be open for so long that the engine ends it.
        let scan = engine.scan(&span, NO_LIMIT).await.unwrap();
        keys.extend(scan.entries.iter().map(|entry| entry.key.clone()));
        let Some(last) = scan.entries.last().filter(|_| scan.more) else { return keys };
        span.start = trestle_kv::after_key(&last.key).into();
    }
}

async fn within(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < HANG, "{what}: not within {HANG:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn on_small_disk(disk: &SmallDisk) -> FjallOptions {
    FjallOptions {
        min_free_bytes: 64 * MIB,
        memtable_bytes: 4 * MIB,
        write_buffer_bytes: 16 * MIB,
        // As in production: fast writers write much between two measurements.
        tick: Duration::from_secs(1),
        ..options(&disk.path().join("kv"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fast_writers_are_rejected_before_the_disk_is_full_and_a_dropped_table_frees_it() {
    let Some(disk) = SmallDisk::of(300) else { return };
    let engine = Arc::new(FjallEngine::open(on_small_disk(&disk)).unwrap());
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move { fill(&engine, writer * 1_000_000).await })
        })
        .collect();
    let mut written = Vec::new();
    for (writer, filled) in (0_u32..).zip(writers) {
        let (end, error) = filled.await.unwrap();
        assert!(matches!(error, CommitError::Full { .. }), "{error}");
        written.push(writer * 1_000_000..end);
    }
    assert!(engine.status().is_space_short() && engine.status().stopped.is_none());
    let when_full = disk.free_bytes();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let at_rest = disk.free_bytes();
    assert!(when_full.min(at_rest) >= 56 * MIB, "{when_full} {at_rest}");

    let kept = keys_of(&engine, "kept").await;
    let big = keys_of(&engine, "big").await;
    assert_eq!(kept.len() + big.len(), written.iter().map(ExactSizeIterator::len).sum::<usize>());
    engine.discard(&Span::prefix(&key("big"))).await.unwrap();
    for keys in keys_of(&engine, "big").await.chunks(500) {
        let writes = keys.iter().map(|key| Write::Delete { key: key.clone() }).collect();
        commit(&*engine, writes).await.unwrap();
    }

    let more = row("more", 7);
    within("writes are accepted again", async || {
        commit(&*engine, vec![put(more.0.clone(), more.1.clone())]).await.is_ok()
    })
    .await;
    assert!(keys_of(&engine, "big").await.is_empty());
    within("most space is back", async || disk.free_bytes() > 160 * MIB).await;
    drop(engine);

    let engine = FjallEngine::open(on_small_disk(&disk)).unwrap();
    assert_eq!(keys_of(&engine, "kept").await, kept);
    assert!(keys_of(&engine, "big").await.is_empty(), "nothing came back");
    for range in written {
        for number in range.filter(|number| number % 16 == 0) {
            let (key, value) = row("kept", number);
            assert_eq!(get(&engine, &key).await, Some(value));
        }
    }
    assert_eq!(get(&engine, &more.0).await, Some(more.1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_on_a_disk_without_a_free_byte_goes_on_once_there_is_space() {
    let Some(disk) = SmallDisk::of(200) else { return };
    let engine = FjallEngine::open(on_small_disk(&disk)).unwrap();
    // In memory and in the journal.
    for number in 0..20 {
        let (key, value) = row("big", number);
        commit(&engine, vec![put(key, value)]).await.unwrap();
    }
    let filler = disk.path().join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[7; 4096]).is_ok() {}
    drop(file);
    assert_eq!(disk.free_bytes(), 0);
    within("space is short", async || engine.status().is_space_short()).await;

    for _ in 0..30 {
        let deleted = commit(&engine, vec![Write::Delete { key: row("big", 0).0 }]).await;
        assert!(matches!(deleted, Err(CommitError::Full { .. })), "{deleted:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    assert_eq!(engine.status().stopped, None);
    assert_eq!(keys_of(&engine, "big").await.len(), 20);
    std::fs::remove_file(filler).unwrap();
    within("deletes are accepted again", async || {
        commit(&engine, vec![Write::Delete { key: row("big", 0).0 }]).await.is_ok()
    })
    .await;
    let (key, value) = row("more", 7);
    within("writes are accepted again", async || {
        commit(&engine, vec![put(key.clone(), value.clone())]).await.is_ok()
    })
    .await;
}

/// Bytes of the files of all keyspaces.
fn table_bytes(store: &Path) -> u64 {
    let keyspaces = std::fs::read_dir(store.join("db/keyspaces")).unwrap();
    let tables = keyspaces.map(|entry| entry.unwrap().path().join("tables"));
    let size_of = |path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.metadata().map_or(0, |file| file.len())).sum::<u64>()
    };
    tables.map(size_of).sum()
}

async fn delete(engine: &FjallEngine, keys: &[Bytes]) {
    for keys in keys.chunks(100) {
        let writes: Vec<_> = keys.iter().map(|key| Write::Delete { key: key.clone() }).collect();
        // On a machine with much else to do a flush may take longer than a change waits.
        while let Err(error) = commit(engine, writes.clone()).await {
            assert!(matches!(error, CommitError::Busy { .. }), "{error}");
        }
    }
}

/// Rows are deleted one by one: no range is known to be dead. Three times in a row, without a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_rows_free_a_short_disk_without_a_restart() {
    let Some(disk) = SmallDisk::of(200) else { return };
    let engine = FjallEngine::open(on_small_disk(&disk)).unwrap();
    let (mut next, mut kept) = (0, 0);
    for round in 0..3 {
        let (end, error) = fill_up(&engine, next).await;
        assert!(matches!(error, CommitError::Full { .. }), "{error}");
        assert!(end > next + 300, "round {round}: {next} to {end} were written");
        kept += (next..end).filter(|number| number % 16 == 0).count();
        next = end;

        delete(&engine, &keys_of(&engine, "big").await).await;

        // As the engine measured it. Journals take up to 64 MiB of the rest.
        within("most space is back", async || {
            engine.status().disk.is_some_and(|disk| disk.free_bytes > 100 * MIB)
        })
        .await;
        let left_bytes = (u64::try_from(kept).unwrap() + 64) * 64 * 1024;
        within("deleted rows are in no file", async || {
            table_bytes(&disk.path().join("kv")) < left_bytes
        })
        .await;
        within("writes are accepted again", async || !engine.status().is_space_short()).await;
        assert!(engine.status().stopped.is_none());
        assert_eq!(keys_of(&engine, "kept").await.len(), kept);
    }
    drop(engine);

    let engine = FjallEngine::open(on_small_disk(&disk)).unwrap();
    assert!(keys_of(&engine, "big").await.is_empty(), "nothing came back");
    assert_eq!(keys_of(&engine, "kept").await.len(), kept);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_of_the_rows_deleted_frees_about_half_of_a_short_disk() {
    let Some(disk) = SmallDisk::of(200) else { return };
    let engine = FjallEngine::open(on_small_disk(&disk)).unwrap();
    let (end, error) = fill_up(&engine, 0).await;
    assert!(matches!(error, CommitError::Full { .. }), "{error}");
    let free_bytes = disk.free_bytes();
    let is_kept = |number: &u32| number.is_multiple_of(2);
    let name = |number: u32| row(if number.is_multiple_of(16) { "kept" } else { "big" }, number);

    let removed = (0..end).filter(|number| !is_kept(number)).map(|number| name(number).0);
    delete(&engine, &removed.collect::<Vec<_>>()).await;

    let gained = u64::from(end) * 64 * 1024 / 4;
    within("a quarter of the data is free", async || disk.free_bytes() > free_bytes + gained).await;
    within("writes are accepted again", async || !engine.status().is_space_short()).await;
    assert!(engine.status().stopped.is_none());
    for number in 0..end {
        let (key, value) = name(number);
        assert_eq!(get(&engine, &key).await, is_kept(&number).then_some(value), "{number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_engine_gives_back_the_space_of_deleted_rows_within_a_minute() {
    let directory = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(options(directory.path())).unwrap();
    for number in 0..1_500 {
        let (key, value) = row("big", number);
        commit(&engine, vec![put(key, value)]).await.unwrap();
    }
    for keys in keys_of(&engine, "big").await.chunks(500) {
        let writes = keys.iter().map(|key| Write::Delete { key: key.clone() }).collect();
        commit(&engine, writes).await.unwrap();
    }

    // The journal that is written, of up to 64 MiB, stays.
    within("the space is back", async || table_bytes(directory.path()) < MIB).await;
}
