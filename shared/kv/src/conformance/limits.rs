//! Every bound of [`Engine::limits`], met and passed by one.

use std::sync::Arc;

use bytes::Bytes;

use super::{KIND, commit, get, key, put, reading};
use crate::{Change, CommitError, Engine, Version, Writes};

/// The longest key is kept whole; a longer one, and an empty one, is rejected.
pub async fn keys_are_accepted_up_to_their_bound(engine: Arc<dyn Engine>) {
    let limits = engine.limits();
    let of = |bytes: usize, last: u8| {
        let mut key = vec![b'x'; bytes];
        if let (Some(first), true) = (key.first_mut(), bytes > 1) {
            *first = KIND;
        }
        if let Some(end) = key.last_mut().filter(|_| bytes > 1) {
            *end = last;
        }
        Bytes::from(key)
    };

    let longest = commit(&*engine, vec![put(of(limits.key_bytes, 1), "1")]).await;
    let sibling = commit(&*engine, vec![put(of(limits.key_bytes, 2), "2")]).await;
    let longer = commit(&*engine, vec![put(of(limits.key_bytes + 1, 1), "1")]).await;
    let empty = commit(&*engine, vec![put(Bytes::new(), "1")]).await;
    let read = read_only(&*engine, vec![of(limits.key_bytes + 1, 1)]).await;

    assert!(longest.is_ok() && sibling.is_ok(), "{longest:?} {sibling:?}");
    assert_eq!(get(&*engine, &of(limits.key_bytes, 1)).await, Some("1".into()));
    assert_eq!(get(&*engine, &of(limits.key_bytes, 2)).await, Some("2".into()));
    for rejected in [longer, empty, read] {
        assert!(matches!(rejected, Err(CommitError::Rejected { .. })), "{rejected:?}");
    }
}

/// The biggest value is kept whole; a bigger one is rejected.
pub async fn values_are_accepted_up_to_their_bound(engine: Arc<dyn Engine>) {
    let limits = engine.limits();
    let (a, b) = (key(KIND, "a"), key(KIND, "b"));

    let biggest = commit(&*engine, vec![put(a.clone(), vec![7; limits.value_bytes])]).await;
    let bigger = commit(&*engine, vec![put(b.clone(), vec![7; limits.value_bytes + 1])]).await;

    assert!(biggest.is_ok(), "{biggest:?}");
    assert!(matches!(bigger, Err(CommitError::Rejected { .. })), "{bigger:?}");
    assert_eq!(get(&*engine, &a).await.map(|value| value.len()), Some(limits.value_bytes));
    assert_eq!(get(&*engine, &b).await, None);
}

/// Reads, writes and bytes of a change.
pub async fn changes_are_accepted_up_to_their_bounds(engine: Arc<dyn Engine>) {
    let limits = engine.limits();
    let writes = |count: usize| -> Vec<_> {
        (0..count).map(|row| put(key(KIND, &format!("w/{row:05}")), "")).collect()
    };
    let reads = |count: usize| -> Vec<_> {
        (0..count).map(|row| key(KIND, &format!("r/{row:05}"))).collect()
    };
    // Equal parts, each with its key of three bytes; they share one buffer.
    let parts = limits.change_bytes / limits.value_bytes + 1;
    let part = Bytes::from(vec![0; limits.value_bytes]);
    let bytes = |extra: usize| -> Vec<_> {
        let sizes = (0..parts).map(|row| {
            let end = limits.change_bytes * (row + 1) / parts - limits.change_bytes * row / parts;
            end - 3 + if row == 0 { extra } else { 0 }
        });
        let rows = sizes.enumerate();
        rows.map(|(row, size)| put(key(KIND, &format!("{row:02}")), part.slice(..size))).collect()
    };

    let outcomes = [
        commit(&*engine, writes(limits.writes)).await,
        read_only(&*engine, reads(limits.reads)).await,
        commit(&*engine, bytes(0)).await,
    ];
    let errors = [
        commit(&*engine, writes(limits.writes + 1)).await,
        read_only(&*engine, reads(limits.reads + 1)).await,
        commit(&*engine, bytes(1)).await,
    ];

    for outcome in outcomes {
        assert!(outcome.is_ok(), "{outcome:?}");
    }
    for error in errors {
        assert!(matches!(error, Err(CommitError::Rejected { .. })), "{error:?}");
    }
}

async fn read_only(engine: &dyn Engine, reads: Vec<Bytes>) -> Result<Version, CommitError> {
    engine.commit(Change::new(reading(&reads), |_, _| Writes::new())).await
}
