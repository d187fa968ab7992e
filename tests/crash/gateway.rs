//! The table process ends and comes back behind a gateway: clients wait out the gap, every answer
//! they get is true, and the gateway finds the new process by itself.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::{JoinHandle, JoinSet},
};
use tonic::Code;
use trestle_tests::{Refusal, Server, Table, entity};

use crate::{progress::Progress, sight::MAIN, writer::create};

/// No call may take longer, whatever becomes of the process that it was for.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Writes before the gap, and as many after it.
const WRITES: u64 = 100;
/// Refusals in the gap.
const REFUSALS: u64 = 20;

/// All that a client may be told while a role is away: to repeat the call as it is, and to repeat
/// it if it is idempotent or conditional.
const NOTHING_WRITTEN: (Code, &str) = (Code::Unavailable, "SERVER_UNAVAILABLE");
const UNKNOWN: (Code, &str) = (Code::Unknown, "OUTCOME_UNKNOWN");

/// One address in front of processes that come and go, as a service has in a cluster.
struct Front {
    address: SocketAddr,
    accepting: JoinHandle<()>,
    refusing: Arc<Notify>,
}

impl Front {
    /// Passes connections on to `target`.
    async fn open(address: SocketAddr, target: String) -> Self {
        let listener = TcpListener::bind(address).await.expect("the address is free");
        let address = listener.local_addr().expect("it has an address");
        let refusing = Arc::new(Notify::new());
        let refused = Arc::clone(&refusing);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Some(mut near) = accept(&listener, &refused).await {
                let target = target.clone();
                connections.spawn(async move {
                    // Either end may go at any time; that is what the test is about.
                    if let Ok(mut far) = TcpStream::connect(target).await {
                        copy_bidirectional(&mut near, &mut far).await.ok();
                    }
                });
            }
            drop(listener);
            connections.join_all().await;
        });
        Self { address, accepting, refusing }
    }

    /// Refuses new connections, as for a process that is going; keeps those that are there.
    async fn refuse(&self) {
        self.refusing.notify_one();
        while TcpStream::connect(self.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Ends every connection.
    async fn close(self) -> SocketAddr {
        self.accepting.abort();
        // Either aborted, or over because every connection was.
        self.accepting.await.ok();
        self.address
    }
}

/// The next connection, until told to take no more.
async fn accept(listener: &TcpListener, refused: &Notify) -> Option<TcpStream> {
    tokio::select! {
        () = refused.notified() => None,
        accepted = listener.accept() => accepted.ok().map(|(stream, _peer)| stream),
    }
}

fn table_process(data: &TempDir) -> Server {
    let path = data.path().to_str().expect("a path in UTF-8");
    Server::start(&["--roles", "table", "--data-dir", path], &[])
}

/// What became of each row that a client inserted.
#[derive(Debug, Default)]
struct Outcomes {
    written: BTreeSet<String>,
    refused: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

/// What clients do together, and when they stop.
#[derive(Debug, Default)]
struct Load {
    written: Progress,
    refused: Progress,
    stop: AtomicBool,
}

/// Inserts rows through the gateway until told to stop.
async fn insert_rows(table: &Table, client: usize, load: &Load) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for number in 0.. {
        if load.stop.load(Ordering::Relaxed) {
            break;
        }
        let row = format!("{client}-{number:06}");
        let call = tokio::time::timeout(ANSWER_WITHIN, table.insert(entity("p", &row, [])));
        match call.await.expect("every call is answered") {
            Ok(_) => {
                load.written.step();
                outcomes.written.insert(row)
            }
            Err(refusal) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
                match refusal.kind() {
                    NOTHING_WRITTEN => {
                        load.refused.step();
                        outcomes.refused.insert(row)
                    }
                    UNKNOWN => outcomes.unknown.insert(row),
                    other => panic!("no client can retry {other:?}: {refusal:?}"),
                }
            }
        };
    }
    outcomes
}

