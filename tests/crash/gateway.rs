//! The table process restarts behind a gateway: clients wait during the restart, every response
//! is correct, and the gateway connects to the new process by itself.

use std::{
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
use trestle_tests::{CallError, HANG, Server, Table, entity};

use crate::{
    contents::MAIN,
    inserts::{CallCounts, Outcomes},
    writer::create,
};

/// Writes before the restart, and as many after it.
const WRITES: u64 = 100;
/// Errors during the restart.
const ERRORS: u64 = 20;

/// One address in front of processes that restart, such as a service in a cluster.
struct Front {
    address: SocketAddr,
    accepting: JoinHandle<()>,
    rejecting: Arc<Notify>,
}

impl Front {
    /// Forwards connections to `target`.
    async fn open(address: SocketAddr, target: String) -> Self {
        let listener = TcpListener::bind(address).await.expect("the address is free");
        let address = listener.local_addr().expect("it has an address");
        let rejecting = Arc::new(Notify::new());
        let rejected = Arc::clone(&rejecting);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Some(mut near) = accept(&listener, &rejected).await {
                let target = target.clone();
                connections.spawn(async move {
                    // Either side may disconnect at any time.
                    if let Ok(mut far) = TcpStream::connect(target).await {
                        copy_bidirectional(&mut near, &mut far).await.ok();
                    }
                });
            }
            drop(listener);
            connections.join_all().await;
        });
        Self { address, accepting, rejecting }
    }

    /// Rejects new connections, as for a process that shuts down; keeps those that are open.
    async fn reject(&self) {
        self.rejecting.notify_one();
        while TcpStream::connect(self.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Closes every connection.
    async fn close(self) -> SocketAddr {
        self.accepting.abort();
        // Either aborted, or ended with the connections.
        self.accepting.await.ok();
        self.address
    }
}

/// The next connection, until stopped.
async fn accept(listener: &TcpListener, rejected: &Notify) -> Option<TcpStream> {
    tokio::select! {
        () = rejected.notified() => None,
        accepted = listener.accept() => accepted.ok().map(|(stream, _peer)| stream),
    }
}

fn table_process(data: &TempDir) -> Server {
    let path = data.path().to_str().expect("a path in UTF-8");
    Server::start(&["--roles", "table", "--data-dir", path], &[])
}

/// Waits until reads work again.
async fn recovered(table: &Table) {
    let works = async {
        while let Err(error) = table.get("p", "first").await {
            assert_eq!(error.code, Code::Unavailable, "a read: {error:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(HANG, works).await;
    assert!(waited.is_ok(), "the gateway does not find the new process");
}

/// Ends the table process under load and restarts it; the outcomes of the clients.
async fn restart(end: impl FnOnce(Server) + Send + 'static) -> Outcomes {
    let data = tempfile::tempdir().unwrap();
    let first = table_process(&data);
    let front = Front::open(([127, 0, 0, 1], 0).into(), first.address("grpc")).await;
    let endpoint = format!("http://{}", front.address);
    // Rejected at once, so that clients get errors.
    let settings = [
        ("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str()),
        ("TRESTLE__GATEWAY__WAIT_MS", "0"),
    ];
    let gateway = Server::start(&["--roles", "gateway"], &settings);
    let table = Table::over(&gateway.channel(), MAIN);
    create(&table).await.unwrap();
    table.insert(entity("p", "first", [])).await.unwrap();
    let (counts, stop) = (CallCounts::default(), AtomicBool::new(false));
    let insert = |client| Outcomes::insert((client, &table), &counts, &stop);
    let clients = join_all((0..8).map(insert));
    let gap = async {
        counts.written.by(WRITES).await;

        front.reject().await;
        tokio::task::spawn_blocking(|| end(first)).await.unwrap();
        let address = front.close().await;
        counts.rejected.by(ERRORS).await;
        let unavailable: CallError = table.get("p", "first").await.unwrap_err();
        assert_eq!(unavailable.code, Code::Unavailable, "{unavailable:?}");
        let second = table_process(&data);
        let front = Front::open(address, second.address("grpc")).await;
        recovered(&table).await;
        counts.written.by(WRITES).await;
        stop.store(true, Ordering::Relaxed);
        (front, second)
    };
    let (outcomes, kept) = tokio::join!(clients, gap);

    let all = Outcomes::of_all(outcomes);
    all.were_true(&table).await;
    assert!(all.written.len() > 100 && all.rejected.len() > 10, "the gap was under load");
    all.repeat(&table, &["first"]).await;
    drop(kept);
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_after_a_kill_keeps_every_acknowledged_outcome() {
    let outcomes = restart(Server::kill).await;

    // One call of each client was in flight at most.
    assert!(outcomes.unknown.len() <= 8, "{:?}", outcomes.unknown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graceful_shutdown_reports_the_outcome_of_every_write() {
    let outcomes = restart(|server| assert_eq!(server.terminate(), Some(0))).await;

    assert!(outcomes.unknown.is_empty(), "{:?}", outcomes.unknown);
}
