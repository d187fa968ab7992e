//! Keys lie in keyspaces and in the domains that a change names, or they are rejected.

use std::sync::Arc;

use bytes::Bytes;

use super::{KIND, NO_LIMIT, OTHER_KIND, covering, domain_of, get, key, put, snapshot, store};
use crate::{
    Change, ChangeSpec, CommitError, Domain, Engine, EngineError, Lock, Span, Version, Write,
    Writes,
};

/// A key of no keyspace in KEYSPACES.
const UNKNOWN_KIND: u8 = 0x20;

async fn change(
    engine: &dyn Engine,
    mut spec: ChangeSpec,
    read: Option<Bytes>,
    write: Option<Write>,
) -> Result<Version, CommitError> {
    if let Some(key) = read {
        spec.read(key);
    }
    engine.commit(Change::new(spec, move |_, _| write.iter().cloned().collect::<Writes>())).await
}

/// A domain covers its keys of every kind; a shared one may be read.
pub async fn keys_in_named_domains_are_accepted(engine: Arc<dyn Engine>) {
    let (own, other) = (key(KIND, "own/1"), key(OTHER_KIND, "own/2"));
    let shared = key(KIND, "shared");
    let mut spec = covering([&own]);
    spec.also(Domain::of_key(&shared, domain_of), Lock::Shared);

    let outcome = change(&*engine, spec, Some(shared), Some(put(other.clone(), "1"))).await;

    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(get(&*engine, &other).await, Some("1".into()));
}

/// A read or a write outside the named domains is rejected, with the key and the domain.
pub async fn keys_outside_the_named_domains_are_rejected(engine: Arc<dyn Engine>) {
    let (own, foreign) = (key(KIND, "own"), key(KIND, "foreign/row"));
    store(&*engine, vec![put(foreign.clone(), "1")]).await;

    let read = change(&*engine, covering([&own]), Some(foreign.clone()), None).await;
    let write = change(&*engine, covering([&own]), None, Some(put(foreign.clone(), "2"))).await;
    let delete = Write::Delete { key: foreign.clone() };
    let delete = change(&*engine, covering([&own]), None, Some(delete)).await;

    for outcome in [read, write, delete] {
        let Err(CommitError::Rejected { reason }) = outcome else { panic!("{outcome:?}") };
        assert!(reason.contains("foreign/row") && reason.contains("domain"), "{reason}");
    }
    assert_eq!(get(&*engine, &foreign).await, Some("1".into()));
}

/// A shared domain is not written.
pub async fn writes_in_shared_domains_are_rejected(engine: Arc<dyn Engine>) {
    let (own, shared) = (key(KIND, "own"), key(KIND, "shared"));
    let mut spec = covering([&own]);
    spec.also(Domain::of_key(&shared, domain_of), Lock::Shared);

    let outcome = change(&*engine, spec, None, Some(put(shared.clone(), "1"))).await;

    assert!(matches!(outcome, Err(CommitError::Rejected { .. })), "{outcome:?}");
    assert_eq!(get(&*engine, &shared).await, None);
}

/// No keyspace holds the kind: reads and changes are rejected, and nothing else of the change is written.
pub async fn keys_of_no_keyspace_are_rejected(engine: Arc<dyn Engine>) {
    let (known, unknown) = (key(KIND, "row"), key(UNKNOWN_KIND, "row"));
    let view = snapshot(&*engine).await;

    let read = change(&*engine, covering([&known]), Some(unknown.clone()), None).await;
    let mut spec = covering([&known, &unknown]);
    let row = spec.read(known.clone());
    let target = unknown.clone();
    let written = engine.commit(Change::new(spec, move |reads, _| {
        let mut writes = Writes::new();
        writes.put(reads.key(row).clone(), "1").put(target.clone(), "1");
        writes
    }));
    for outcome in [read, written.await] {
        assert!(matches!(outcome, Err(CommitError::Rejected { .. })), "{outcome:?}");
    }
    assert_eq!(get(&*engine, &known).await, None);
    for key in [&[0][..], &unknown, &[]] {
        for outcome in [view.get(key).await, engine.get(key).await] {
            assert!(matches!(outcome, Err(EngineError::Rejected { .. })), "{outcome:?}");
        }
    }
}

/// A span is in one keyspace.
pub async fn spans_over_two_keyspaces_are_rejected(engine: Arc<dyn Engine>) {
    let view = snapshot(&*engine).await;
    let spans = [
        Span::new(vec![0], vec![2]),
        Span::new(vec![KIND], vec![OTHER_KIND]),
        Span::new(vec![KIND], vec![KIND + 1, 0]),
        Span::new(vec![UNKNOWN_KIND], vec![UNKNOWN_KIND + 1]),
    ];
    for span in spans {
        for span in [span.clone(), span.backward()] {
            for outcome in [view.scan(&span, NO_LIMIT).await, engine.scan(&span, NO_LIMIT).await] {
                assert!(matches!(outcome, Err(EngineError::Rejected { .. })), "{span:?}");
            }
        }
    }
    assert!(view.scan(&Span::prefix(&[0xFF]), NO_LIMIT).await.is_ok(), "the last kind");
}
