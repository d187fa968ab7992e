//! Atomicity, isolation and order of commits.

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinSet;

use super::{
    KIND, NO_LIMIT, OTHER_KIND, commit, covering, get, key, number, put, reading, scan, snapshot,
    store,
};
use crate::{Change, CommitError, Engine, Span, Write, Writes, transact};

/// All writes of a change appear together, whatever kinds they are of.
pub async fn changes_are_atomic_across_kinds(engine: Arc<dyn Engine>) {
    let (first, second) = (key(KIND, "a"), key(OTHER_KIND, "a"));

    store(&*engine, vec![put(first.clone(), "1"), put(second.clone(), "1")]).await;
    let too_long = key(KIND, &"x".repeat(70_000));
    let rejected = commit(&*engine, vec![put(first.clone(), "2"), put(too_long, "2")]).await;

    assert!(matches!(rejected, Err(CommitError::Rejected { .. })), "{rejected:?}");
    assert_eq!(get(&*engine, &first).await, Some("1".into()));
    assert_eq!(get(&*engine, &second).await, Some("1".into()));
}

/// Writes of a change apply in order.
pub async fn the_last_write_of_a_key_in_a_change_counts(engine: Arc<dyn Engine>) {
    let (kept, deleted) = (key(KIND, "kept"), key(KIND, "deleted"));

    let writes = vec![
        Write::Delete { key: kept.clone() },
        put(kept.clone(), "1"),
        put(kept.clone(), "2"),
        put(deleted.clone(), "1"),
        Write::Delete { key: deleted.clone() },
    ];
    store(&*engine, writes).await;

    assert_eq!(get(&*engine, &kept).await, Some("2".into()));
    assert_eq!(get(&*engine, &deleted).await, None);
}

/// A decision reads the newest values, each by what its key got when it was added.
pub async fn decisions_read_the_newest_values_by_name(engine: Arc<dyn Engine>) {
    let (a, b, none) = (key(KIND, "a"), key(OTHER_KIND, "b"), key(KIND, "none"));
    store(&*engine, vec![put(a.clone(), "old"), put(b.clone(), "b")]).await;
    store(&*engine, vec![put(a.clone(), "new")]).await;

    let mut spec = covering([&a, &b, &none]);
    let reads = [b.clone(), none, a.clone(), b].map(|key| spec.read(key));
    let seen = transact(&*engine, spec, move |current, _| {
        let seen: Vec<_> = reads.iter().map(|id| current.get(*id).cloned()).collect();
        Ok::<_, ()>((Writes::new(), seen))
    })
    .await;

    let text = |text: &'static str| Some(Bytes::from(text));
    let expected = vec![text("b"), None, text("new"), text("b")];
    assert_eq!(seen.expect("the engine takes changes"), Ok(expected));
}

