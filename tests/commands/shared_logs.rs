//! Streams of several servers on one database and one object store: each of them appends to every stream, reads it and
//! follows it, and whichever is killed or ends, no acknowledged record is lost or there twice.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::future::{join, join_all};
use prost_types::FieldMask;
use tonic::{Code, Streaming};
use trestle_kv_postgres::testing::PostgresServer;
use trestle_proto::log::v1 as proto;
use trestle_tests::{
    CallError, HANG, LogStream, Server, log_record, log_records, log_texts, seconds,
};

use crate::{
    client::succeeds,
    members::members,
    owners::answered,
    shared_blobs::{bucket, settings},
};

fn start(database: &str, bucket: &Server) -> Server {
    let settings = settings(database, bucket);
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Server::start(&[], &settings)
}

/// A stream at each of these servers.
fn at_each<const N: usize>(servers: [&Server; N], name: &str) -> [LogStream; N] {
    servers.map(|server| LogStream::over(&server.channel(), name))
}

/// The time of the records: any past day will do.
const TIME: u64 = 1_700_000_000_000_000_000;

async fn append(stream: &LogStream, text: &str) -> Result<u64, CallError> {
    Ok(stream.append(&[log_record(TIME, text)]).await?.first_sequence)
}

async fn tail(stream: &LogStream, from: u64) -> Streaming<proto::TailRecordsResponse> {
    let start = Some(proto::tail_records_request::Start::FromSequence(from));
    let request = proto::TailRecordsRequest { stream: stream.name(), start, ..Default::default() };
    stream.client().tail_records(request).await.unwrap().into_inner()
}

/// The texts of the next records that follow.
async fn next(tail: &mut Streaming<proto::TailRecordsResponse>) -> Vec<String> {
    let records = async {
        loop {
            let response = tail.message().await.unwrap().expect("it does not end");
            if !response.records.is_empty() {
                return log_texts(&log_records(response.records));
            }
        }
    };
    tokio::time::timeout(HANG, records).await.expect("records come")
}

async fn stats(stream: &LogStream) -> proto::LogStreamStats {
    stream.get().await.unwrap().stats.unwrap()
}

