//! Long keys: a pointer is there exactly as long as keys below it are, whoever inserts and deletes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;
use trestle_kv::conformance::rows::{NO_LIMIT, commit, everything, key, put};
use trestle_kv::{CommitError, Engine, Span, Write};
use trestle_kv_postgres::PostgresEngine;
use trestle_kv_postgres::testing::PostgresServer;

use crate::world::{assert_pointers_are_exact, open, rows_of};

/// Few, so that layers are often empty.
const WRITERS: u32 = 6;

fn delete(key: &Bytes) -> Write {
    Write::Delete { key: key.clone() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_long_keys_that_are_deleted() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let engine = open(&server.address(&database)).await;
    // Some with a domain of their own below a pointer that all of them share, some with several layers.
    let lengths = [2_399, 2_400, 2_401, 4_766, 4_767, 4_768, 7_200, 59_000];
    let first = lengths.map(|length| key([&vec![b'x'; length][..], b"/"].concat()));
    let second = first.clone().map(|key| Bytes::from([&[0x41], &key[1..]].concat()));
    for keys in [&first, &second] {
        commit(&*engine, keys.iter().map(|key| put(key.clone(), "1")).collect()).await.unwrap();
    }
    assert_pointers_are_exact(&server, &database).await;

    let (kept, deleted) = first.split_at(4);
    commit(&*engine, deleted.iter().map(delete).collect()).await.unwrap();
    let mut expected = kept.to_vec();
    expected.sort();
    let found: Vec<_> = everything(&*engine).await.into_iter().map(|entry| entry.key).collect();
    assert!(found == expected, "{} are found of {}", found.len(), expected.len());
    assert_pointers_are_exact(&server, &database).await;

    // One by one, one twice, and one that was never there.
    for key in kept.iter().chain(&second).chain(&second[6..7]) {
        commit(&*engine, vec![delete(key)]).await.unwrap();
    }
    commit(&*engine, vec![delete(&key([b'y'; 5_000]))]).await.unwrap();
    assert_eq!(rows_of(&server, &database).await, 0);
}

/// The keys of a writer, in a domain of its own: below pointers that it shares with all others, in two layers.
fn keys_of(writer: u32) -> Vec<Bytes> {
    let below = |start: u8, more: usize| {
        let domain = [&vec![start; 2_400][..], format!("w{writer:02}/").as_bytes()].concat();
        key([&domain[..], &vec![b'z'; more]].concat())
    };
    [b'x', b'y'].into_iter().flat_map(|start| [below(start, 0), below(start, 2_400)]).collect()
}

/// Puts and deletes its keys in any order, and finds by scans what was acknowledged.
async fn write(
    engine: Arc<PostgresEngine>,
    writer: u32,
    is_over: Arc<AtomicBool>,
    rounds: Arc<AtomicU32>,
) {
    let keys = keys_of(writer);
    while !is_over.load(Ordering::Relaxed) {
        let (there, absent): (Vec<_>, Vec<_>) = keys.iter().partition(|_| rand::random_ratio(1, 8));
        let puts = there.iter().map(|key| put(Bytes::clone(key), "1"));
        let deletes = absent.iter().map(|key| delete(key));
        match commit(&*engine, puts.chain(deletes).collect()).await {
            Ok(_) => rounds.fetch_add(1, Ordering::Relaxed),
            Err(CommitError::Unknown { .. } | CommitError::Unavailable { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        for start in keys.chunks(2) {
            // A crash ends a read too.
            let Ok(seen) = engine.scan(&Span::prefix(&start[0]), NO_LIMIT).await else { continue };
            let found: Vec<_> = seen.entries.iter().map(|entry| &entry.key).collect();
            let expected: Vec<_> = start.iter().filter(|key| there.contains(key)).collect();
            let (rows, acknowledged) = (found.len(), expected.len());
            assert!(found == expected, "writer {writer}: {rows} rows of {acknowledged}");
        }
    }
}

async fn wait_for(rounds: &AtomicU32, more: u32) {
    let (from, until) = (rounds.load(Ordering::Relaxed), Instant::now() + Duration::from_secs(120));
    while rounds.load(Ordering::Relaxed) < from + more {
        assert!(Instant::now() < until, "{} changes since", rounds.load(Ordering::Relaxed) - from);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Two processes whose writers share pointers, and a crash of the server for each of `crashes`.
async fn writers_share_pointers(crashes: u32) {
    let Some(mut server) = PostgresServer::start(&["fsync=on"]).await else { return };
    let database = server.database().await;
    let address = server.address(&database);
    let engines = [open(&address).await, open(&address).await];
    let is_over = Arc::new(AtomicBool::new(false));
    let rounds = Arc::new(AtomicU32::new(0));
    let mut writers = JoinSet::new();
    for (writer, engine) in (0..WRITERS).zip(engines.iter().cycle()) {
        writers.spawn(write(Arc::clone(engine), writer, Arc::clone(&is_over), Arc::clone(&rounds)));
    }
    for _ in 0..crashes {
        wait_for(&rounds, 60).await;
        server.crash();
        server.run().await;
    }
    wait_for(&rounds, 400).await;
    is_over.store(true, Ordering::Relaxed);
    while let Some(written) = writers.join_next().await {
        written.unwrap();
    }
    assert_pointers_are_exact(&server, &database).await;

    for (writer, engine) in (0..WRITERS).zip(engines.iter().cycle()) {
        commit(&**engine, keys_of(writer).iter().map(delete).collect()).await.unwrap();
    }
    assert_eq!(rows_of(&server, &database).await, 0);
    // Connections report what they counted when they end.
    drop(engines);
    let client = server.client("postgres").await.unwrap();
    let sql = "SELECT coalesce(sum(deadlocks), 0)::bigint, \
               (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'trestle') \
               FROM pg_stat_database";
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let row = client.query_one(sql, &[]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), 0, "deadlocks");
        if row.get::<_, i64>(1) == 0 {
            return;
        }
        assert!(Instant::now() < until, "connections stay");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_of_two_processes_share_pointers_and_lose_no_row() {
    writers_share_pointers(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_server_leaves_pointers_exact() {
    writers_share_pointers(3).await;
}
