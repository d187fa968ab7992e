//! A disk that fails: after the first failed sync no write is acknowledged, reads continue, and a
//! restart recovers every acknowledged write.
//!
//! The faults come from a library that the test compiles and loads before the server's own.

use std::{
    fs,
    path::{Path, PathBuf},
    pin::pin,
    process::Command,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::future::{Either, join_all, select};
use tonic::{Code, transport::Channel};
use tonic_health::{
    ServingStatus,
    pb::{HealthCheckRequest, health_client::HealthClient},
};
use trestle_tests::{Ended, HANG, RestRequest, Server, Table, command, entity, exchange};

use crate::{
    contents::{Contents, MAIN},
    start,
    writer::{check, create, crew, resolve, work},
};

/// The compiled library, or none where there is no C compiler.
pub(crate) fn library() -> Option<&'static str> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compiled = LIBRARY.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = root.join("../shared/kv-fjall/tests/faults/fsfault.c");
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // Another run may be loading the old one: replace it atomically.
        let draft = directory.join(format!("server-fault-{}.so", std::process::id()));
        let library = directory.join("libserver-fault.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&draft).arg(&source);
        let Ok(status) = compiler.arg("-ldl").status() else {
            println!("SKIPPED: no C compiler `cc`, so no faults of the file system are tested");
            return None;
        };
        assert!(status.success(), "the fault library does not compile");
        fs::rename(draft, &library).unwrap();
        Some(library)
    });
    compiled.as_deref().map(|path| path.to_str().expect("a path in UTF-8"))
}

async fn health(channel: &Channel, service: &str) -> i32 {
    let service = service.to_owned();
    let answer = HealthClient::new(channel.clone()).check(HealthCheckRequest { service }).await;
    answer.expect("health is answered").into_inner().status
}