/// Waits until all records are in segments.
async fn sealed(stream: &LogStream) {
    let sealed = async {
        while stats(stream).await.unsealed_records > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(HANG, sealed).await.expect("the records are sealed in the end");
}

/// A stream whose records are sealed after a second.
fn short(name: &str) -> proto::LogStream {
    let roll_policy = Some(proto::RollPolicy { max_age: Some(seconds(1)), max_bytes: 0 });
    proto::LogStream { name: name.to_owned(), roll_policy, ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_has_the_streams_that_another_one_writes() {
    let Some(postgres) = PostgresServer::start(&[]).await else { return };
    let (url, bucket) = (postgres.url(&postgres.database().await), bucket());
    let servers = [start(&url, &bucket), start(&url, &bucket), start(&url, &bucket)];
    for server in &servers {
        members(server, 3).await;
    }
    let [a, b, c] = &servers;
    for number in 0..6 {
        let [first, second, third] = at_each([a, b, c], &format!("app-{number}"));
        first.create(proto::LogStream { name: first.name(), ..Default::default() }).await.unwrap();
        let mut following = tail(&third, 0).await;
        assert_eq!(append(&second, "one").await.unwrap(), 0);
        assert_eq!(next(&mut following).await, ["one"]);
        assert_eq!(append(&first, "two").await.unwrap(), 1);
        assert_eq!(next(&mut following).await, ["two"]);

        // A condition and a request id are those of the store.
        let spec = third.appending(&[log_record(TIME, "three")]);
        let named = proto::AppendRecordsRequest {
            expected_next_sequence: Some(2),
            request_id: "r".to_owned(),
            ..spec
        };
        third.append_with(named.clone()).await.unwrap();
        assert_eq!(next(&mut following).await, ["three"]);
        let again = proto::AppendRecordsRequest { expected_next_sequence: None, ..named.clone() };
        assert_eq!(first.append_with(again).await.unwrap().first_sequence, 2);
        let stale = proto::AppendRecordsRequest { request_id: String::new(), ..named };
        assert_eq!(second.append_with(stale).await.unwrap_err().code, Code::Aborted);

        // Sealed by a call here, by the age of the records wherever that is done.
        let expected = ["one", "two", "three"];
        assert_eq!(second.flush().await.unwrap().records, 3);
        assert_eq!(third.segments().await.unwrap().len(), 1);
        assert_eq!(log_texts(&first.read().await.unwrap().records), expected);
        let request = proto::UpdateStreamRequest {
            stream: Some(short(&third.name())),
            update_mask: Some(FieldMask { paths: vec!["roll_policy".to_owned()] }),
        };
        third.client().update_stream(request).await.unwrap();
        append(&first, "four").await.unwrap();
        sealed(&second).await;
        assert_eq!(log_texts(&third.read().await.unwrap().records).len(), 4);
        assert_eq!(next(&mut following).await, ["four"]);

        first.delete().await.unwrap();
        let ended = tokio::time::timeout(HANG, following.message()).await.expect("it ends");
        assert_eq!(ended.unwrap_err().code(), Code::NotFound);
        assert_eq!(append(&second, "late").await.unwrap_err().code, Code::NotFound);
    }
    for server in servers {
        assert_eq!(server.terminate(), Some(0));
    }
}

/// Any of some servers, in turns.
struct AnyServer {
    streams: Vec<LogStream>,
    turn: AtomicUsize,
    appended: Mutex<BTreeSet<String>>,
}

impl AnyServer {
    fn new(streams: Vec<LogStream>) -> Self {
        Self { streams, turn: AtomicUsize::new(0), appended: Mutex::default() }
    }

    /// Appends a record under its text as the id, until one of them acknowledges it.
    async fn append(&self, text: &str) {
        let append = async || {
            let at = self.turn.fetch_add(1, Relaxed) % self.streams.len();
            let stream = &self.streams[at];
            let request_id = text.to_owned();
            let request = stream.appending(&[log_record(TIME, text)]);
            stream.append_with(proto::AppendRecordsRequest { request_id, ..request }).await
        };
        answered(append).await;
        self.appended.lock().unwrap().insert(text.to_owned());
    }
}

/// Each text once, in any order.
fn assert_all(texts: &[String], appended: &BTreeSet<String>) {
    let found: BTreeSet<_> = texts.iter().cloned().collect();
    assert_eq!((texts.len(), &found), (appended.len(), appended), "each once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_record_is_lost_while_servers_are_killed_and_end() {
    const WORKERS: usize = 4;
    const ROUNDS: usize = 60;
    let Some(postgres) = PostgresServer::start(&["fsync=on"]).await else { return };
    let (url, bucket) = (postgres.url(&postgres.database().await), bucket());
    let (kept, killed, ended) = (start(&url, &bucket), start(&url, &bucket), start(&url, &bucket));
    members(&kept, 3).await;
    // Some of them are sealed by those that go.
    let names = ["app-0", "app-1", "app-2", "app-3", "app-4", "app-5"];
    let mut streams = Vec::new();
    for name in names {
        let each = at_each([&kept, &killed, &ended], name);
        each[0].create(short(name)).await.unwrap();
        streams.push(AnyServer::new(each.to_vec()));
    }
    let mut following = tail(&streams[0].streams[0], 0).await;

    let done = AtomicUsize::new(0);
    let (streams_ref, done_ref) = (&streams, &done);
    let work = (0..WORKERS).map(|worker| async move {
        for round in 0..ROUNDS {
            for stream in streams_ref {
                stream.append(&format!("{worker}.{round}")).await;
            }
            done_ref.fetch_add(1, Relaxed);
            tokio::time::sleep(Duration::from_millis(50)).await;
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
    let follow = async {
        let mut texts = Vec::new();
        while texts.len() < WORKERS * ROUNDS {
            texts.extend(next(&mut following).await);
        }
        texts
    };
    let (followed, _) = join(follow, join(join_all(work), end)).await;
    assert_all(&followed, &streams[0].appended.lock().unwrap().clone());

    let late = start(&url, &bucket);
    for (name, stream) in names.iter().zip(&streams) {
        let appended = stream.appended.lock().unwrap().clone();
        let each = at_each([&kept, &late], name);
        sealed(&each[0]).await;
        for stream in &each {
            assert_all(&log_texts(&stream.read().await.unwrap().records), &appended);
            let stats = stats(stream).await;
            assert_eq!((stats.next_sequence, stats.segment_records), (240, 240));
        }
        succeeds(&kept, &["log", "verify", name]);
    }
    for server in [kept, late] {
        assert_eq!(server.terminate(), Some(0));
    }
}
