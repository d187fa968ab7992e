//! The server ends without warning, or away for a while; a process that has written nothing yet loses nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;
use trestle_kv::conformance::reading;
use trestle_kv::conformance::rows::{commit, key, put};
use trestle_kv::{CommitError, Durability, Engine, Writes, transact};
use trestle_kv_postgres::PostgresEngine;

use crate::world::open;
use trestle_kv_postgres::testing::PostgresServer;

const WRITERS: u64 = 8;

fn number(value: Option<&Bytes>) -> u64 {
    value.map_or(0, |bytes| u64::from_be_bytes(bytes.as_ref().try_into().unwrap()))
}

/// Adds one to a counter and writes a mark with its new value, in one change.
async fn step(engine: &dyn Engine, name: u64) -> Result<u64, CommitError> {
    let counter = key(format!("c{name}/count"));
    let mut spec = reading([&counter]);
    let count = spec.read(counter);
    let stepped = transact(engine, spec, move |reads, _| {
        let next = number(reads.get(count)) + 1;
        let mut writes = Writes::new();
        writes.put(reads.key(count).clone(), next.to_be_bytes().to_vec());
        writes.put(key(format!("c{name}/{next:08}")), "");
        Ok::<_, ()>((writes, next))
    });
    stepped.await.map(Result::unwrap)
}

/// Steps its counter until it is told to stop; the last acknowledged value.
async fn write(engine: Arc<PostgresEngine>, name: u64, is_over: Arc<AtomicBool>) -> (u64, u64) {
    let mut acknowledged = 0;
    while !is_over.load(Ordering::Relaxed) {
        match step(&*engine, name).await {
            Ok(count) => acknowledged = count,
            Err(CommitError::Unknown { .. } | CommitError::Unavailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    (name, acknowledged)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_server_loses_nothing_that_was_acknowledged() {
    let Some(mut server) = PostgresServer::start(&["fsync=on"]).await else { return };
    let database = server.database().await;
    let address = server.address(&database);
    let (one, other) = (open(&address).await, open(&address).await);
    assert_eq!(one.status().durability, Durability::Always);
    let is_over = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for name in 0..WRITERS {
        let engine = if name % 2 == 0 { Arc::clone(&one) } else { Arc::clone(&other) };
        writers.spawn(write(engine, name, Arc::clone(&is_over)));
    }

    for round in 1..=4 {
        // Until each writer was acknowledged since the last crash.
        for name in 0..WRITERS {
            let before = number(one.get(&key(format!("c{name}/count"))).await.unwrap().as_ref());
            wait_for(&one, name, before + 3 * round).await;
        }
        server.crash();
        server.run().await;
    }
    is_over.store(true, Ordering::Relaxed);
    let mut acknowledged = vec![0; usize::try_from(WRITERS).unwrap()];
    while let Some(written) = writers.join_next().await {
        let (name, count) = written.unwrap();
        acknowledged[usize::try_from(name).unwrap()] = count;
    }

    for (name, acknowledged) in (0..WRITERS).zip(acknowledged) {
        let count = number(other.get(&key(format!("c{name}/count"))).await.unwrap().as_ref());
        assert!(
            acknowledged > 0 && acknowledged <= count,
            "{acknowledged} were acknowledged, {count} are there"
        );
        for mark in [1, count] {
            let mark = other.get(&key(format!("c{name}/{mark:08}"))).await.unwrap();
            assert_eq!(mark, Some(Bytes::new()), "a change is whole");
        }
        let next = other.get(&key(format!("c{name}/{:08}", count + 1))).await.unwrap();
        assert_eq!(next, None, "a change is whole");
    }
}

/// Waits until a counter has a value, with reads that go on while the server is away.
async fn wait_for(engine: &PostgresEngine, name: u64, value: u64) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if let Ok(found) = engine.get(&key(format!("c{name}/count"))).await
            && number(found.as_ref()) >= value
        {
            return;
        }
        assert!(Instant::now() < until, "no writer goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_waits_for_a_server_that_is_restarted() {
    let Some(mut server) = PostgresServer::start(&[]).await else { return };
    let engine = open(&server.address(&server.database().await)).await;
    commit(&*engine, vec![put(key("a"), "1")]).await.unwrap();

    server.crash();
    let waiting = tokio::spawn({
        let engine = Arc::clone(&engine);
        async move { commit(&*engine, vec![put(key("a"), "2")]).await }
    });
    server.run().await;

    // The connection was lost before anything of the change was sent, or its first flight was.
    waiting.await.unwrap().unwrap();
    assert_eq!(engine.get(&key("a")).await.unwrap(), Some("2".into()));
}