/// Waits until reads work again.
async fn recovered(table: &Table) {
    let works = async {
        while let Err(refusal) = table.get("p", "first").await {
            assert_eq!(refusal.code, Code::Unavailable, "a read: {refusal:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(ANSWER_WITHIN, works).await;
    assert!(waited.is_ok(), "the gateway does not find the new process");
}

/// Ends the table process in a way, under load, and starts it again; what clients were told.
async fn restart(end: impl FnOnce(Server) + Send + 'static) -> Outcomes {
    let data = tempfile::tempdir().unwrap();
    let first = table_process(&data);
    let front = Front::open(([127, 0, 0, 1], 0).into(), first.address("grpc")).await;
    let endpoint = format!("http://{}", front.address);
    // Refused at once, so that the test sees what clients are told.
    let settings = [
        ("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str()),
        ("TRESTLE__GATEWAY__WAIT_MS", "0"),
    ];
    let gateway = Server::start(&["--roles", "gateway"], &settings);
    let table = Table::over(&gateway.channel(), MAIN);
    create(&table).await.unwrap();
    table.insert(entity("p", "first", [])).await.unwrap();
    let load = Load::default();
    let clients = join_all((0..8).map(|client| insert_rows(&table, client, &load)));
    let gap = async {
        load.written.by(WRITES).await;

        front.refuse().await;
        tokio::task::spawn_blocking(|| end(first)).await.unwrap();
        let address = front.close().await;
        load.refused.by(REFUSALS).await;
        let gone: Refusal = table.get("p", "first").await.unwrap_err();
        assert_eq!(gone.code, Code::Unavailable, "{gone:?}");
        let second = table_process(&data);
        let front = Front::open(address, second.address("grpc")).await;
        recovered(&table).await;
        load.written.by(WRITES).await;
        load.stop.store(true, Ordering::Relaxed);
        (front, second)
    };
    let (outcomes, kept) = tokio::join!(clients, gap);

    let mut all = Outcomes::default();
    for outcomes in outcomes {
        all.written.extend(outcomes.written);
        all.refused.extend(outcomes.refused);
        all.unknown.extend(outcomes.unknown);
    }
    let rows: BTreeSet<String> = table.rows("").await.unwrap().into_iter().collect();
    let lost: Vec<_> = all.written.difference(&rows).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let untrue: Vec<_> = all.refused.intersection(&rows).collect();
    assert!(untrue.is_empty(), "UNAVAILABLE, and written: {untrue:?}");
    let (written, refused, unknown) = (all.written.len(), all.refused.len(), all.unknown.len());
    println!("{written} written, {refused} refused, {unknown} unknown");
    assert!(written > 100 && refused > 10, "the gap was under load");
    repeat(&table, &all).await;
    drop(kept);
    all
}

/// Repeats what failed, as clients are told to: an insert is conditional, and says whether it has
/// happened before.
async fn repeat(table: &Table, outcomes: &Outcomes) {
    for row in &outcomes.refused {
        table.insert(entity("p", row, [])).await.expect("nothing was written");
    }
    for row in &outcomes.unknown {
        if let Err(refusal) = table.insert(entity("p", row, [])).await {
            assert_eq!(refusal.kind(), (Code::AlreadyExists, "ENTITY_ALREADY_EXISTS"));
        }
    }
    let rows: BTreeSet<String> = table.rows("").await.unwrap().into_iter().collect();
    let asked = [&outcomes.written, &outcomes.refused, &outcomes.unknown];
    let mut asked: BTreeSet<_> = asked.into_iter().flatten().cloned().collect();
    asked.insert("first".to_owned());
    assert_eq!(rows, asked, "every row is there once it was repeated, and no other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_table_process_comes_back_and_every_answer_in_between_was_true() {
    let outcomes = restart(Server::kill).await;

    // One call of each client was in flight at most.
    assert!(outcomes.unknown.len() <= 8, "{:?}", outcomes.unknown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_process_that_is_told_to_end_leaves_no_outcome_unknown() {
    let outcomes = restart(|server| assert_eq!(server.terminate(), Some(0))).await;

    assert!(outcomes.unknown.is_empty(), "{:?}", outcomes.unknown);
}
