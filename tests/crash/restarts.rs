//! Roles that are killed or restarted under load, one after the other and at their own addresses:
//! the gateway waits for the table process, and clients for the gateway.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use futures::future::join_all;
use tempfile::TempDir;
use tonic::Code;
use trestle_tests::{Refusal, Server, Table, entity};

use crate::{sight::MAIN, writer::create};

/// Kills of the table process.
const KILLS: usize = 10;
/// Restarts of each role.
const RESTARTS: usize = 4;
/// Clients that write, and as many that read.
const CLIENTS: usize = 8;
/// No call takes longer.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// A gateway and the table process behind it, each on an address that it keeps.
struct Roles {
    data: TempDir,
    table: Option<Server>,
    gateway: Option<Server>,
}

impl Roles {
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let table = Self::table("127.0.0.1:0", data.path());
        let gateway = Self::gateway(&free_address(), &table.endpoint());
        Self { data, table: Some(table), gateway: Some(gateway) }
    }

    fn table(address: &str, data: &Path) -> Server {
        let path = data.to_str().expect("a path in UTF-8");
        Server::start_at(address, &["--roles", "table", "--data-dir", path], &[])
    }

    fn gateway(address: &str, table: &str) -> Server {
        let settings =
            [("TRESTLE__GATEWAY__TABLE_ENDPOINT", table), ("TRESTLE__SERVER__REUSE_PORT", "true")];
        Server::start_at(address, &["--roles", "gateway"], &settings)
    }

    /// A table as a client of its own sees it, over a connection of its own.
    fn client(&self) -> Table {
        Table::over(&self.gateway.as_ref().expect("it runs").channel(), MAIN)
    }

    /// Ends the table process in a way and starts it again.
    async fn renew_table(&mut self, end: impl FnOnce(Server) + Send + 'static) {
        let old = self.table.take().expect("it runs");
        let (address, path) = (old.address("grpc"), self.data.path().to_owned());
        let renew = move || {
            end(old);
            Self::table(&address, &path)
        };
        self.table = Some(tokio::task::spawn_blocking(renew).await.unwrap());
    }

    /// Restarts the gateway.
    async fn renew_gateway(&mut self, handover: Handover) {
        let old = self.gateway.take().expect("it runs");
        let address = old.address("grpc");
        let table = self.table.as_ref().expect("it runs").endpoint();
        let renew = move || {
            let start = || Self::gateway(&address, &table);
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
    /// Once the old one has ended: for a while nobody is there.
    Gap,
    /// Before the old one is told to end, at the same address.
    Overlap,
}

impl Handover {
    /// When a client comes back that was refused.
    fn come_back_after(self) -> Duration {
        match self {
            // Longer than a start takes.
            Self::Gap => Duration::from_secs(3),
            Self::Overlap => Duration::from_millis(250),
        }
    }
}

/// An address that nobody listens at; several processes may then take it together.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it has an address").to_string()
}

fn drained(server: Server) {
    assert_eq!(server.terminate(), Some(0), "no call was cut");
}

async fn answered<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(ANSWER_WITHIN, call).await.expect("every call is answered")
}

/// What became of the rows that clients inserted.
#[derive(Debug, Default)]
struct Outcomes {
    written: BTreeSet<String>,
    refused: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

/// Inserts rows until told to stop; notes what each call was told.
async fn insert_rows(table: &Table, client: usize, stop: &AtomicBool) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let row = format!("{client}-{number:06}");
        match answered(table.insert(entity("p", &row, []))).await {
            Ok(_) => outcomes.written.insert(row),
            Err(refusal) => match refusal.kind() {
                (Code::Unavailable, "SERVER_UNAVAILABLE") => outcomes.refused.insert(row),
                (Code::Unknown, "OUTCOME_UNKNOWN") => outcomes.unknown.insert(row),
                _ => panic!("no client can retry this: {refusal:?}"),
            },
        };
    }
    outcomes
}