/// Sixty-four tasks add one to the same number, each many times; none is lost.
pub async fn contended_increments_all_count(engine: Arc<dyn Engine>) {
    const TASKS: u64 = 64;
    const TIMES: u64 = 10;
    let counter = key(KIND, "counter");

    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (engine, counter) = (Arc::clone(&engine), counter.clone());
        tasks.spawn(async move {
            for _ in 0..TIMES {
                let mut spec = covering([&counter]);
                let count = spec.read(counter.clone());
                let added = transact(&*engine, spec, move |reads, _| {
                    let next = number(reads.get(count)) + 1;
                    let value = Bytes::copy_from_slice(&next.to_be_bytes());
                    Ok::<_, ()>((put(reads.key(count).clone(), value).into(), next))
                });
                added.await.expect("the engine takes changes").expect("it never rejects");
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no task fails");
    }

    assert_eq!(number(get(&*engine, &counter).await.as_ref()), TASKS * TIMES);
}

/// Of many that insert a key if it is absent, one succeeds, and its value stays.
pub async fn only_one_of_many_inserts_of_a_key_wins(engine: Arc<dyn Engine>) {
    let contested = key(KIND, "contested");

    let mut tasks = JoinSet::new();
    for number in 0..32_u64 {
        let (engine, contested) = (Arc::clone(&engine), contested.clone());
        tasks.spawn(async move {
            let mut spec = covering([&contested]);
            let row = spec.read(contested);
            let inserted = transact(&*engine, spec, move |reads, _| {
                if reads.get(row).is_some() {
                    return Err("exists");
                }
                let value = Bytes::copy_from_slice(&number.to_be_bytes());
                Ok((put(reads.key(row).clone(), value).into(), number))
            });
            inserted.await.expect("the engine takes changes")
        });
    }
    let outcomes = tasks.join_all().await;

    let winners: Vec<_> = outcomes.into_iter().filter_map(Result::ok).collect();
    assert_eq!(winners.len(), 1, "winners: {winners:?}");
    assert_eq!(winners.first(), Some(&number(get(&*engine, &contested).await.as_ref())));
}

/// A change may decide to do nothing.
pub async fn a_change_without_writes_succeeds_and_writes_nothing(engine: Arc<dyn Engine>) {
    let outcome = commit(&*engine, Vec::new()).await;

    assert!(outcome.is_ok(), "{outcome:?}");
    let everything = scan(&*engine, &Span::prefix(&[KIND]), NO_LIMIT).await;
    assert_eq!(everything.entries, []);
}

/// What a decision rejects comes back to its caller.
pub async fn an_error_of_a_decision_comes_back_and_writes_nothing(engine: Arc<dyn Engine>) {
    let held = key(KIND, "held");
    store(&*engine, vec![put(held.clone(), "1")]).await;

    let mut spec = covering([&held]);
    let row = spec.read(held.clone());
    let outcome =
        transact(&*engine, spec, move |reads, _| Err::<(Writes, ()), _>(reads.get(row).cloned()))
            .await;

    assert_eq!(outcome.expect("the engine takes changes"), Err(Some("1".into())));
    assert_eq!(get(&*engine, &held).await, Some("1".into()));
}

/// A panic is contained.
pub async fn a_panic_of_a_decision_rejects_that_change_alone(engine: Arc<dyn Engine>) {
    let panicking = Change::new(reading(&[]), |_, _| panic!("this panic is part of the test"));
    let outcome = engine.commit(panicking).await;
    store(&*engine, vec![put(key(KIND, "after"), "1")]).await;

    assert!(matches!(outcome, Err(CommitError::Rejected { .. })), "{outcome:?}");
    assert_eq!(get(&*engine, &key(KIND, "after")).await, Some("1".into()));
}

/// Deletes.
pub async fn deletes_remove_and_need_nothing_to_be_there(engine: Arc<dyn Engine>) {
    let (there, absent) = (key(KIND, "there"), key(KIND, "absent"));
    store(&*engine, vec![put(there.clone(), "1")]).await;

    store(&*engine, vec![Write::Delete { key: there.clone() }, Write::Delete { key: absent }])
        .await;

    assert_eq!(get(&*engine, &there).await, None);
    let everything = scan(&*engine, &Span::prefix(&[KIND]), NO_LIMIT).await;
    assert_eq!(everything.entries, []);
}

/// A change whose caller disconnects is written whole or not at all.
pub async fn a_dropped_caller_does_not_tear_its_change(engine: Arc<dyn Engine>) {
    for round in 0..20_u8 {
        let (a, b) = (key(KIND, &format!("a{round}")), key(OTHER_KIND, &format!("b{round}")));
        let writes = vec![put(a.clone(), "1"), put(b.clone(), "1")];

        let mut committing = Box::pin(commit(&*engine, writes));
        let polled_once = std::future::poll_fn(|context| {
            let _ = committing.as_mut().poll(context);
            std::task::Poll::Ready(())
        });
        polled_once.await;
        drop(committing);
        // Commits are in order, so the change above is settled after this one.
        store(&*engine, vec![put(key(KIND, "settled"), "1")]).await;

        let view = snapshot(&*engine).await;
        let a = view.get(&a).await.expect("the engine can be read");
        let b = view.get(&b).await.expect("the engine can be read");
        assert_eq!(a, b);
    }
}
