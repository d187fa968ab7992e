//! The engine that fails on purpose fails as the contract allows, and the same way each time.

use std::sync::Arc;

use trestle_kv::conformance::KEYSPACES;
use trestle_kv::faulty::{FaultRates, FaultyEngine};
use trestle_kv::{CommitError, Engine, EngineError, MemoryEngine};

use trestle_kv::conformance::rows::{commit, everything, get, key, put};

fn faulty(seed: u64, rates: FaultRates) -> (FaultyEngine, MemoryEngine) {
    let inner = MemoryEngine::new(KEYSPACES);
    (FaultyEngine::new(Arc::new(inner.clone()), seed, rates), inner)
}

/// The outcomes of a hundred commits, as letters.
async fn outcomes(seed: u64, rates: FaultRates) -> (String, MemoryEngine) {
    let (engine, inner) = faulty(seed, rates);
    let mut outcomes = String::new();
    for row in 0..100_u8 {
        outcomes.push(match commit(&engine, vec![put(key([row]), "")]).await {
            Ok(_) => 'o',
            Err(CommitError::Unavailable { .. }) => 'u',
            Err(CommitError::Unknown { .. }) => '?',
            Err(other) => panic!("not among the rates: {other}"),
        });
    }
    (outcomes, inner)
}

#[tokio::test]
async fn a_seed_gives_the_same_faults_and_another_seed_gives_others() {
    let rates = FaultRates { unavailable: 0.2, unknown: 0.2, ..FaultRates::default() };

    let (first, _) = outcomes(1, rates).await;

    assert_eq!(outcomes(1, rates).await.0, first);
    assert_ne!(outcomes(2, rates).await.0, first);
    assert!(first.contains('o') && first.contains('u') && first.contains('?'), "{first}");
}

#[tokio::test]
async fn an_unavailable_commit_wrote_nothing_and_an_unknown_one_sometimes_did() {
    let rates = FaultRates { unavailable: 0.3, unknown: 0.5, ..FaultRates::default() };

    let (outcomes, inner) = outcomes(3, rates).await;

    let mut unknown = (0, 0);
    for (row, outcome) in (0_u8..).zip(outcomes.chars()) {
        let stored = get(&inner, &key([row])).await.is_some();
        match outcome {
            'o' => assert!(stored),
            'u' => assert!(!stored),
            _ if stored => unknown.0 += 1,
            _ => unknown.1 += 1,
        }
    }
    assert!(unknown.0 > 0 && unknown.1 > 0, "{unknown:?}");
}

#[tokio::test]
async fn an_engine_that_was_stopped_takes_no_more_changes_and_goes_on_reading() {
    let (engine, inner) = faulty(4, FaultRates::default());
    commit(&engine, vec![put(key("a"), "")]).await.unwrap();

    engine.stop();
    let rejected = commit(&engine, vec![put(key("b"), "")]).await;

    assert!(matches!(rejected, Err(CommitError::Stopped { .. })), "{rejected:?}");
    assert!(engine.status().stopped.is_some());
    assert_eq!(everything(&engine).await.len(), 1);
    assert_eq!(everything(&inner).await.len(), 1);
}

#[tokio::test]
async fn a_commit_that_stops_the_engine_is_unknown_and_the_next_is_rejected() {
    let (engine, _) = faulty(5, FaultRates { stop: 1.0, ..FaultRates::default() });

    let stopping = commit(&engine, vec![put(key("a"), "")]).await;
    let next = commit(&engine, vec![put(key("b"), "")]).await;

    assert!(matches!(stopping, Err(CommitError::Unknown { .. })), "{stopping:?}");
    assert!(matches!(next, Err(CommitError::Stopped { .. })), "{next:?}");
}

#[tokio::test]
async fn snapshots_are_unavailable_at_their_rate() {
    let (engine, _) = faulty(6, FaultRates { unavailable: 1.0, ..FaultRates::default() });

    assert!(matches!(engine.snapshot().await, Err(EngineError::Unavailable { .. })));
}
