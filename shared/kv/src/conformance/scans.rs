//! Snapshots and scans.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use super::{KIND, NO_LIMIT, covering, get, key, keys, put, scan, snapshot, store};
use crate::{
    Engine, EngineError, Entry, ScanLimit, Span, Write, Writes, after_key, after_prefix, transact,
};

/// A snapshot keeps showing what it showed, or it ends.
pub async fn a_snapshot_never_changes(engine: Arc<dyn Engine>) {
    let (changed, deleted, added) = (key(KIND, "a"), key(KIND, "b"), key(KIND, "c"));
    store(&*engine, vec![put(changed.clone(), "1"), put(deleted.clone(), "1")]).await;

    let view = snapshot(&*engine).await;
    store(
        &*engine,
        vec![put(changed.clone(), "2"), Write::Delete { key: deleted.clone() }, put(added, "2")],
    )
    .await;

    for row in [&changed, &deleted] {
        match view.get(row).await {
            Ok(seen) => assert_eq!(seen, Some("1".into())),
            Err(EngineError::SnapshotEnded { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    match view.scan(&Span::prefix(&[KIND]), NO_LIMIT).await {
        Ok(seen) => assert_eq!(keys(&seen.entries), [changed.clone(), deleted]),
        Err(EngineError::SnapshotEnded { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    assert_eq!(get(&*engine, &changed).await, Some("2".into()));
}

/// Scans run while changes rewrite all rows at once: every scan sees rows of one change.
pub async fn a_scan_never_sees_half_a_change(engine: Arc<dyn Engine>) {
    const ROWS: u8 = 50;
    const CHANGES: u32 = 200;
    let rewrite = |value: u32| {
        let value = Bytes::copy_from_slice(&value.to_be_bytes());
        (0..ROWS).map(|row| put(vec![KIND, row].into(), value.clone())).collect::<Vec<_>>()
    };
    store(&*engine, rewrite(0)).await;

    let done = Arc::new(AtomicBool::new(false));
    let scanning = tokio::spawn({
        let (engine, done) = (Arc::clone(&engine), Arc::clone(&done));
        async move {
            let mut scans = 0_u32;
            while !done.load(Ordering::Relaxed) || scans == 0 {
                let seen = scan(&*engine, &Span::prefix(&[KIND]), NO_LIMIT).await;
                assert_eq!(seen.entries.len(), usize::from(ROWS));
                let torn = seen.entries.windows(2).any(|pair| match pair {
                    [a, b] => a.value != b.value,
                    _ => false,
                });
                assert!(!torn, "a scan saw rows of two changes");
                scans += 1;
                tokio::task::yield_now().await;
            }
        }
    });
    for value in 1..=CHANGES {
        store(&*engine, rewrite(value)).await;
        tokio::task::yield_now().await;
    }
    done.store(true, Ordering::Relaxed);

    scanning.await.expect("no scan is torn");
}

/// Bounds, order and direction.
pub async fn scans_are_ordered_and_bounded_both_ways(engine: Arc<dyn Engine>) {
    let names = ["", "a", "a\0", "aa", "b", "\u{7f}", "\u{10ffff}"];
    let mut stored: Vec<_> = names.iter().map(|name| key(KIND, name)).collect();
    store(&*engine, stored.iter().rev().map(|key| put(key.clone(), "")).collect()).await;
    stored.sort();

    let whole = Span::prefix(&[KIND]);
    let part = Span::new(key(KIND, "a\0"), key(KIND, "b"));
    let limit = ScanLimit { rows: 2, bytes: usize::MAX };

    let seen = scan(&*engine, &whole, NO_LIMIT).await;
    assert_eq!((keys(&seen.entries), seen.more), (stored.clone(), false));

    let seen = scan(&*engine, &part, NO_LIMIT).await;
    assert_eq!(keys(&seen.entries), [key(KIND, "a\0"), key(KIND, "aa")]);

    let seen = scan(&*engine, &part.clone().backward(), NO_LIMIT).await;
    assert_eq!(keys(&seen.entries), [key(KIND, "aa"), key(KIND, "a\0")]);

    let seen = scan(&*engine, &whole.clone().backward(), limit).await;
    stored.reverse();
    stored.truncate(2);
    assert_eq!((keys(&seen.entries), seen.more), (stored, true));
}

/// A scan that starts after the last key of another, or ends before it, goes on without a gap.
pub async fn scans_continue_where_they_ended(engine: Arc<dyn Engine>) {
    let stored: Vec<Bytes> = (0..10_u8).map(|row| vec![KIND, row].into()).collect();
    store(&*engine, stored.iter().map(|key| put(key.clone(), "")).collect()).await;
    let limit = ScanLimit { rows: 3, bytes: usize::MAX };

    let mut forward = Vec::new();
    let mut span = Span::prefix(&[KIND]);
    loop {
        let page = scan(&*engine, &span, limit).await;
        assert!(page.entries.len() <= 3);
        forward.extend(keys(&page.entries));
        let Some(last) = forward.last().filter(|_| page.more) else {
            break;
        };
        span = Span::new(after_key(last), span.end);
    }
    let mut backward = Vec::new();
    let mut span = Span::prefix(&[KIND]).backward();
    loop {
        let page = scan(&*engine, &span, limit).await;
        backward.extend(keys(&page.entries));
        let Some(last) = backward.last().filter(|_| page.more) else {
            break;
        };
        span = Span::new(span.start, last.clone()).backward();
    }

    assert_eq!(forward, stored);
    backward.reverse();
    assert_eq!(backward, stored);
}

/// The byte limit counts keys and values, and never keeps back the first entry.
pub async fn scans_end_after_the_entry_that_meets_the_byte_limit(engine: Arc<dyn Engine>) {
    let rows = (0..5_u8).map(|row| put(vec![KIND, row].into(), vec![0_u8; 8]));
    store(&*engine, rows.collect()).await;
    let span = Span::prefix(&[KIND]);
    let limit = |bytes| ScanLimit { rows: usize::MAX, bytes };

    for (bytes, expected) in [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3), (50, 5)] {
        let seen = scan(&*engine, &span, limit(bytes)).await;
        assert_eq!(seen.entries.len(), expected, "limit of {bytes} bytes");
    }
    let seen = scan(&*engine, &span, ScanLimit { rows: 0, bytes: usize::MAX }).await;
    assert_eq!(seen.entries.len(), 1);
    let seen = scan(&*engine, &span, limit(51)).await;
    assert!(!seen.more);
}

/// Ranges without keys, and ranges that cannot have any.
pub async fn empty_ranges_are_empty(engine: Arc<dyn Engine>) {
    store(&*engine, vec![put(key(KIND, "m"), "")]).await;

    let spans = [
        Span::new(key(KIND, "a"), key(KIND, "m")),
        Span::new(key(KIND, "n"), after_prefix(&[KIND])),
        Span::new(key(KIND, "m"), key(KIND, "m")),
        Span::new(key(KIND, "z"), key(KIND, "a")),
    ];
    for span in spans {
        for span in [span.clone(), span.backward()] {
            let seen = scan(&*engine, &span, NO_LIMIT).await;
            assert_eq!((seen.entries, seen.more), (Vec::new(), false), "{span:?}");
        }
    }
}

/// A scan long enough to be handled in another way than a short one.
pub async fn long_scans_return_everything_once(engine: Arc<dyn Engine>) {
    let stored: Vec<Bytes> = (0..3_000_u16)
        .map(|row| {
            let [high, low] = row.to_be_bytes();
            vec![KIND, high, low].into()
        })
        .collect();
    for part in stored.chunks(1_000) {
        store(&*engine, part.iter().map(|key| put(key.clone(), "v")).collect()).await;
    }
    let span = Span::prefix(&[KIND]);

    let seen = scan(&*engine, &span, NO_LIMIT).await;
    assert_eq!((keys(&seen.entries), seen.more), (stored.clone(), false));

    let limit = ScanLimit { rows: 1_999, bytes: usize::MAX };
    let seen = scan(&*engine, &span.backward(), limit).await;
    let last: Vec<_> = stored.into_iter().rev().take(1_999).collect();
    assert_eq!((keys(&seen.entries), seen.more), (last, true));
}

/// A scan without a limit of its own ends at the engine's, and the next one goes on.
pub async fn scans_end_at_the_limit_of_the_engine(engine: Arc<dyn Engine>) {
    let limits = engine.limits();
    let rows = limits.scan.bytes / limits.value_bytes + 1;
    let value = Bytes::from(vec![7; limits.value_bytes]);
    for row in 0..rows {
        store(&*engine, vec![put(key(KIND, &format!("row/{row:03}")), value.clone())]).await;
    }

    let seen = scan(&*engine, &Span::prefix(&[KIND]), NO_LIMIT).await;

    assert!(seen.more && seen.entries.len() < rows, "{} of {rows} rows", seen.entries.len());
    let Some(last) = seen.entries.last() else { panic!("no rows") };
    let rest = Span::new(after_key(&last.key), after_prefix(&[KIND]));
    let rest = scan(&*engine, &rest, NO_LIMIT).await;
    assert_eq!((seen.entries.len() + rest.entries.len(), rest.more), (rows, false));
}

/// An empty value is not an absent one, for reads, scans and decisions.
pub async fn empty_values_are_values(engine: Arc<dyn Engine>) {
    let row = key(KIND, "row");
    store(&*engine, vec![put(row.clone(), "")]).await;

    let mut spec = covering([&row]);
    let id = spec.read(row.clone());
    let decided = transact(&*engine, spec, move |reads, _| {
        Ok::<_, ()>((Writes::new(), reads.get(id).cloned()))
    });

    assert_eq!(decided.await.expect("committed"), Ok(Some(Bytes::new())));
    assert_eq!(get(&*engine, &row).await, Some(Bytes::new()));
    let seen = scan(&*engine, &Span::prefix(&[KIND]), NO_LIMIT).await;
    assert_eq!(seen.entries, [Entry { key: row.clone(), value: Bytes::new() }]);
    store(&*engine, vec![Write::Delete { key: row.clone() }]).await;
    assert_eq!(get(&*engine, &row).await, None);
}

/// Keys around the lengths at which engines store them in another way, which do not compress and share long
/// beginnings, in both directions and in pages.
pub async fn long_keys_are_kept_in_order(engine: Arc<dyn Engine>) {
    const LENGTHS: [usize; 9] = [1, 2_399, 2_400, 2_401, 2_691, 2_692, 2_693, 59_999, 60_000];
    let (one, two) = (noise(1, 60_000), noise(2, 60_000));
    let mut stored: Vec<(Bytes, Bytes)> = Vec::new();
    for (text, length) in [&one, &two].into_iter().flat_map(|text| LENGTHS.map(|l| (text, l))) {
        for last in [0, 0x7F, 0xFF] {
            // All are of one domain: kind and slash are the first bytes.
            let mut key = vec![KIND, b'/'];
            key.extend(text.iter().take(length.saturating_sub(3)));
            key.push(last);
            stored.push((key.into(), length.to_string().into()));
        }
    }
    for part in stored.chunks(10) {
        let writes = part.iter().map(|(key, value)| put(key.clone(), value.clone()));
        store(&*engine, writes.collect()).await;
    }
    stored.sort();
    stored.dedup_by(|later, kept| later.0 == kept.0);

    for (key, value) in &stored {
        assert_eq!(get(&*engine, key).await.as_ref(), Some(value), "{} bytes", key.len());
    }
    let limit = ScanLimit { rows: 7, bytes: usize::MAX };
    let (mut forward, mut span) = (Vec::new(), Span::prefix(&[KIND]));
    loop {
        let page = scan(&*engine, &span, limit).await;
        forward.extend(keys(&page.entries));
        let Some(last) = forward.last().filter(|_| page.more) else { break };
        span = Span::new(after_key(last), span.end);
    }
    let (mut backward, mut span) = (Vec::new(), Span::prefix(&[KIND]).backward());
    loop {
        let page = scan(&*engine, &span, limit).await;
        backward.extend(keys(&page.entries));
        let Some(last) = backward.last().filter(|_| page.more) else { break };
        span = Span::new(span.start, last.clone()).backward();
    }
    backward.reverse();
    let expected: Vec<_> = stored.into_iter().map(|(key, _)| key).collect();
    assert!(forward == expected, "forward: {} of {} keys", forward.len(), expected.len());
    assert!(backward == expected, "backward: {} of {} keys", backward.len(), expected.len());
}

/// Bytes that do not compress.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..bytes.div_ceil(8)).flat_map(|_| next()).take(bytes).collect()
}