/// Reads until told to stop; a read may always be retried, and says so.
async fn read_rows(table: &Table, stop: &AtomicBool) -> usize {
    let mut read = 0;
    while !stop.load(Ordering::Relaxed) {
        match answered(table.get("p", "first")).await {
            Ok(_) => read += 1,
            Err(refusal) => assert_eq!(refusal.code, Code::Unavailable, "{refusal:?}"),
        }
    }
    read
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_of_the_table_process_lose_nothing_and_clients_may_retry_what_they_are_told() {
    let mut roles = Roles::start();
    let table = roles.client();
    create(&table).await.unwrap();
    table.insert(entity("p", "first", [])).await.unwrap();
    let stop = AtomicBool::new(false);
    let tables: Vec<Table> = (0..CLIENTS).map(|_| roles.client()).collect();
    let writers = join_all((0..CLIENTS).map(|client| insert_rows(&tables[client], client, &stop)));
    let readers = join_all(tables.iter().map(|table| read_rows(table, &stop)));
    let kills = async {
        for _ in 0..KILLS {
            tokio::time::sleep(Duration::from_millis(300)).await;
            roles.renew_table(Server::kill).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.store(true, Ordering::Relaxed);
    };

    let (outcomes, read, ()) = tokio::join!(writers, readers, kills);

    let mut all = Outcomes::default();
    for outcomes in outcomes {
        all.written.extend(outcomes.written);
        all.refused.extend(outcomes.refused);
        all.unknown.extend(outcomes.unknown);
    }
    let rows: BTreeSet<String> = table.rows("").await.unwrap().into_iter().collect();
    let (written, refused, unknown) = (all.written.len(), all.refused.len(), all.unknown.len());
    println!("{written} written, {refused} refused, {unknown} unknown, {read:?} reads");
    let lost: Vec<_> = all.written.difference(&rows).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let untrue: Vec<_> = all.refused.intersection(&rows).collect();
    assert!(untrue.is_empty(), "UNAVAILABLE, and written: {untrue:?}");
    assert!(unknown <= KILLS * CLIENTS, "one call of each client was in flight at most");
    assert!(unknown > 0, "the kills were under load");
    assert!(written > 10 * KILLS && read.iter().all(|read| *read > KILLS), "the gaps were bridged");
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
        A: Future<Output = Result<T, Refusal>>,
    {
        match answered(call()).await {
            Err(refusal) if refusal.code == Code::Unavailable => {
                self.retried.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(self.come_back_after).await;
                let again = answered(call()).await;
                again.unwrap_or_else(|again| panic!("{again:?} after {refusal:?}"))
            }
            answer => answer.unwrap_or_else(|refusal| panic!("not retried: {refusal:?}")),
        }
    }
}

/// Writes, reads and queries until told to stop. The rows that were written.
async fn work(table: &Table, client: usize, once: Once<'_>, stop: &AtomicBool) -> usize {
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        let row = format!("{client}-{written:06}");
        // A retry of what was written would be told that it is there already.
        once.call(|| table.insert(entity("p", &row, []))).await;
        written += 1;
        once.call(|| table.get("p", &row)).await;
        if written % 16 == 0 {
            once.call(|| table.rows("RowKey eq 'none'")).await;
        }
    }
    written
}

/// Restarts every role a few times under load. How often clients retried: for the table process,
/// and for the gateway.
async fn roll(handover: Handover) -> (usize, usize) {
    let mut roles = Roles::start();
    create(&roles.client()).await.unwrap();
    let (stop, retried) = (AtomicBool::new(false), AtomicUsize::new(0));
    let once = Once { retried: &retried, come_back_after: handover.come_back_after() };
    let tables: Vec<Table> = (0..CLIENTS).map(|_| roles.client()).collect();
    let clients = tables.iter().enumerate();
    let clients = join_all(clients.map(|(client, table)| work(table, client, once, &stop)));
    let restarts = async {
        for _ in 0..RESTARTS {
            tokio::time::sleep(Duration::from_millis(400)).await;
            roles.renew_table(drained).await;
        }
        tokio::time::sleep(Duration::from_millis(400)).await;
        let of_table = retried.load(Ordering::Relaxed);
        for _ in 0..RESTARTS {
            roles.renew_gateway(handover).await;
            tokio::time::sleep(handover.come_back_after() + Duration::from_millis(400)).await;
        }
        stop.store(true, Ordering::Relaxed);
        of_table
    };

    let (written, of_table) = tokio::join!(clients, restarts);

    let written: usize = written.iter().sum();
    let of_gateway = retried.load(Ordering::Relaxed) - of_table;
    println!("{written} written; retried: {of_table} for the table, {of_gateway} for the gateway");
    assert_eq!(roles.client().rows("").await.unwrap().len(), written);
    (of_table, of_gateway)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_of_every_role_fails_no_call_of_a_client_that_retries_once() {
    let (of_table, of_gateway) = roll(Handover::Gap).await;

    assert_eq!(of_table, 0, "the gateway waits out a restart behind it");
    assert!(of_gateway > 0, "the gateway restarted under load");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_starts_before_the_old_one_ends_leaves_no_gap_at_its_address() {
    let (_, of_gateway) = roll(Handover::Overlap).await;

    // Its own refusal, once for each connection: clients of tonic lose calls otherwise.
    assert!(of_gateway <= RESTARTS * CLIENTS, "{of_gateway}");
}
