//! Several handles on one store: what one wrote, every other one sees, and no two decide past each other.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::{KIND, OpenStore, commit, covering, domain_of, get, key, number, put, store};
use crate::{ChangeSpec, Domain, Engine, Lock, Writes, transact};

/// Tasks with handles of their own add one to the same number; none is lost.
pub async fn no_update_is_lost_between_handles(opened: OpenStore) {
    const TASKS: usize = 16;
    const TIMES: usize = 10;
    let counter = key(KIND, "counter");

    let mut tasks = JoinSet::new();
    let start = Arc::new(Barrier::new(TASKS));
    for _ in 0..TASKS {
        let (engine, counter) = (opened.store.handle(), counter.clone());
        let start = Arc::clone(&start);
        tasks.spawn(async move {
            for _ in 0..TIMES {
                start.wait().await;
                let mut spec = covering([&counter]);
                let count = spec.read(counter.clone());
                let added = transact(&*engine, spec, move |reads, _| {
                    let next = number(reads.get(count)) + 1;
                    let mut writes = Writes::new();
                    writes.put(reads.key(count).clone(), next.to_be_bytes().to_vec());
                    Ok::<_, ()>((writes, ()))
                });
                added.await.expect("the engine takes changes").expect("it never rejects");
            }
        });
    }
    tasks.join_all().await;

    let engine = opened.store.handle();
    assert_eq!(number(get(&*engine, &counter).await.as_ref()), (TASKS * TIMES) as u64);
}

/// Two changes that read each other's domain, shared, and write their own: one of them sees the other.
pub async fn changes_that_read_what_the_other_writes_are_serialised(opened: OpenStore) {
    for round in 0..50 {
        let rows = ["a", "b"].map(|name| key(KIND, &format!("{name}{round}")));
        let mut tasks = JoinSet::new();
        let start = Arc::new(Barrier::new(rows.len()));
        for (own, other) in [(0, 1), (1, 0)] {
            let (engine, rows) = (opened.store.handle(), rows.clone());
            let start = Arc::clone(&start);
            tasks.spawn(async move {
                let (Some(own), Some(other)) = (rows.get(own), rows.get(other)) else { return };
                let mut spec = covering([own]);
                spec.also(Domain::of_key(other, domain_of), Lock::Shared);
                let (own, other) = (spec.read(own.clone()), spec.read(other.clone()));
                start.wait().await;
                let written = transact(&*engine, spec, move |reads, _| {
                    let mut writes = Writes::new();
                    if reads.get(other).is_none() {
                        writes.put(reads.key(own).clone(), "1");
                    }
                    Ok::<_, ()>((writes, ()))
                });
                written.await.expect("the engine takes changes").expect("it never rejects");
            });
        }
        tasks.join_all().await;

        let engine = opened.store.handle();
        let [a, b] = &rows;
        let stored = (get(&*engine, a).await, get(&*engine, b).await);
        assert_ne!(stored.0, stored.1, "round {round}: neither saw the other, or none was written");
    }
}

/// What one handle committed, another one reads at once.
pub async fn a_commit_is_seen_by_every_handle(opened: OpenStore) {
    let (writer, reader) = (opened.store.handle(), opened.store.handle());
    for round in 0..20_u8 {
        let row = key(KIND, "row");
        store(&*writer, vec![put(row.clone(), vec![round])]).await;

        assert_eq!(get(&*reader, &row).await, Some(vec![round].into()));
        assert_eq!(reader.get(&row).await.expect("readable"), Some(vec![round].into()));
    }
}

/// A change whose caller got no answer is whole or absent, and a retry that looks for it writes it once.
pub async fn a_retry_finds_what_its_first_try_committed(opened: OpenStore) {
    for round in 0..20_u8 {
        let (mark, count) = (key(KIND, &format!("{round}/mark")), key(KIND, &format!("{round}/n")));
        let try_once = |engine: Arc<dyn Engine>| {
            let mut spec: ChangeSpec = covering([&mark, &count]);
            let (mark, count) = (spec.read(mark.clone()), spec.read(count.clone()));
            async move {
                let tried = transact(&*engine, spec, move |reads, _| {
                    let mut writes = Writes::new();
                    if reads.get(mark).is_none() {
                        let next = number(reads.get(count)) + 1;
                        writes.put(reads.key(mark).clone(), "");
                        writes.put(reads.key(count).clone(), next.to_be_bytes().to_vec());
                    }
                    Ok::<_, ()>((writes, ()))
                });
                tried.await
            }
        };

        let mut lost = Box::pin(try_once(opened.store.handle()));
        std::future::poll_fn(|context| {
            let _ = lost.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
        drop(lost);
        for _ in 0..2 {
            let retried = try_once(opened.store.handle()).await;
            retried.expect("the engine takes changes").expect("it never rejects");
        }

        let engine = opened.store.handle();
        assert_eq!(number(get(&*engine, &count).await.as_ref()), 1, "round {round}");
        assert_eq!(get(&*engine, &mark).await, Some(Bytes::new()));
    }
}

/// Acknowledged rows exist after the store was closed and opened again.
pub async fn acknowledged_changes_are_there_after_reopening(mut opened: OpenStore) {
    if opened.store.handle().status().durability == crate::Durability::None {
        return;
    }
    let row = key(KIND, "row");
    commit(&*opened.store.handle(), vec![put(row.clone(), "1")]).await.expect("committed");

    opened.store.reopen();

    assert_eq!(get(&*opened.store.handle(), &row).await, Some("1".into()));
}
