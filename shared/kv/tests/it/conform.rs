//! The engine in memory keeps the contract, and so does one that is wrapped to fail and never does.

use std::sync::Arc;

use trestle_kv::conformance::{self, KEYSPACES, TestStore};
use trestle_kv::faulty::{FaultRates, FaultyEngine};
use trestle_kv::{Engine, MemoryEngine};
use trestle_model::time::ManualClock;

struct Memory(MemoryEngine);

impl TestStore for Memory {
    fn handle(&self) -> Arc<dyn Engine> {
        Arc::new(self.0.clone())
    }

    fn reopen(&mut self) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_engine_keeps_the_contract() {
    conformance::run_all(|clock| Box::new(Memory(MemoryEngine::with_clock(KEYSPACES, clock))))
        .await;
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
