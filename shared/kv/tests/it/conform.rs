//! Every engine keeps the contract.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use trestle_kv::conformance::{self, KEYSPACES, TestStore};
use trestle_kv::faulty::{FaultRates, FaultyEngine};
use trestle_kv::{Engine, FjallEngine, FjallOptions, ManualClock, MemoryEngine, SyncPolicy};

use crate::world::options;

struct Memory(MemoryEngine);

impl TestStore for Memory {
    fn handle(&self) -> Arc<dyn Engine> {
        Arc::new(self.0.clone())
    }

    fn reopen(&mut self) {}
}

/// A directory that is opened as the options say.
struct Directory {
    engine: Option<Arc<FjallEngine>>,
    options: FjallOptions,
    _directory: tempfile::TempDir,
}

impl Directory {
    fn new(durability: SyncPolicy, clock: Arc<ManualClock>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = PathBuf::from(directory.path());
        let options = FjallOptions { durability, clock, ..options(&path) };
        let engine = Some(Arc::new(FjallEngine::open(options.clone()).unwrap()));
        Self { engine, options, _directory: directory }
    }
}

impl TestStore for Directory {
    fn handle(&self) -> Arc<dyn Engine> {
        self.engine.clone().unwrap()
    }

    fn reopen(&mut self) {
        self.engine = None;
        self.engine = Some(Arc::new(FjallEngine::open(self.options.clone()).unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_engine_keeps_the_contract() {
    conformance::run_all(|clock| Box::new(Memory(MemoryEngine::with_clock(KEYSPACES, clock))))
        .await;
}

async fn fjall_keeps_the_contract(durability: SyncPolicy) {
    conformance::run_all(|clock| Box::new(Directory::new(durability, clock))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fjall_engine_keeps_the_contract_with_a_sync_a_group() {
    fjall_keeps_the_contract(SyncPolicy::Always).await;
}

#[tokio::test]
async fn the_fjall_engine_keeps_the_contract_on_one_thread() {
    fjall_keeps_the_contract(SyncPolicy::Os).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fjall_engine_keeps_the_contract_with_syncs_at_an_interval() {
    fjall_keeps_the_contract(SyncPolicy::Interval(Duration::from_millis(5))).await;
}

struct Wrapped(Arc<dyn Engine>);

impl TestStore for Wrapped {
    fn handle(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.0)
    }

    fn reopen(&mut self) {}
}

#[tokio::test]
async fn an_engine_wrapped_without_faults_keeps_the_contract() {
    let never = FaultRates::default();
    let open = |clock: Arc<ManualClock>| -> Box<dyn TestStore> {
        let inner = Arc::new(MemoryEngine::with_clock(KEYSPACES, clock));
        Box::new(Wrapped(Arc::new(FaultyEngine::new(inner, 1, never))))
    };
    conformance::run_all(open).await;
}
