//! `store copy`: a store that moves from a data directory to a database and back is the same, whatever interrupts it,
//! and none that is not complete is served.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use trestle_kv::{
    Change, ChangeSpec, Engine as _, Entry, Keyspaces, Span, Writes,
    limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX},
    visit_rows,
};
use trestle_kv_fjall::{FjallEngine, FjallOptions};
use trestle_kv_postgres::testing::PostgresServer;
use trestle_proto::{blob::v1 as blob, log::v1 as log, queue::v1 as queue, table::v1::WriteMode};
use trestle_tests::{
    Container, HANG, LogStream, Queue, Server, Table, entity, int, log_record, log_texts,
    receipt_of, seconds, text, texts,
};

use crate::{
    client::{Ended, bare, becomes, server, succeeds},
    shared_blobs::bucket,
};

/// More than a row has.
const LARGE: usize = 300_000;

/// The variables by which objects are in a bucket.
fn emulator(bucket: &Server) -> [(&'static str, String); 2] {
    let url = format!("http://{}", bucket.address("azure_blob"));
    [("AZURE_STORAGE_USE_EMULATOR", "true".to_owned()), ("AZURITE_BLOB_STORAGE_URL", url)]
}

/// Two places of a store, with objects of a database at `az://objects/NAME`.
struct Places<'a> {
    bucket: &'a Server,
    from: String,
    to: String,
}

