//! Failures of the server while changes are on their way: each is whole or absent, its error says which, and later ones
//! go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use trestle_kv::conformance::rows::{commit, everything, key, noise, put};
use trestle_kv::conformance::{KEYSPACES, reading};
use trestle_kv::{
    Change, CommitError, CommitPoint, Engine, EngineError, ScanLimit, Snapshot, Span, Writes,
};
use trestle_kv_postgres::testing::PostgresServer;
use trestle_kv_postgres::{PostgresEngine, PostgresOptions};

use crate::world::{open, stuck};

/// The points of a commit, and whether the change is there after a failure at one.
const POINTS: [(CommitPoint, bool); 3] = [
    (CommitPoint::BeforeJournal, false),
    (CommitPoint::AfterSync, true),
    (CommitPoint::BeforeAnswer, true),
];

/// Ends the connections of engines that are in this state.
async fn terminate(server: &PostgresServer, database: &str, state: &str) {
    let sql = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE application_name = 'trestle' AND state LIKE '{state}' AND pid <> pg_backend_pid()"
    );
    server.execute(database, &sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_the_server_ends_are_replaced() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let engine = open(&server.address(&database)).await;
    for round in 0..5_u8 {
        commit(&*engine, vec![put(key([round]), "1")]).await.unwrap();
        drop(engine.snapshot().await.unwrap());
        terminate(&server, &database, "%").await;

        assert_eq!(engine.get(&key([round])).await.unwrap(), Some("1".into()));
        let limit = ScanLimit { rows: 10, bytes: 1_000 };
        let seen = engine.scan(&Span::prefix(&[1]), limit).await.unwrap();
        assert_eq!(seen.entries.len(), usize::from(round) + 1);
        let view = engine.snapshot().await.unwrap();
        assert_eq!(view.get(&key([round])).await.unwrap(), Some("1".into()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_whose_connection_ends_has_ended() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let engine = open(&server.address(&database)).await;
    let view = engine.snapshot().await.unwrap();

    terminate(&server, &database, "idle in transaction").await;

    let read = view.get(&key("a")).await.unwrap_err();
    assert!(matches!(read, EngineError::SnapshotEnded { .. }), "{read}");
    let scanned =
        view.scan(&Span::prefix(&[1]), ScanLimit { rows: 1, bytes: 1 }).await.unwrap_err();
    assert!(matches!(scanned, EngineError::SnapshotEnded { .. }), "{scanned}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_that_nobody_reads_end_for_others() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let engine = open(&server.address(&database)).await;
    commit(&*engine, vec![put(key("a"), "1")]).await.unwrap();
    let mut held = Vec::new();
    // More than there are at a time.
    for _ in 0..40 {
        let view: Arc<dyn Snapshot> = engine.snapshot().await.unwrap().into();
        assert_eq!(view.get(&key("a")).await.unwrap(), Some("1".into()));
        held.push(view);
    }
    // Nor do reads that are begun and never polled again, as of who reads ahead for a client that stopped.
    let mut begun = Vec::new();
    for _ in 0..40 {
        let view: Arc<dyn Snapshot> = engine.snapshot().await.unwrap().into();
        let read = Arc::clone(&view);
        let mut read = Box::pin(async move { read.get(&key("a")).await });
        let _ = futures::poll!(&mut read);
        begun.push((view, read));
    }
    let mut taken: Vec<_> = (0..40).map(|_| engine.snapshot()).collect();
    for taken in &mut taken {
        let _ = futures::poll!(taken);
    }
    held.push(engine.snapshot().await.unwrap().into());

    let read = held[0].get(&key("a")).await.unwrap_err();

    assert!(matches!(read, EngineError::SnapshotEnded { .. }), "{read}");
    let newest = held.last().unwrap().get(&key("a")).await.unwrap();
    assert_eq!(newest, Some("1".into()));
}

/// Writers under which connections end at any time. What was acknowledged is there, and what was reported as not
/// written is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_connections_lose_nothing_and_no_error_lies() {
    const WRITERS: u32 = 8;
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let engine = open(&server.address(&database)).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let (engine, is_over) = (Arc::clone(&engine), Arc::clone(&is_over));
        let acknowledged = Arc::clone(&acknowledged);
        writers.push(tokio::spawn(async move {
            let (mut there, mut absent, mut number) = (Vec::new(), Vec::new(), 0_u32);
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                let row = key(format!("w{writer}/{number}"));
                match commit(&*engine, vec![put(row.clone(), "1")]).await {
                    Ok(_) => {
                        there.push(row);
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(CommitError::Unavailable { .. }) => absent.push(row),
                    Err(CommitError::Unknown { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            (there, absent)
        }));
    }
    for round in 1..=15 {
        // Each time after some more were acknowledged, so that every writer is on its way.
        while acknowledged.load(Ordering::Relaxed) < round * 40 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        terminate(&server, &database, "%").await;
    }
    is_over.store(true, Ordering::Relaxed);

    for writer in writers {
        let (there, absent) = writer.await.unwrap();
        assert!(!there.is_empty());
        for row in there {
            assert!(engine.get(&row).await.unwrap().is_some(), "{row:?} was acknowledged");
        }
        for row in absent {
            assert!(engine.get(&row).await.unwrap().is_none(), "{row:?} was reported as unwritten");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_at_each_point_of_a_commit_is_reported_as_what_it_is() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let address = server.address(&server.database().await);
    for (point, is_there) in POINTS {
        let has_failed = AtomicBool::new(false);
        let hook = move |at| match at == point && !has_failed.swap(true, Ordering::Relaxed) {
            true => Err("planted".into()),
            false => Ok(()),
        };
        let options = PostgresOptions {
            on_point: Some(Arc::new(hook)),
            ..PostgresOptions::new(address.clone(), KEYSPACES)
        };
        let engine = PostgresEngine::open(options).await.unwrap();
        let row = key(point.name());

        let error = commit(&engine, vec![put(row.clone(), "1")]).await.unwrap_err();
        assert_eq!(matches!(error, CommitError::Unknown { .. }), is_there, "{point:?}: {error}");
        assert_eq!(engine.get(&row).await.unwrap().is_some(), is_there, "{point:?}");
        // One that is not answered is dropped, as by a panic, and not counted.
        assert_eq!(engine.stats().unknown, u64::from(point == CommitPoint::AfterSync), "{point:?}");
        commit(&engine, vec![put(row.clone(), "2")]).await.unwrap();
        assert_eq!(engine.get(&row).await.unwrap(), Some("2".into()), "{point:?}");
    }
}

/// More panics than there are workers: changes of the same domain, and of others, go on after each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_at_each_point_of_a_commit_answers_its_change_and_frees_its_domain() {
    const PANICS: usize = 12;
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let address = server.address(&server.database().await);
    for (point, is_there) in POINTS {
        let panics = AtomicUsize::new(0);
        let hook = move |at| {
            let panics = at == point && panics.fetch_add(1, Ordering::Relaxed) < PANICS;
            assert!(!panics, "planted");
            Ok(())
        };
        let options = PostgresOptions {
            on_point: Some(Arc::new(hook)),
            ..PostgresOptions::new(address.clone(), KEYSPACES)
        };
        let engine = PostgresEngine::open(options).await.unwrap();
        let row = |number: usize| key(format!("{}/{number}", point.name()));
        let committed = async |number| {
            let writing = commit(&engine, vec![put(row(number), "1")]);
            tokio::time::timeout(Duration::from_secs(60), writing)
                .await
                .expect("its domain is free")
        };

        for number in 0..PANICS {
            let error = committed(number).await.unwrap_err();
            let is_unknown = matches!(error, CommitError::Unknown { .. });
            assert!(is_unknown || matches!(error, CommitError::Unavailable { .. }), "{error}");
            assert_eq!(is_unknown, is_there, "{point:?}: {error}");
            assert_eq!(engine.get(&row(number)).await.unwrap().is_some(), is_there, "{point:?}");
        }
        committed(PANICS).await.unwrap();
        commit(&engine, vec![put(key("other"), "1")]).await.unwrap();
    }
}

/// The version of a row that another clock wrote far ahead is passed, whether the change reads the row or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_passes_the_stored_one_whatever_the_clock_shows() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let engine = open(&server.address(&database)).await;
    let rows = [key("read"), key("blind")];
    commit(&*engine, rows.iter().map(|row| put(row.clone(), "1")).collect()).await.unwrap();
    // Ten seconds.
    let ahead = "UPDATE trestle_first SET ver = ver + 100000000 RETURNING ver";
    let client = server.client(&database).await.unwrap();
    let stored: i64 = client.query(ahead, &[]).await.unwrap()[0].get(0);

    let [read, blind] = rows;
    let mut spec = reading([&read]);
    spec.read(read.clone());
    let change = Change::new(spec, move |_, _| {
        let mut writes = Writes::new();
        writes.put(read.clone(), "2");
        writes
    });
    let version = engine.commit(change).await.unwrap();
    assert!(version.ticks().get() > u64::try_from(stored).unwrap(), "{version:?} after {stored}");

    let other = open(&server.address(&database)).await;
    let version = commit(&*other, vec![put(blind.clone(), "2")]).await.unwrap();
    assert!(version.ticks().get() > u64::try_from(stored).unwrap(), "{version:?} after {stored}");
    assert_eq!(other.get(&blind).await.unwrap(), Some("2".into()));
}

/// Changes of many megabytes that wait together are committed in several groups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_changes_that_wait_together_are_all_there() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let engine = open(&server.address(&server.database().await)).await;
    let content = bytes::Bytes::from(noise(7, 3 * 1024 * 1024));
    let mut writing = tokio::task::JoinSet::new();
    for number in 0..24_u8 {
        let (engine, content) = (Arc::clone(&engine), content.clone());
        writing.spawn(async move {
            commit(&*engine, vec![put(key([number % 3, b'/', number]), content)]).await
        });
    }
    while let Some(written) = writing.join_next().await {
        written.unwrap().unwrap();
    }

    for number in 0..24_u8 {
        let stored = engine.get(&key([number % 3, b'/', number])).await.unwrap();
        assert!(stored.as_ref() == Some(&content), "{number}");
    }
    // A scan ends by its bytes, and goes on after them.
    let limit = ScanLimit { rows: 100, bytes: 4 * 1024 * 1024 };
    let page = engine.scan(&Span::prefix(&[1]), limit).await.unwrap();
    assert_eq!((page.entries.len(), page.more), (2, true));
    assert!(everything(&*engine).await.len() >= 5, "a scan has the bytes of the engine's limit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_stands_still_while_it_is_sent_rows_holds_no_lock_for_long() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let server = Arc::new(server);
    let engine = open(&server.address(&database)).await;
    commit(&*engine, vec![put(key("a"), "1")]).await.unwrap();

    let locks = "SELECT pg_advisory_xact_lock(1); SELECT 1 FROM trestle_first FOR UPDATE";
    let held = stuck(&server, &database, locks).await;
    commit(&*engine, vec![put(key("a"), "2")]).await.unwrap();

    assert_eq!(engine.get(&key("a")).await.unwrap(), Some("2".into()));
    drop(held);
}
