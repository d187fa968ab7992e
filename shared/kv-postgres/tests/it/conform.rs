//! The engine keeps the contract, with one process and with several.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Handle;
use trestle_kv::Engine;
use trestle_kv::conformance::{self, OpenStore, RULES, TestStore};
use trestle_kv_postgres::{PostgresAddress, PostgresEngine};
use trestle_model::time::ManualClock;

use crate::world::{open, open_with};
use trestle_kv_postgres::testing::PostgresServer;

/// A database that is opened several times, as by several processes: handles are those in turn.
struct SharedStore {
    engines: Vec<Arc<PostgresEngine>>,
    next: AtomicUsize,
    address: PostgresAddress,
    clock: Option<Arc<ManualClock>>,
}

impl SharedStore {
    async fn open(
        address: PostgresAddress,
        processes: usize,
        clock: Option<Arc<ManualClock>>,
    ) -> Self {
        let mut store = Self { engines: Vec::new(), next: AtomicUsize::new(0), address, clock };
        for _ in 0..processes {
            store.engines.push(store.process().await);
        }
        store
    }

    async fn process(&self) -> Arc<PostgresEngine> {
        match self.clock.clone() {
            Some(clock) => open_with(&self.address, Some(clock)).await,
            None => open(&self.address).await,
        }
    }
}

impl TestStore for SharedStore {
    fn handle(&self) -> Arc<dyn Engine> {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.engines.len();
        self.engines[next].clone()
    }

    fn reopen(&mut self) {
        let processes = self.engines.len();
        self.engines.clear();
        // The connections live on the runtime of the test, whose other threads go on.
        let runtime = Handle::current();
        self.engines = std::thread::scope(|scope| {
            let opening = scope.spawn(|| {
                let open = || runtime.block_on(self.process());
                (0..processes).map(|_| open()).collect()
            });
            opening.join().unwrap()
        });
    }
}

/// Runs each rule on a database of its own.
async fn keeps_the_contract(processes: usize, has_clock: bool) {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    for (name, rule) in RULES {
        // They move a clock, which the server's is not.
        let moves = ["versions_follow_the_clock", "time_elapses_whatever_the_wall_clock_does"];
        if !has_clock && moves.contains(name) {
            continue;
        }
        eprintln!("{name}");
        let address = server.address(&server.database().await);
        let clock = Arc::new(ManualClock::new(conformance::START));
        let given = has_clock.then(|| Arc::clone(&clock));
        let store = Box::new(SharedStore::open(address, processes, given).await);
        rule(OpenStore { store, clock }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_keeps_the_contract() {
    keeps_the_contract(1, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_processes_keep_the_contract_by_the_clock_of_the_server() {
    keeps_the_contract(3, false).await;
}