async fn becomes_unhealthy(channel: &Channel, service: &str) {
    let not_serving = async {
        while health(channel, service).await != ServingStatus::NotServing as i32 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(HANG, not_serving).await;
    assert!(waited.is_ok(), "`{service}` still reports SERVING");
}

/// Azure clients would retry a 500 or 503 for minutes, but only a restart helps.
async fn rest_clients_get_no_retry_delay(server: &Server, data: &Path) {
    let entity = r#"{"PartitionKey":"late","RowKey":"rest"}"#;
    let insert = RestRequest::json("POST", &format!("/{MAIN}"), entity);
    let rejected = exchange(&server.address("azure_table"), insert).await;
    assert_eq!(rejected.failure(), (403, "InsufficientAccountPermissions"), "{rejected:?}");
    assert_eq!(rejected.header("retry-after"), "");
    for part in ["Write operations are not allowed.", "until the server is restarted"] {
        assert!(rejected.text().contains(part), "{part}: {rejected:?}");
    }
    for part in [data.to_str().unwrap(), ".jnl", "os error", "sufficient permissions"] {
        assert!(!rejected.text().contains(part), "{part}: {rejected:?}");
    }
    let read = RestRequest::table("GET", &format!("/{MAIN}()?$top=1"));
    assert_eq!(exchange(&server.address("azure_table"), read).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_sync_rejects_all_writes_until_a_restart_that_loses_none() {
    let Some(library) = library() else { return };
    let (data, triggers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let trigger = triggers.path().join("sync-fails");
    let directory = triggers.path().to_str().expect("a path in UTF-8");
    let log = triggers.path().join("log");
    let reads_on = ("TRESTLE__STORAGE__EXIT_WHEN_STOPPED", "false");
    let settings = [("LD_PRELOAD", library), ("KVFAULT_DIR", directory), reads_on];
    let args = ["--data-dir", data.path().to_str().unwrap()];
    let server = Server::start_logging(&log, &args, &settings);
    let channel = server.channel();
    let main = Table::over(&channel, MAIN);
    create(&main).await.unwrap();
    assert_eq!(health(&channel, "").await, ServingStatus::Serving as i32);

    let crew = crew();
    let acknowledged: Vec<_> = crew.iter().map(|writer| Arc::clone(&writer.acknowledged)).collect();
    // Every writer has an acknowledged write before the fault.
    let writes = join_all(acknowledged.iter().map(|progress| progress.by(6)));
    let load = pin!(work(crew, &channel));
    let Either::Right((_, load)) = select(load, writes).await else {
        panic!("writes failed without a fault");
    };
    fs::write(&trigger, "").unwrap();
    let ended = tokio::time::timeout(HANG, load).await;
    let mut crew = ended.expect("writes continue, though no sync succeeds");
    fs::remove_file(&trigger).unwrap();

    for writer in &crew {
        let error = writer.error.as_ref().expect("only a failure ends a run");
        let is_unknown = error.kind() == (Code::Unknown, "OUTCOME_UNKNOWN");
        let is_stopped = error.kind() == (Code::Unavailable, "STORAGE_STOPPED");
        assert!(is_unknown || is_stopped, "{error:?}");
    }
    // The disk works again; the server still rejects writes until a restart.
    for row in 0..100 {
        let rejected = main.insert(entity("late", &row.to_string(), [])).await.unwrap_err();
        assert_eq!(rejected.kind(), (Code::Unavailable, "STORAGE_STOPPED"));
    }
    let log = fs::read_to_string(log).unwrap();
    let count = |text: &str| log.matches(text).count();
    assert_eq!(count("storage stops"), 1, "{log}");
    // One for each method and code, and not one for each write.
    let lines = count("TableService/InsertEntity\" code=\"UNAVAILABLE\"");
    assert!((1..=3).contains(&lines), "{log}");
    rest_clients_get_no_retry_delay(&server, data.path()).await;
    becomes_unhealthy(&channel, "").await;
    becomes_unhealthy(&channel, "trestle.table.v1.TableService").await;
    becomes_unhealthy(&channel, "trestle.storage.writes").await;
    let status = Ended::of(command(&server, &["status", "-o", "plain"])).output;
    assert!(
        status.contains("writes\tnot accepted: a store is stopped, or the server shuts down\n"),
        "{status}"
    );
    // Reads still return every acknowledged write.
    check(&crew, &Contents::take(&channel).await);
    drop(server);

    let server = start(&data, &[]);
    let channel = server.channel();
    resolve(&mut crew, &Contents::take(&channel).await);
    let acknowledged: u64 = acknowledged.iter().map(|progress| progress.made()).sum();
    println!("{acknowledged} acknowledged writes before a sync failed");
    assert!(acknowledged >= 50, "{acknowledged}");
    assert_eq!(health(&channel, "").await, ServingStatus::Serving as i32);
    let main = Table::over(&channel, MAIN);
    main.insert(entity("late", "r", [])).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_store_stopped_ends_with_its_own_exit_code() {
    let Some(library) = library() else { return };
    let (data, triggers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log = triggers.path().join("log");
    let directory = triggers.path().to_str().expect("a path in UTF-8");
    let args = ["--data-dir", data.path().to_str().unwrap()];
    let settings = [("LD_PRELOAD", library), ("KVFAULT_DIR", directory)];
    let server = Server::start_logging(&log, &args, &settings);
    let main = Table::over(&server.channel(), MAIN);
    create(&main).await.unwrap();
    main.insert(entity("p", "before", [])).await.unwrap();

    fs::write(triggers.path().join("sync-fails"), "").unwrap();
    main.insert(entity("p", "failed", [])).await.unwrap_err();
    let code = server.ended().await;

    assert_eq!(code, Some(7));
    let log = fs::read_to_string(log).unwrap();
    for part in ["the store stopped; shutting down", "error: storage stopped: sync of a journal"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    let server = start(&data, &[]);
    let main = Table::over(&server.channel(), MAIN);
    assert!(main.get("p", "before").await.is_ok(), "a restart has what was acknowledged");
}
