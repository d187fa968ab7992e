//! Where a scan runs: a thread that serves others must not walk through what was deleted.

use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use trestle_kv::{Engine, Scan, ScanLimit, Span, Write};

use crate::world::{commit, key, open, put};

/// Rows of which deletes, or overwrites, count as many.
const MANY: u32 = 15_000;

fn row(number: u32) -> Bytes {
    key(number.to_be_bytes())
}

async fn in_batches(engine: &dyn Engine, write: impl Fn(Bytes) -> Write) {
    let rows: Vec<_> = (0..MANY).map(row).collect();
    for batch in rows.chunks(1_000) {
        commit(engine, batch.iter().cloned().map(&write).collect()).await.unwrap();
    }
}

/// Whether a scan for the first row answered at once, on the calling thread; and what it found.
async fn first_row(engine: &dyn Engine) -> (bool, Scan) {
    let view = engine.snapshot().await.unwrap();
    // Nothing else runs until the only thread there is for it gets free again: otherwise a scan
    // that left this one could be over before it is looked at.
    let (free, is_free) = mpsc::channel::<()>();
    let holder = tokio::task::spawn_blocking(move || is_free.recv());
    let (span, limit) = (Span::prefix(&[1]), ScanLimit { rows: 1, bytes: usize::MAX });
    let mut scan = pin!(view.scan(&span, limit));
    let first = scan.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    drop(free);
    let _ = holder.await.unwrap();
    match first {
        Poll::Ready(found) => (true, found.unwrap()),
        Poll::Pending => (false, scan.await.unwrap()),
    }
}

/// Runs a test with one thread for what must not run on that of others.
fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.max_blocking_threads(1).build().unwrap().block_on(test);
}

#[test]
fn a_scan_leaves_the_calling_thread_when_many_deletes_lie_before_the_next_row() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path());
        let last = row(u32::MAX);
        commit(&*engine, vec![put(last.clone(), "kept")]).await.unwrap();
        let (completed_inline, found) = first_row(&*engine).await;
        assert!(completed_inline, "nothing was deleted");
        assert_eq!(found.entries[0].key, last);

        in_batches(&*engine, |key| put(key, "value")).await;
        in_batches(&*engine, |key| Write::Delete { key }).await;
        let (completed_inline, found) = first_row(&*engine).await;

        assert!(!completed_inline, "{MANY} deletes were walked through on the calling thread");
        assert_eq!(found.entries[0].key, last);
        assert!(!found.more);

        // The journal brings all of it back.
        drop(engine);
        let engine = open(directory.path());
        let (completed_inline, found) = first_row(&*engine).await;
        assert!(
            !completed_inline,
            "deletes from the journal were walked through on the calling thread"
        );
        assert_eq!(found.entries[0].key, last);
    });
}

#[test]
fn a_scan_leaves_the_calling_thread_when_rows_were_often_overwritten() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path());
        for version in ["1", "2", "3"] {
            in_batches(&*engine, |key| put(key, version)).await;
        }

        let (completed_inline, found) = first_row(&*engine).await;

        assert!(
            !completed_inline,
            "overwritten versions were walked through on the calling thread"
        );
        assert_eq!(found.entries[0].value, "3");
    });
}
