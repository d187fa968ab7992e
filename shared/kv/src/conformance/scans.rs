//! Snapshots and scans.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use super::{KIND, NO_LIMIT, get, key, keys, put, scan, snapshot, store};
use crate::{Engine, ScanLimit, Span, Write, after_key, after_prefix};

/// A snapshot keeps showing what it showed.
pub async fn a_snapshot_never_changes(engine: Arc<dyn Engine>) {
    let (changed, deleted, added) = (key(KIND, "a"), key(KIND, "b"), key(KIND, "c"));
    store(&*engine, vec![put(changed.clone(), "1"), put(deleted.clone(), "1")]).await;

    let view = snapshot(&*engine).await;
    store(
        &*engine,
        vec![put(changed.clone(), "2"), Write::Delete { key: deleted.clone() }, put(added, "2")],
    )
    .await;

    assert_eq!(view.get(&changed).await.expect("readable"), Some("1".into()));
    assert_eq!(view.get(&deleted).await.expect("readable"), Some("1".into()));
    let seen = view.scan(&Span::prefix(&[KIND]), NO_LIMIT).await.expect("readable");
    assert_eq!(keys(&seen.entries), [changed.clone(), deleted]);
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
