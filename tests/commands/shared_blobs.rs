//! Blobs of several servers on one database and one object store, which is the blob service of another server: each of
//! them has every blob, and whichever is killed or ends, no acknowledged content is lost.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use futures::future::join_all;
use tonic::Code;
use trestle_kv_postgres::testing::PostgresServer;
use trestle_proto::blob::v1 as proto;
use trestle_tests::{CallError, Container, Server, if_match};

use crate::{
    client::{Ended, bare, becomes, server, succeeds},
    members::{jobs, members},
    owners::answered,
};

const ROLES: [&str; 2] = ["--roles", "gateway,table,queue,blob"];

/// More than a row has.
const LARGE: usize = 300_000;

/// A server whose blob service has the objects of others.
pub(crate) fn bucket() -> Server {
    let bucket = server();
    succeeds(&bucket, &["blob", "container", "create", "objects"]);
    bucket
}

/// The variables of a server.
pub(crate) fn settings(database: &str, bucket: &Server) -> [(&'static str, String); 4] {
    [
        ("TRESTLE__STORAGE__ENGINE", database.to_owned()),
        ("TRESTLE__STORAGE__BLOB_URL", "az://objects/prod".to_owned()),
        ("AZURE_STORAGE_USE_EMULATOR", "true".to_owned()),
        ("AZURITE_BLOB_STORAGE_URL", format!("http://{}", bucket.address("azure_blob"))),
    ]
}

fn start(database: &str, bucket: &Server) -> Server {
    let settings = settings(database, bucket);
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Server::start(&ROLES, &settings)
}

/// A container at each of these servers.
fn at_each<const N: usize>(servers: [&Server; N], name: &str) -> [Container; N] {
    servers.map(|server| Container::over(&server.channel(), name))
}

/// Content that differs from any other with another seed.
fn content(seed: &str, length: usize) -> Vec<u8> {
    seed.bytes().chain(*b"; ").cycle().take(length).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_has_the_blobs_that_another_one_writes() {
    let Some(postgres) = PostgresServer::start(&[]).await else { return };
    let (url, bucket) = (postgres.url(&postgres.database().await), bucket());
    let (first, second) = (start(&url, &bucket), start(&url, &bucket));
    members(&first, 2).await;
    members(&second, 2).await;
    let mut jobs = [jobs(&first).await, jobs(&second).await].concat();
    jobs.sort();
    assert_eq!(jobs, ["blob-sweep", "queue-sweep", "table-sweep"], "each in one of them");
    let [one, other] = at_each([&first, &second], "photos");
    one.create().await.unwrap();
    assert_eq!(other.create().await.unwrap_err().code, Code::AlreadyExists);

    for length in [0, 12, LARGE, 3_000_000] {
        let (name, data) = (format!("whole-{length}"), content("one", length));
        let written = one.write(&name, data.clone()).await.unwrap();
        let read = other.read(&name).await.unwrap();
        assert_eq!((read.blob.etag.as_str(), &read.data[..]), (&*written.etag, &data[..]));
        let replaced = other.write(&name, content("two", length)).await.unwrap();
        let spec = proto::WriteBlobSpec { conditions: if_match(&written.etag), ..one.spec(&name) };
        let stale = one.write_with(spec, data).await.unwrap_err();
        assert_eq!(stale.code, Code::Aborted, "{stale:?}");
        assert_eq!(one.get(&name).await.unwrap().etag, replaced.etag);
    }

    // Blocks, appends and leases of one blob.
    one.stage("blocks", "A", content("A", LARGE)).await.unwrap();
    other.stage("blocks", "B", content("B", LARGE)).await.unwrap();
    other.commit("blocks", &["B", "A"]).await.unwrap();
    let blocks = one.read("blocks").await.unwrap().data;
    assert_eq!(blocks, [content("B", LARGE), content("A", LARGE)].concat());
    one.create_append("lines").await.unwrap();
    let appends = (0..40).map(async |number| {
        let at = if number % 2 == 0 { &one } else { &other };
        at.append(at.appending("lines"), format!("{number:04}\n")).await.unwrap()
    });
    let mut offsets: Vec<_> = join_all(appends).await.iter().map(|it| it.offset).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..40).map(|number| number * 5).collect::<Vec<u64>>());
    let lines = other.read("lines").await.unwrap().data;
    assert_eq!(lines.len(), 200);
    let lease = one.acquire_lease("blocks").await.unwrap();
    let refused = other.write("blocks", "x").await.unwrap_err();
    assert_eq!(refused.code, Code::FailedPrecondition, "{refused:?}");
    let conditions = Some(proto::BlobConditions { lease_id: lease, ..Default::default() });
    let spec = proto::WriteBlobSpec { conditions, ..other.spec("blocks") };
    other.write_with(spec, "held").await.unwrap();

    // A snapshot of one is that of the other, whatever is written later.
    let snapshot = one.snapshot("lines").await.unwrap().snapshot;
    other.append(other.appending("lines"), "later\n").await.unwrap();
    let reading = proto::ReadBlobRequest { snapshot, ..other.reading("lines") };
    assert_eq!(other.read_with(reading).await.unwrap().data, lines);

    other.delete("whole-12").await.unwrap();
    assert_eq!(one.read("whole-12").await.unwrap_err().code, Code::NotFound);
    let listed = [&one, &other].map(|at| at.list("", ""));
    let [here, there] = join_all(listed).await.try_into().unwrap();
    assert_eq!(here.unwrap(), there.unwrap());
    for server in [first, second] {
        let verified = succeeds(&server, &["blob", "verify", "photos"]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
        assert_eq!(server.terminate(), Some(0));
    }
}

/// Any of some servers, in turns.
struct AnyServer {
    containers: Vec<Container>,
    turn: AtomicUsize,
}

impl AnyServer {
    fn container(&self) -> &Container {
        &self.containers[self.turn.fetch_add(1, Relaxed) % self.containers.len()]
    }

    /// Repeats a call until one of them answers.
    async fn answered<T>(&self, call: impl AsyncFn(&Container) -> Result<T, CallError>) -> T {
        answered(async || call(self.container()).await).await
    }

    /// Writes blobs of a worker: one that is replaced by each round, by turns in a row, in an object, and in blocks,
    /// and one that grows.
    async fn round(&self, worker: usize, round: usize) {
        let (name, seed) = (format!("whole-{worker}"), format!("{worker}.{round}"));
        let length = if round.is_multiple_of(2) { LARGE } else { 1000 };
        if round % 3 == 2 {
            // Staged blocks are dropped by a commit whose answer was lost.
            self.answered(async |at| {
                at.stage(&name, "A", content(&seed, length)).await?;
                match at.commit(&name, &["A"]).await {
                    Err(error) if error.code == Code::InvalidArgument => {
                        Err(CallError { code: Code::Unavailable, ..error })
                    }
                    committed => committed,
                }
            })
            .await;
        } else {
            self.answered(async |at| at.write(&name, content(&seed, length)).await).await;
        }
        let seen = self.answered(async |at| at.read(&name).await).await;
        assert_eq!(seen.data, content(&seed, length), "{seed}");
        let (log, line) = (format!("log-{worker}"), format!("{round:04}\n"));
        self.answered(async |at| at.append(at.appending(&log), line.clone()).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_content_is_lost_while_servers_are_killed_and_end() {
    const WORKERS: usize = 6;
    const ROUNDS: usize = 24;
    let Some(postgres) = PostgresServer::start(&["fsync=on"]).await else { return };
    let (url, bucket) = (postgres.url(&postgres.database().await), bucket());
    let (kept, killed, ended) = (start(&url, &bucket), start(&url, &bucket), start(&url, &bucket));
    members(&kept, 3).await;
    let containers = at_each([&kept, &killed, &ended], "work").to_vec();
    containers[0].create().await.unwrap();
    for worker in 0..WORKERS {
        containers[0].create_append(&format!("log-{worker}")).await.unwrap();
    }
    let any = AnyServer { containers, turn: AtomicUsize::new(0) };

    let done = AtomicUsize::new(0);
    let (any_ref, done_ref) = (&any, &done);
    let work = (0..WORKERS).map(|worker| async move {
        for round in 0..ROUNDS {
            any_ref.round(worker, round).await;
            done_ref.fetch_add(1, Relaxed);
        }
    });
    let until = async |share: usize| {
        while done.load(Relaxed) < WORKERS * ROUNDS * share / 4 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let end = async {
        until(1).await;
        killed.kill();
        until(2).await;
        let ended = tokio::task::spawn_blocking(|| ended.terminate());
        assert_eq!(ended.await.unwrap(), Some(0));
    };
    tokio::join!(join_all(work), end);

    // One that starts later has all of it too.
    let late = start(&url, &bucket);
    for container in at_each([&kept, &late], "work") {
        for worker in 0..WORKERS {
            let (last, length) = (ROUNDS - 1, if ROUNDS % 2 == 1 { LARGE } else { 1000 });
            let whole = container.read(&format!("whole-{worker}")).await.unwrap();
            assert_eq!(whole.data, content(&format!("{worker}.{last}"), length));
            let log = container.read(&format!("log-{worker}")).await.unwrap();
            let mut lines: Vec<_> = str::from_utf8(&log.data).unwrap().lines().collect();
            assert!(lines.is_sorted(), "{lines:?}");
            lines.dedup();
            let expected: Vec<_> = (0..ROUNDS).map(|round| format!("{round:04}")).collect();
            assert_eq!(lines, expected);
        }
    }
    for server in [kept, late] {
        succeeds(&server, &["blob", "verify", "work"]);
        assert_eq!(server.terminate(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_database_has_its_objects_only_once_it_is_given_them() {
    let Some(postgres) = PostgresServer::start(&[]).await else { return };
    let (database, bucket) = (postgres.database().await, bucket());
    let first = start(&postgres.url(&database), &bucket);
    let [photos] = at_each([&first], "photos");
    photos.create().await.unwrap();
    photos.write("large", content("large", LARGE)).await.unwrap();
    assert_eq!(first.terminate(), Some(0));
    let sql = format!("CREATE DATABASE copied TEMPLATE {database}");
    postgres.execute("postgres", &sql).await.unwrap();
    let original = start(&postgres.url(&database), &bucket);

    // The original was started since.
    let url = postgres.url("copied");
    let mut refused = bare(&["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    for edge in ["--azure-table", "--azure-queue", "--azure-blob"] {
        refused.args([edge, "off"]);
    }
    refused.args(ROLES).envs(settings(&url, &bucket));
    let refused = Ended::of(refused);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(
        refused.errors.contains("a copy of these records used the object store"),
        "{refused:?}"
    );

    // As docs/scale-out.md has it.
    let claim = succeeds(&bucket, &["blob", "cat", "objects/prod/trestle-owner"]).output;
    let claim = claim.split_once(' ').expect("an owner").1;
    let given = format!(
        "UPDATE trestle_objects SET v = v || convert_to('{claim}' || chr(10), 'UTF8'), ver = ver + 1"
    );
    postgres.execute("copied", &given).await.unwrap();
    let copy = start(&url, &bucket);
    let stopped = || {
        let endpoint = ["healthcheck", "--endpoint", &original.endpoint()];
        Ended::of(bare(&endpoint)).code != Some(0)
    };
    assert!(becomes(stopped), "the original uses them still");
    let [of_copy, of_original] = at_each([&copy, &original], "photos");
    assert_eq!(of_copy.read("large").await.unwrap().data, content("large", LARGE));
    of_copy.write("new", content("new", LARGE)).await.unwrap();
    of_original.write("late", content("late", LARGE)).await.expect_err("it has lost the objects");
    assert_eq!(copy.terminate(), Some(0));
}
