//! Roles that are killed or restarted under load, one after the other and at their own addresses:
//! the gateway waits for the table and the queue process, and clients for the gateway.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use futures::future::join_all;
use tempfile::TempDir;
use tonic::Code;
use trestle_proto::queue::v1 as proto;
use trestle_tests::{CallError, HANG, Queue, Server, Table, entity, receipt_of, seconds, text};

use crate::{
    contents::MAIN,
    inserts::{CallCounts, Outcomes},
    progress::Progress,
    writer::create,
};

/// Kills of the table process.
const KILLS: usize = 10;
/// Restarts of each role.
const RESTARTS: usize = 4;
/// The roles that own data.
const DATA: [&str; 2] = ["table", "queue"];
/// Clients that write, and as many that read.
const CLIENTS: usize = 8;

/// A gateway and the processes behind it, each on a fixed address.
struct Roles {
    data: TempDir,
    table: Option<Server>,
    queue: Option<Server>,
    gateway: Option<Server>,
}

impl Roles {
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let [table, queue] = DATA.map(|role| Self::process(role, "127.0.0.1:0", data.path()));
        let gateway = Self::gateway(&free_address(), &[table.endpoint(), queue.endpoint()]);
        Self { data, table: Some(table), queue: Some(queue), gateway: Some(gateway) }
    }

    /// A process that owns data, in a folder of its own.
    fn process(role: &str, address: &str, data: &Path) -> Server {
        let folder = data.join(role);
        let path = folder.to_str().expect("a path in UTF-8");
        Server::start_at(address, &["--roles", role, "--data-dir", path], &[])
    }

    fn gateway(address: &str, [table, queue]: &[String; 2]) -> Server {
        let settings = [
            ("TRESTLE__GATEWAY__TABLE_ENDPOINT", table.as_str()),
            ("TRESTLE__GATEWAY__QUEUE_ENDPOINT", queue),
            ("TRESTLE__SERVER__REUSE_PORT", "true"),
        ];
        Server::start_at(address, &["--roles", "gateway"], &settings)
    }

    /// A table and a queue over a connection of its own.
    fn client(&self) -> (Table, Queue) {
        let channel = self.gateway.as_ref().expect("it runs").channel();
        (Table::over(&channel, MAIN), Queue::over(&channel, "jobs"))
    }

    /// Ends the process of a role that owns data and restarts it.
    async fn renew(&mut self, role: &'static str, end: impl FnOnce(Server) + Send + 'static) {
        let slot = if role == "queue" { &mut self.queue } else { &mut self.table };
        let old = slot.take().expect("it runs");
        let (address, path) = (old.address("grpc"), self.data.path().to_owned());
        let renew = move || {
            end(old);
            Self::process(role, &address, &path)
        };
        *slot = Some(tokio::task::spawn_blocking(renew).await.unwrap());
    }

    /// Restarts the gateway.
    async fn renew_gateway(&mut self, handover: Handover) {
        let old = self.gateway.take().expect("it runs");
        let address = old.address("grpc");
        let running = [&self.table, &self.queue].map(|role| role.as_ref().expect("it runs"));
        let roles = running.map(Server::endpoint);
        let renew = move || {
            let start = || Self::gateway(&address, &roles);
            let early = matches!(handover, Handover::Overlap).then(start);
            drained(old);
            early.unwrap_or_else(start)
        };
        self.gateway = Some(tokio::task::spawn_blocking(renew).await.unwrap());
    }
}

/// When the new gateway starts.
#[derive(Debug, Clone, Copy)]
enum Handover {
    /// After the old one has ended: meanwhile nothing listens.
    Gap,
    /// Before the old one is terminated, at the same address.
    Overlap,
}

impl Handover {
    /// When a rejected client retries.
    fn come_back_after(self) -> Duration {
        match self {
            // Longer than a start takes.
            Self::Gap => Duration::from_secs(3),
            // The content of the error.
            Self::Overlap => Duration::from_millis(500),
        }
    }
}

/// A free address; several processes may bind it together.
pub(crate) fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it has an address").to_string()
}

fn drained(server: Server) {
    assert_eq!(server.terminate(), Some(0), "no call was cut");
}

async fn answered<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, call).await.expect("every call is answered")
}

