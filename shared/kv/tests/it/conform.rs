//! Every engine keeps the contract.

use std::sync::Arc;
use std::time::Duration;

use trestle_kv::faulty::{FaultRates, FaultyEngine};
use trestle_kv::{Engine, FjallEngine, FjallOptions, MemoryEngine, SyncPolicy, conformance};

use crate::world::options;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_engine_keeps_the_contract() {
    conformance::run_all(|| Arc::new(MemoryEngine::new(conformance::KEYSPACES))).await;
}

async fn fjall_keeps_the_contract(durability: SyncPolicy) {
    let mut directories = Vec::new();
    conformance::run_all(|| {
        let directory = tempfile::tempdir().unwrap();
        let options = FjallOptions { durability, ..options(directory.path()) };
        directories.push(directory);
        Arc::new(FjallEngine::open(options).unwrap()) as Arc<dyn Engine>
    })
    .await;
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

#[tokio::test]
async fn an_engine_wrapped_without_faults_keeps_the_contract() {
    let never = FaultRates::default();
    conformance::run_all(|| {
        Arc::new(FaultyEngine::new(Arc::new(MemoryEngine::new(conformance::KEYSPACES)), 1, never))
    })
    .await;
}
