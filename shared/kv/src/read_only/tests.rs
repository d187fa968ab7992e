use super::*;
use crate::memory::MemoryEngine;
use crate::{ChangeSpec, Domain, Writes, key_domain};

const KEYSPACES: [Keyspace; 1] = [Keyspace { name: "rows", kinds: 1..=9, domain: key_domain }];

fn change(writes: impl Fn(&[u8]) -> Writes + Send + 'static) -> Change {
    let key = Bytes::from_static(b"\x01a");
    let mut spec = ChangeSpec::new(Domain::of_key(&key, key_domain));
    let read = spec.read(key);
    Change::new(spec, move |reads, _| writes(reads.get(read).map_or(b"", |value| value)))
}

fn put(value: &'static [u8]) -> Writes {
    let mut writes = Writes::new();
    writes.put(Bytes::from_static(b"\x01a"), Bytes::from_static(value));
    writes
}

async fn engine(at: Ticks) -> ReadOnlyEngine {
    let store = MemoryEngine::new(KEYSPACES);
    store.commit(change(|_| put(b"old"))).await.unwrap();
    let rows: Arc<dyn Snapshot> = store.snapshot().await.unwrap().into();
    store.commit(change(|_| put(b"new"))).await.unwrap();
    ReadOnlyEngine::new(KEYSPACES, rows, at, "backup")
}

#[tokio::test]
async fn reads_are_served_and_writes_rejected() {
    let at = Ticks::new(7_000_000).unwrap();
    let engine = engine(at).await;
    assert_eq!(engine.get(b"\x01a").await.unwrap().unwrap(), "old");
    let all = Span::prefix(b"\x01");
    let found = engine.scan(&all, engine.limits().scan).await.unwrap();
    assert_eq!((found.entries.len(), found.more), (1, false));
    assert_eq!(engine.now(), at);

    let rejected = engine.commit(change(|_| put(b"x"))).await.unwrap_err();
    assert!(rejected.to_string().contains("a backup, which accepts no writes"), "{rejected}");
    assert_eq!(engine.get(b"\x01a").await.unwrap().unwrap(), "old");
}

#[tokio::test]
async fn a_change_that_writes_nothing_reads_and_succeeds() {
    let engine = engine(Ticks::new(7_000_000).unwrap()).await;
    let decide = |found: &[u8]| if found == b"old" { Writes::new() } else { put(b"x") };
    let first = engine.commit(change(decide)).await.unwrap();
    assert!(engine.commit(change(decide)).await.unwrap() > first);
}

#[tokio::test]
async fn keys_of_no_keyspace_are_rejected() {
    let engine = engine(Ticks::new(7_000_000).unwrap()).await;
    assert!(matches!(engine.get(b"\x0Fa").await, Err(EngineError::Rejected { .. })));
    let across = Span::new(&b"\x01"[..], &b"\xFF"[..]);
    let scanned = engine.scan(&across, engine.limits().scan).await;
    assert!(matches!(scanned, Err(EngineError::Rejected { .. })));
    let empty = Span::new(&b"\x02"[..], &b"\x01"[..]);
    let found = engine.scan(&empty, engine.limits().scan).await.unwrap();
    assert!(found.entries.is_empty() && !found.more);
}
