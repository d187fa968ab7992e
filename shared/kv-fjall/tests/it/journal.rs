//! The journal stays bounded, and an engine under sustained load neither hangs nor gives up.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::world::{commit, get, key, noise, open, put};

const MEBIBYTE: u64 = 1024 * 1024;

fn journal_bytes(directory: &Path) -> u64 {
    fs::read_dir(directory.join("db"))
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "jnl"))
        // A journal may go while it is counted.
        .filter_map(|entry| Some(entry.metadata().ok()?.len()))
        .sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_stays_bounded_while_one_keyspace_is_busy_and_the_other_idle() {
    const WRITERS: u64 = 2;
    const ROWS: u64 = 300;
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    commit(&*engine, vec![put(vec![0x41], "idle")]).await.unwrap();

    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let engine = Arc::clone(&engine);
        let path = directory.path().to_owned();
        writers.spawn(async move {
            let mut most = 0;
            let value = noise(writer + 1, 1024 * 1024);
            for row in 0..ROWS {
                // Rows are overwritten, so that the disk need not hold all that is written.
                let name = format!("{writer}-{}", row % 20);
                commit(&*engine, vec![put(key(name), value.clone())]).await.unwrap();
                most = most.max(journal_bytes(&path));
            }
            most
        });
    }
    let most = writers.join_all().await.into_iter().max().unwrap();

    // What back-pressure lets pile up while memtables are flushed.
    let limit = (256 + 3 * 64) * MEBIBYTE;
    assert!(most > 64 * MEBIBYTE, "not enough was written: {most}");
    assert!(most < limit, "the journal grew to {} MiB", most / MEBIBYTE);
    assert_eq!(get(&*engine, &[0x41]).await, Some("idle".into()));
    // A start reads what is left: once the flushes are through, one that is sealed and the one that is written.
    let deadline = Instant::now() + crate::HANG;
    loop {
        let left = journal_bytes(directory.path());
        if left < 3 * 64 * MEBIBYTE {
            break;
        }
        assert!(Instant::now() < deadline, "the journal stays at {} MiB", left / MEBIBYTE);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