impl Places<'_> {
    fn command(&self, objects: Option<&str>) -> Command {
        let mut command =
            bare(&["store", "copy", "--from", &self.from, "--to", &self.to, "--json"]);
        if let Some(name) = objects {
            command.args(["--to-blob-url", &format!("az://objects/{name}")]);
        }
        command.envs(emulator(self.bucket));
        command
    }

    fn copy(&self, objects: Option<&str>) -> Ended {
        Ended::of(self.command(objects))
    }

    /// Copies a store; the report.
    fn copied(&self, objects: Option<&str>) -> Value {
        let ended = self.copy(objects);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        serde_json::from_str(&ended.output).unwrap()
    }

    fn started(&self, objects: Option<&str>) -> Child {
        let mut command = self.command(objects);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

/// Serves a database with its objects in a bucket.
fn serve_database(url: &str, bucket: &Server, objects: &str) -> Server {
    let [emulated, address] = emulator(bucket);
    let objects = format!("az://objects/{objects}");
    let settings = [
        ("TRESTLE__STORAGE__ENGINE", url),
        ("TRESTLE__STORAGE__BLOB_URL", &objects),
        (emulated.0, &emulated.1),
        (address.0, &address.1),
    ];
    Server::start(&[], &settings)
}

fn serve_directory(path: &Path) -> Server {
    Server::start(&["--data-dir", path.to_str().unwrap()], &[])
}

/// The error of a server that does not start.
fn refused(settings: &[(&str, &str)], args: &[&str]) -> Ended {
    let mut command = bare(&["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    for edge in ["--azure-table", "--azure-queue", "--azure-blob"] {
        command.args([edge, "off"]);
    }
    let ended = Ended::of({
        command.args(args).envs(settings.iter().copied());
        command
    });
    assert_eq!(ended.code, Some(4), "{ended:?}");
    ended
}

fn content(seed: &str, length: usize) -> Vec<u8> {
    seed.bytes().cycle().take(length).collect()
}

/// What a client has of a store.
struct Kept {
    etag: String,
    newest: (i64, i32),
    receipt: queue::ReceiptRef,
    snapshot: String,
}

/// Writes something of everything.
async fn fill(server: &Server) -> Kept {
    let channel = server.channel();
    succeeds(server, &["table", "create", "orders"]);
    let orders = Table::over(&channel, "orders");
    let mut etag = String::new();
    let mut newest = (0, 0);
    for number in 0..30 {
        let written = orders.insert(entity("p", &format!("{number:02}"), [int("n", number)]));
        let written = written.await.unwrap();
        newest = (written.timestamp.seconds, written.timestamp.nanos);
        etag = written.etag;
    }
    orders.delete("p", "07", None).await.unwrap();

    let jobs = Queue::over(&channel, "jobs");
    let settings = queue::Queue { name: "jobs".to_owned(), ..Default::default() };
    let request = queue::CreateQueueRequest { queue: Some(settings) };
    jobs.client().create_queue(request).await.unwrap();
    for number in 0..5 {
        jobs.send(text(&format!("job {number}"))).await.unwrap();
    }
    let held = jobs.receive(1, seconds(3600)).await.unwrap();
    assert_eq!(texts(&held), ["job 0"]);

    let photos = Container::over(&channel, "photos");
    photos.create().await.unwrap();
    photos.write("small", "small").await.unwrap();
    photos.write("large", content("large", 3_000_000)).await.unwrap();
    photos.stage("blocks", "A", content("A", LARGE)).await.unwrap();
    photos.stage("blocks", "B", content("B", LARGE)).await.unwrap();
    photos.commit("blocks", &["B", "A"]).await.unwrap();
    photos.stage("staged", "C", content("C", LARGE)).await.unwrap();
    photos.create_append("lines").await.unwrap();
    photos.append(photos.appending("lines"), "one\n").await.unwrap();
    let snapshot = photos.snapshot("large").await.unwrap().snapshot;
    photos.write("large", content("replaced", LARGE)).await.unwrap();

    let app = LogStream::over(&channel, "app");
    let stream = log::LogStream { name: "app".to_owned(), ..Default::default() };
    app.create(stream).await.unwrap();
    app.append(&[log_record(1, "sealed")]).await.unwrap();
    app.flush().await.unwrap();
    app.append(&[log_record(2, "unsealed")]).await.unwrap();
    Kept { etag, newest, receipt: receipt_of(&held[0]), snapshot }
}

/// Checks that a server has what was written, and writes more; its time goes on.
async fn check(server: &Server, kept: &mut Kept) {
    let channel = server.channel();
    let orders = Table::over(&channel, "orders");
    assert_eq!(orders.rows("").await.unwrap().len(), 29);
    let changed = entity("p", "29", [int("n", -1)]);
    let written = orders.update(changed, WriteMode::Replace, Some(&kept.etag)).await.unwrap();
    let newest = (written.timestamp.seconds, written.timestamp.nanos);
    assert!(newest > kept.newest, "{newest:?} {:?}", kept.newest);
    (kept.newest, kept.etag) = (newest, written.etag);

    let photos = Container::over(&channel, "photos");
    assert_eq!(photos.read("small").await.unwrap().data, "small");
    assert_eq!(photos.read("large").await.unwrap().data, content("replaced", LARGE));
    let (snapshot, reading) = (kept.snapshot.clone(), photos.reading("large"));
    let past = photos.read_with(blob::ReadBlobRequest { snapshot, ..reading }).await.unwrap();
    assert_eq!(past.data, content("large", 3_000_000));
    let blocks = photos.read("blocks").await.unwrap().data;
    assert_eq!(blocks, [content("B", LARGE), content("A", LARGE)].concat());
    succeeds(server, &["blob", "verify", "photos"]);
}

/// The messages that a queue has, in their order.
async fn messages(jobs: &Queue) -> Vec<String> {
    let peeked = jobs.peek(32).await.unwrap();
    peeked.iter().map(|message| trestle_tests::text_of(message).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_moves_to_a_database_and_back() {
    let Some(postgres) = PostgresServer::start(&[]).await else { return };
    let (folder, bucket) = (tempfile::tempdir().unwrap(), bucket());
    let (data, back) = (folder.path().join("data"), folder.path().join("back"));
    let (data_text, back_text) = (data.to_str().unwrap(), back.to_str().unwrap());
    let database = postgres.database().await;
    let url = postgres.url(&database);
    let original = serve_directory(&data);
    let mut kept = fill(&original).await;
    let places = Places { bucket: &bucket, from: data_text.to_owned(), to: url.clone() };
    let served = places.copy(Some("prod"));
    assert_eq!(served.code, Some(5), "{served:?}");
    assert_eq!(original.terminate(), Some(0));
    let without = places.copy(None);
    assert_eq!(without.code, Some(2), "{without:?}");
    assert!(without.errors.contains("--to-blob-url is required"), "{without:?}");
    let mut mistyped = places.command(None);
    mistyped.args(["--to-blob-url", "az://absent/prod"]);
    let mistyped = Ended::of(mistyped);
    assert_eq!(mistyped.code, Some(5), "{mistyped:?}");
    assert!(mistyped.errors.contains("the object store cannot be used"), "{mistyped:?}");

    // The place that is right is not refused after one that is not.
    let report = places.copied(Some("prod"));
    assert_eq!((&report["differences"], &report["missing"]), (&0.into(), &0.into()), "{report}");
    assert_eq!(report["copied"], report["rows"], "{report}");
    assert!(report["objects"].as_u64() >= Some(5), "{report}");
    let copy = serve_database(&url, &bucket, "prod");
    check(&copy, &mut kept).await;
    let jobs = Queue::over(&copy.channel(), "jobs");
    assert_eq!(messages(&jobs).await, ["job 1", "job 2", "job 3", "job 4"]);
    jobs.delete(kept.receipt.clone()).await.unwrap();
    assert_eq!(jobs.count().await, 4, "the receipt was valid");
    jobs.send(text("job 5")).await.unwrap();
    let photos = Container::over(&copy.channel(), "photos");
    photos.commit("staged", &["C"]).await.unwrap();
    photos.append(photos.appending("lines"), "two\n").await.unwrap();
    photos.write("new", content("new", LARGE)).await.unwrap();
    let app = LogStream::over(&copy.channel(), "app");
    assert_eq!(log_texts(&app.read().await.unwrap().records), ["sealed", "unsealed"]);
    app.append(&[log_record(3, "there")]).await.unwrap();
    app.flush().await.unwrap();
    app.append(&[log_record(4, "unsealed there")]).await.unwrap();
    let places = Places { bucket: &bucket, from: url, to: back_text.to_owned() };
    let served = places.copy(None);
    assert_eq!(served.code, Some(5), "{served:?}");
    assert!(served.errors.contains("servers have the source open"), "{served:?}");
    assert!(!back.exists());
    assert_eq!(copy.terminate(), Some(0));
    gone(&postgres, &database).await;

    places.copied(None);
    let copy = serve_directory(&back);
    check(&copy, &mut kept).await;
    let jobs = Queue::over(&copy.channel(), "jobs");
    assert_eq!(messages(&jobs).await, ["job 1", "job 2", "job 3", "job 4", "job 5"]);
    let photos = Container::over(&copy.channel(), "photos");
    assert_eq!(photos.read("staged").await.unwrap().data, content("C", LARGE));
    assert_eq!(photos.read("lines").await.unwrap().data, "one\ntwo\n");
    assert_eq!(photos.read("new").await.unwrap().data, content("new", LARGE));
    let app = LogStream::over(&copy.channel(), "app");
    let records = app.read().await.unwrap().records;
    assert_eq!(log_texts(&records), ["sealed", "unsealed", "there", "unsealed there"]);
    app.append(&[log_record(5, "later")]).await.unwrap();
    app.flush().await.unwrap();
    succeeds(&copy, &["log", "verify", "app"]);
    assert_eq!(copy.terminate(), Some(0));
}

/// Time passes for the processes of a database, which have ended: one that is slow to leave counts for 10 seconds.
async fn gone(postgres: &PostgresServer, database: &str) {
    let members = "DELETE FROM trestle_members WHERE get_byte(k, 0) = 8";
    postgres.execute(database, members).await.unwrap();
}

/// Rows of a relation of a database, of which there may be none yet.
async fn rows_of(postgres: &PostgresServer, database: &str, relation: &str) -> i64 {
    let client = postgres.client(database).await.unwrap();
    let counted = client.query_one(&format!("SELECT count(*) FROM {relation}"), &[]).await;
    counted.map_or(0, |row| row.get(0))
}

/// Waits until something is so.
async fn until(is_so: impl AsyncFn() -> bool) {
    let waited = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG, waited).await.expect("it becomes so");
}

/// Kills a command in the middle.
fn kill(mut child: Child) {
    assert!(child.try_wait().unwrap().is_none(), "it has not ended");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Stops a server for a while, or has it go on.
fn signal(server: &Server, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_was_killed_is_no_store_until_it_is_continued() {
    let Some(postgres) = PostgresServer::start(&[]).await else { return };
    let (folder, bucket) = (tempfile::tempdir().unwrap(), bucket());
    let (data, other) = (folder.path().join("data"), folder.path().join("other"));
    // The source was not closed.
    let original = serve_directory(&data);
    fill(&original).await;
    original.kill();
    assert_eq!(serve_directory(&other).terminate(), Some(0));
    let database = postgres.database().await;
    let url = postgres.url(&database);
    let from =
        |path: &Path| Places { bucket: &bucket, from: path.display().to_string(), to: url.clone() };

    // One is killed before the first row, and the next one at the queues, whose relation then takes no row.
    signal(&bucket, Signal::STOP);
    let first = from(&data).started(Some("prod"));
    until(async || rows_of(&postgres, &database, "trestle_copying").await == 1).await;
    kill(first);
    let trigger = "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                   PERFORM pg_sleep(3600); RETURN NULL; END $$; \
                   CREATE TRIGGER hold BEFORE INSERT ON trestle_q_vis EXECUTE FUNCTION hold()";
    postgres.execute(&database, trigger).await.unwrap();
    signal(&bucket, Signal::CONT);
    let second = from(&data).started(Some("prod"));
    until(async || rows_of(&postgres, &database, "trestle_q_msg").await > 0).await;
    kill(second);
    let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE application_name = 'trestle'; DROP FUNCTION hold CASCADE";
    postgres.execute(&database, ended).await.unwrap();

    let settings = [
        ("TRESTLE__STORAGE__ENGINE", url.as_str()),
        ("TRESTLE__STORAGE__BLOB_URL", "az://objects/prod"),
    ];
    let unfinished = refused(&settings, &[]);
    let advice = "continue it by `trestle store copy` with the same --from and --to";
    assert!(unfinished.errors.contains(advice), "{unfinished:?}");
    let another = from(&other).copy(Some("prod"));
    assert_eq!(another.code, Some(2), "{another:?}");
    assert!(another.errors.contains("an unfinished copy of another store"), "{another:?}");
    let itself = Places { to: folder.path().join("x").display().to_string(), ..from(&data) };
    let itself = Places { from: url.clone(), ..itself }.copy(None);
    assert!(itself.errors.contains("--from has an unfinished copy itself"), "{itself:?}");

    let continued = from(&data).copy(Some("prod"));
    assert_eq!(continued.code, Some(0), "{continued:?}");
    let report: Value = serde_json::from_str(&continued.output).unwrap();
    let (rows, copied) = (report["rows"].as_u64().unwrap(), report["copied"].as_u64().unwrap());
    assert!(copied > 0 && copied < rows, "{report}");
    let serving = serve_database(&url, &bucket, "prod");
    assert_eq!(Table::over(&serving.channel(), "orders").rows("").await.unwrap().len(), 29);
    assert_eq!(Queue::over(&serving.channel(), "jobs").count().await, 5);
    assert_eq!(serving.terminate(), Some(0));
    let source = serve_directory(&data);
    assert_eq!(Table::over(&source.channel(), "orders").rows("").await.unwrap().len(), 29);
    assert_eq!(source.terminate(), Some(0));
    let again = from(&data).copy(Some("prod"));
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.errors.contains("it is not empty"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_of_a_copy_that_was_killed_is_used_by_no_command() {
    let Some(postgres) = PostgresServer::start(&[]).await else { return };
    let (folder, bucket) = (tempfile::tempdir().unwrap(), bucket());
    let database = postgres.database().await;
    let url = postgres.url(&database);
    let original = serve_database(&url, &bucket, "prod");
    succeeds(&original, &["table", "create", "orders"]);
    let orders = Table::over(&original.channel(), "orders");
    orders.insert(entity("p", "r", [int("n", 1)])).await.unwrap();
    let photos = Container::over(&original.channel(), "photos");
    photos.create().await.unwrap();
    photos.write("large", content("large", LARGE)).await.unwrap();
    assert_eq!(original.terminate(), Some(0));
    gone(&postgres, &database).await;
    let to = folder.path().join("copy");
    let to_text = to.to_str().unwrap();
    let places = Places { bucket: &bucket, from: url.clone(), to: to_text.to_owned() };

    // It waits for an object.
    signal(&bucket, Signal::STOP);
    let first = places.started(None);
    assert!(becomes(|| to.join("kv/MANIFEST").exists()));
    kill(first);
    signal(&bucket, Signal::CONT);

    for command in ["compact", "repair", "doctor"] {
        let refused = Ended::of(bare(&[command, "--data-dir", to_text]));
        assert_eq!(refused.code, Some(4), "{refused:?}");
        assert!(refused.errors.contains("a copy into this store did not finish"), "{refused:?}");
    }
    refused(&[], &["--data-dir", to_text]);
    assert!(to.join("COPYING").exists());
    // A copy of one state is not continued by another one.
    let original = serve_database(&url, &bucket, "prod");
    let orders = Table::over(&original.channel(), "orders");
    orders.insert(entity("p", "later", [int("n", 1)])).await.unwrap();
    assert_eq!(original.terminate(), Some(0));
    gone(&postgres, &database).await;
    let changed = places.copy(None);
    assert_eq!(changed.code, Some(2), "{changed:?}");
    assert!(changed.errors.contains("or of this one as it was before"), "{changed:?}");
    fs::remove_dir_all(&to).unwrap();
    signal(&bucket, Signal::STOP);
    let first = places.started(None);
    assert!(becomes(|| to.join("kv/MANIFEST").exists()));
    kill(first);
    signal(&bucket, Signal::CONT);

    let continued = places.copy(None);
    assert_eq!(continued.code, Some(0), "{continued:?}");
    assert!(!to.join("COPYING").exists());
    let copy = serve_directory(&to);
    let orders = Table::over(&copy.channel(), "orders");
    assert_eq!(orders.rows("").await.unwrap(), ["later", "r"]);
    let photos = Container::over(&copy.channel(), "photos");
    assert_eq!(photos.read("large").await.unwrap().data, content("large", LARGE));
    assert_eq!(copy.terminate(), Some(0));
}

/// Rows of tables of a store that no server has open, with keys and values of every length.
fn written(data: &Path) -> BTreeMap<Bytes, Bytes> {
    let key = |first: u8, length: usize| [&[0x20, first][..], &vec![first; length - 2]].concat();
    let mut rows: BTreeMap<Bytes, Bytes> = (0..3000_u16)
        .map(|number| ([&[0x20, 0], &number.to_be_bytes()[..]].concat().into(), Bytes::new()))
        .collect();
    for (first, key_bytes, value_bytes) in
        [(1, 2400, 1), (1, 2401, 10), (1, KEY_BYTES_MAX, 0), (2, KEY_BYTES_MAX, VALUE_BYTES_MAX)]
    {
        rows.insert(key(first, key_bytes).into(), vec![first; value_bytes].into());
    }
    let engine = opened(data);
    let keyspaces = Keyspaces::new(trestle::storage::keyspaces()).unwrap();
    for (key, value) in rows.clone() {
        let spec = ChangeSpec::new(keyspaces.domain(&key).unwrap());
        let change = Change::new(spec, move |_, _| {
            let mut writes = Writes::new();
            writes.put(key.clone(), value.clone());
            writes
        });
        futures::executor::block_on(engine.commit(change)).unwrap();
    }
    rows
}

fn opened(data: &Path) -> FjallEngine {
    let options = FjallOptions::new(data.join("kv"), trestle::storage::keyspaces());
    let durability = trestle_kv_fjall::SyncPolicy::Os;
    FjallEngine::open(FjallOptions { durability, ..options }).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_any_length_are_the_same_after_both_ways() {
    let Some(postgres) = PostgresServer::start(&[]).await else { return };
    let (folder, bucket) = (tempfile::tempdir().unwrap(), server());
    let (data, back) = (folder.path().join("data"), folder.path().join("back"));
    fs::create_dir(&data).unwrap();
    let from = data.clone();
    let rows = tokio::task::spawn_blocking(move || written(&from)).await.unwrap();
    let url = postgres.url(&postgres.database().await);
    let (from, to) = (data.display().to_string(), back.display().to_string());

    let there = Places { bucket: &bucket, from, to: url.clone() }.copied(None);
    let here = Places { bucket: &bucket, from: url, to }.copied(None);

    assert_eq!(there["rows"].as_u64(), Some(rows.len() as u64));
    assert_eq!(there["keyspaces"], here["keyspaces"]);
    let engine = opened(&back);
    let mut found = BTreeMap::new();
    let visit = |row: &Entry| drop(found.insert(row.key.clone(), row.value.clone()));
    visit_rows(&engine, Span::prefix(&[0x20]), visit).await.unwrap();
    assert!(found == rows, "{} rows", found.len());
}