/// Reads until stopped; a read may always be retried.
async fn read_rows(table: &Table, read: &Progress, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        match answered(table.get("p", "first")).await {
            Ok(_) => read.step(),
            Err(error) => assert_eq!(error.code, Code::Unavailable, "{error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_table_process_loses_no_acknowledged_write_and_reports_retryable_errors() {
    let mut roles = Roles::start();
    let (table, _) = roles.client();
    create(&table).await.unwrap();
    table.insert(entity("p", "first", [])).await.unwrap();
    let stop = AtomicBool::new(false);
    let tables: Vec<Table> = (0..CLIENTS).map(|_| roles.client().0).collect();
    let made: Vec<_> =
        tables.iter().map(|_| (CallCounts::default(), Progress::default())).collect();
    let clients = || tables.iter().zip(&made).enumerate();
    let writers = clients()
        .map(|(client, (table, (counts, _)))| Outcomes::insert((client, table), counts, &stop));
    let readers = clients().map(|(_, (table, (_, read)))| read_rows(table, read, &stop));
    // Every client outlasts every restart.
    let all_get_on = async || {
        join_all(made.iter().flat_map(|(counts, read)| [counts.written.by(10), read.by(10)])).await;
    };
    let kills = async {
        for _ in 0..KILLS {
            all_get_on().await;
            roles.renew("table", Server::kill).await;
        }
        all_get_on().await;
        stop.store(true, Ordering::Relaxed);
    };

    let (outcomes, _, ()) = tokio::join!(join_all(writers), join_all(readers), kills);

    let all = Outcomes::of_all(outcomes);
    all.were_true(&table).await;
    let (written, unknown) = (all.written.len(), all.unknown.len());
    let read: Vec<u64> = made.iter().map(|(_, read)| read.made()).collect();
    println!("{read:?} reads");
    // For each client a call in flight, and one that the gateway sends over a new connection to the killed process: the
    // system may close its connections before the socket that listens.
    assert!(unknown <= 2 * KILLS * CLIENTS, "{unknown}: two calls of each client at most");
    assert!(unknown > 0, "the kills were under load");
    let bridged = read.iter().all(|read| *read > KILLS as u64);
    assert!(written > 10 * KILLS && bridged, "the gaps were bridged");
    all.repeat(&table, &["first"]).await;
}

/// A client that retries what is unavailable, once.
#[derive(Clone, Copy)]
struct Once<'a> {
    retried: &'a AtomicUsize,
    come_back_after: Duration,
}

impl Once<'_> {
    async fn call<T, A>(self, call: impl Fn() -> A) -> T
    where
        A: Future<Output = Result<T, CallError>>,
    {
        match answered(call()).await {
            Err(error) if error.code == Code::Unavailable => {
                self.retried.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(self.come_back_after).await;
                let again = answered(call()).await;
                again.unwrap_or_else(|again| panic!("{again:?} after {error:?}"))
            }
            answer => answer.unwrap_or_else(|error| panic!("not retried: {error:?}")),
        }
    }
}

/// Writes, reads, queries, sends and receives until stopped. The rows that were written, and
/// the messages that were sent and not deleted.
async fn work(
    (table, queue): &(Table, Queue),
    client: usize,
    once: Once<'_>,
    stop: &AtomicBool,
) -> (usize, isize) {
    let (mut written, mut kept) = (0_usize, 0_isize);
    while !stop.load(Ordering::Relaxed) {
        let row = format!("{client}-{written:06}");
        // A retry of a row that was written would get ALREADY_EXISTS.
        once.call(|| table.insert(entity("p", &row, []))).await;
        written += 1;
        once.call(|| table.get("p", &row)).await;
        once.call(|| queue.send(text(&row))).await;
        kept += 1;
        // Invisible for longer than the test: each message goes to one client, once.
        for delivery in once.call(|| queue.receive(1, seconds(3600))).await {
            if written % 2 == 0 {
                once.call(|| queue.delete(receipt_of(&delivery))).await;
                kept -= 1;
            }
        }
        if written % 16 == 0 {
            once.call(|| table.rows("RowKey eq 'none'")).await;
        }
    }
    (written, kept)
}

/// Restarts every role a few times under load. How often clients retried: for the processes that
/// own data, and for the gateway.
async fn roll(handover: Handover) -> (usize, usize) {
    let mut roles = Roles::start();
    let (table, queue) = roles.client();
    create(&table).await.unwrap();
    let jobs = proto::Queue { name: queue.name(), ..Default::default() };
    let request = proto::CreateQueueRequest { queue: Some(jobs) };
    queue.client().create_queue(request).await.unwrap();
    let (stop, retried) = (AtomicBool::new(false), AtomicUsize::new(0));
    let once = Once { retried: &retried, come_back_after: handover.come_back_after() };
    let parts: Vec<_> = (0..CLIENTS).map(|_| roles.client()).collect();
    let clients = parts.iter().enumerate();
    let clients = join_all(clients.map(|(client, parts)| work(parts, client, once, &stop)));
    let restarts = async {
        for _ in 0..RESTARTS {
            for role in DATA {
                tokio::time::sleep(Duration::from_millis(400)).await;
                roles.renew(role, drained).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(400)).await;
        let of_data = retried.load(Ordering::Relaxed);
        for _ in 0..RESTARTS {
            roles.renew_gateway(handover).await;
            tokio::time::sleep(handover.come_back_after() + Duration::from_millis(400)).await;
        }
        stop.store(true, Ordering::Relaxed);
        of_data
    };

    let (done, of_data) = tokio::join!(clients, restarts);

    let written: usize = done.iter().map(|(written, _)| written).sum();
    let kept: isize = done.iter().map(|(_, kept)| kept).sum();
    let of_gateway = retried.load(Ordering::Relaxed) - of_data;
    println!("{written} written; retried: {of_data} for the data, {of_gateway} for the gateway");
    let (table, queue) = roles.client();
    assert_eq!(table.rows("").await.unwrap().len(), written);
    assert_eq!(queue.count().await, u64::try_from(kept).unwrap());
    (of_data, of_gateway)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolling_restart_fails_no_call_of_a_client_that_retries_once() {
    let (of_data, of_gateway) = roll(Handover::Gap).await;

    assert_eq!(of_data, 0, "the gateway waits out a restart behind it");
    assert!(of_gateway > 0, "the gateway restarted under load");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_replacement_on_a_shared_port_refuses_no_connection() {
    let (_, of_gateway) = roll(Handover::Overlap).await;

    // Its own error, once for each connection: clients of tonic fail calls otherwise.
    assert!(of_gateway <= RESTARTS * CLIENTS, "{of_gateway}");
}
