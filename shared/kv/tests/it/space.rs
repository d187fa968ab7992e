//! Little free space: puts are refused, removal and reads go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use trestle_kv::{CommitError, Engine, FjallEngine, FjallOptions, Write};

use crate::world::{commit, get, key, options, put};

#[tokio::test]
async fn below_the_reserve_only_changes_that_reclaim_are_taken_until_space_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let free = Arc::new(AtomicU64::new(5_000));
    let probed = Arc::clone(&free);
    let engine = FjallEngine::open(FjallOptions {
        min_free_bytes: 1_000,
        space_probe: Arc::new(move |_| Ok(probed.load(Ordering::SeqCst))),
        ..options(directory.path())
    });
    let engine = engine.unwrap();
    let settle = |bytes: u64| {
        free.store(bytes, Ordering::SeqCst);
        let engine = &engine;
        async move {
            while engine.status().free_bytes != Some(bytes) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    commit(&engine, vec![put(key("a"), "1"), put(key("b"), "1")]).await.unwrap();

    settle(999).await;
    let refused = commit(&engine, vec![put(key("c"), "1")]).await;
    let reclaimed =
        commit(&engine, vec![Write::Delete { key: key("a") }, put(key("count"), "1")]).await;

    assert!(
        matches!(refused, Err(CommitError::Full { free_bytes: 999, reserve_bytes: 1_000 })),
        "{refused:?}"
    );
    assert!(reclaimed.is_ok(), "{reclaimed:?}");
    assert_eq!(get(&engine, &key("a")).await, None);
    assert_eq!(get(&engine, &key("b")).await, Some("1".into()));

    settle(1_000).await;
    commit(&engine, vec![put(key("c"), "1")]).await.unwrap();
}
