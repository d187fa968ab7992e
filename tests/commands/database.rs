//! A server whose store is a database.

use std::{
    fs,
    time::{Duration, Instant},
};

use trestle_kv_postgres::testing::PostgresServer;
use trestle_tests::{HANG, Server, metric};

use crate::{
    client::{Ended, bare, succeeds},
    members::members,
};

const ROLES: [&str; 2] = ["--roles", "gateway,table,queue"];

/// Starts a server over a database.
fn start(url: &str) -> Server {
    Server::start(&ROLES, &[("TRESTLE__STORAGE__ENGINE", url)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_has_all_when_the_first_is_killed() {
    let Some(postgres) = PostgresServer::start(&["fsync=on"]).await else { return };
    let url = postgres.url(&postgres.database().await);
    let first = start(&url);
    succeeds(&first, &["table", "create", "orders"]);
    for row in ["1", "2", "3"] {
        succeeds(&first, &["entity", "insert", "orders", "-p", "p", "-r", row, "--set", "v=1"]);
    }
    succeeds(&first, &["entity", "delete", "orders", "-p", "p", "-r", "2"]);
    succeeds(&first, &["queue", "create", "jobs"]);
    for text in ["resize", "send"] {
        succeeds(&first, &["message", "send", "jobs", text]);
    }
    let exported = succeeds(&first, &["table", "export", "orders", "-"]).output;
    assert_eq!(exported.lines().count(), 2, "{exported}");

    let second = start(&url);
    succeeds(&first, &["entity", "insert", "orders", "-p", "p", "-r", "4", "--set", "v=1"]);
    first.kill();

    let rows = succeeds(&second, &["table", "export", "orders", "-"]).output;
    assert_eq!(rows.lines().count(), 3, "{rows}");
    assert!(rows.starts_with(&exported), "{rows}");
    let received = succeeds(&second, &["message", "receive", "jobs", "-o", "jsonl"]).output;
    assert!(received.contains("resize"), "{received}");
    assert_eq!(second.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_says_what_the_database_keeps() {
    let Some(postgres) = PostgresServer::start(&[]).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("trestle.toml");
    let doctor = |url: &str| {
        let settings =
            format!("[server]\nroles = \"gateway,table,queue\"\n[storage]\nengine = \"{url}\"\n");
        fs::write(&config, settings).unwrap();
        Ended::of(bare(&["doctor", "--config", config.to_str().unwrap()]))
    };
    let database = postgres.database().await;

    let risky = doctor(&postgres.url(&database));
    assert!(risky.output.contains("fsync=`off`"), "{risky:?}");
    let absent = doctor(&postgres.url("absent"));
    assert!(absent.output.contains("database \"absent\" does not exist"), "{absent:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_report_the_database_and_the_processes_that_serve_it() {
    let Some(mut postgres) = PostgresServer::start(&["fsync=on"]).await else { return };
    let url = postgres.url(&postgres.database().await);
    let first = start(&url);
    succeeds(&first, &["table", "create", "orders"]);
    let page = first.page("/metrics").await;
    let value = |series: &str| metric(&page, series).unwrap_or_else(|| panic!("{series}: {page}"));
    for (series, expected) in [
        ("trestle_storage_commit_queue{", 0.0),
        ("trestle_storage_commit_shed_total{", 0.0),
        ("trestle_storage_commit_retries_total{error_type=\"deadlock\"", 0.0),
        ("trestle_storage_commit_unknown_total{", 0.0),
        ("trestle_storage_database_primary{", 1.0),
        ("trestle_storage_database_durable{", 1.0),
        ("trestle_storage_database_standbys{", 0.0),
        ("db_client_connection_max{db_client_connection_pool_name=\"snapshots\"", 16.0),
        ("trestle_store_processes_changes_total{", 0.0),
    ] {
        assert_eq!(value(series), expected, "{series}: {page}");
    }
    for series in [
        "trestle_storage_group_changes_count{",
        "trestle_storage_group_duration_seconds_sum{",
        "trestle_storage_commit_size_bytes_total{",
        "trestle_store_jobs{",
    ] {
        assert!(value(series) > 0.0, "{series}: {page}");
    }
    let idle = "db_client_connection_count{db_client_connection_pool_name=\"commits\",\
                db_client_connection_state=\"idle\"";
    for series in [idle, "trestle_storage_snapshot_age", "trestle_store_renewal_age_seconds{"] {
        assert!(value(series) >= 0.0, "{series}: {page}");
    }

    let second = start(&url);
    members(&first, 2).await;
    let jobs =
        async |server: &Server| metric(&server.page("/metrics").await, "trestle_store_jobs{");
    members(&second, 2).await;
    let both = jobs(&first).await.zip(jobs(&second).await);
    let all = value("trestle_store_jobs{");
    assert_eq!(both.map(|(first, second)| first + second), Some(all), "each is of one of them");
    let changes = metric(&first.page("/metrics").await, "trestle_store_processes_changes_total{");
    assert_eq!(changes, Some(1.0));

    // The database is away.
    postgres.crash();
    let until = Instant::now() + HANG;
    loop {
        let page = first.page("/metrics").await;
        let age = metric(&page, "trestle_store_renewal_age_seconds{");
        let primary = metric(&page, "trestle_storage_database_primary{");
        if age > Some(10.0) && primary == Some(0.0) {
            break;
        }
        assert!(Instant::now() < until, "{age:?} {primary:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[test]
fn settings_that_do_not_fit_a_database_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("trestle.toml");
    for (roles, storage, expected) in [
        ("table,blob", "engine = \"postgres://db/t\"", "storage.blob_url: required"),
        ("table,log", "engine = \"postgres://db/t\"", "storage.blob_url: required"),
        ("table", "engine = \"postgres://u:hunter2@db/t\"", "storage.engine_password_file"),
        ("table", "engine = \"mysql://db/t\"", "must begin with postgres://"),
        ("table", "engine = \"postgres://db/t\"\nephemeral = true", "storage.ephemeral"),
        ("table", "engine_password_file = \"f\"", "must be set with"),
        ("table", "engine = \"postgres://db/t\"\n[backup]\ntarget = \"b\"", "backup.target"),
    ] {
        fs::write(&config, format!("[server]\nroles = \"{roles}\"\n[storage]\n{storage}\n"))
            .unwrap();
        let checked = Ended::of(bare(&["config", "check", "--config", config.to_str().unwrap()]));
        assert_eq!(checked.code, Some(2), "{storage}: {checked:?}");
        let text = format!("{}{}", checked.output, checked.errors);
        assert!(text.contains(expected) && !text.contains("hunter2"), "{storage}: {checked:?}");
    }
}
