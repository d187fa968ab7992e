//! The engine on disk keeps the contract, however durable it is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use trestle_kv::Engine;
use trestle_kv::conformance::{self, TestStore};
use trestle_kv_fjall::{FjallEngine, FjallOptions, SyncPolicy};
use trestle_model::time::ManualClock;

use crate::world::options;

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
