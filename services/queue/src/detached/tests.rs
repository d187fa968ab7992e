//! Tests of detached tasks.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use futures::poll;
use tokio::sync::Notify;

use super::*;

#[tokio::test]
async fn finishes_only_a_dropped_future_that_was_polled() {
    let (go, done) = (Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
    let work = || {
        let (go, done) = (Arc::clone(&go), Arc::clone(&done));
        async move {
            go.notified().await;
            done.fetch_add(1, SeqCst);
        }
    };

    drop(detached(work()));
    let mut begun = detached(work());
    assert!(poll!(&mut begun).is_pending());
    drop(begun);
    tokio::task::yield_now().await;
    go.notify_one();
    go.notify_one();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }

    assert_eq!(done.load(SeqCst), 1);
}

#[tokio::test]
async fn returns_the_result_of_the_future() {
    assert_eq!(detached(async { 7 }).await, 7);
}
