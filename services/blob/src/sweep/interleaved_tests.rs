//! The background work, with a change between any two of its operations.

use std::{pin::pin, time::Duration};

use trestle_model::{read_grace::READ_GRACE, time::Ticks};

use super::*;
use crate::{
    blobs::{BlobKey, BlobState, DeleteScope, PutCommand},
    fixture::{BlobFixture, account, container_name, sample},
    names::BlobName,
    record::Retention,
    upload::{SmallContent, Uploaded},
};

const SECOND: Duration = Duration::from_secs(1);
/// More operations than any sweep of these tests has.
const ALL: usize = 100_000;
const CHUNK: u64 = 64 * 1024;
const KEPT_FOR: Duration = Duration::from_secs(5 * 24 * 3600);

/// Prepares a state, runs the background work up to each of its operations, makes a change, runs the rest, and checks.
async fn at_each_step<P, T>(
    prepare: impl AsyncFn(&BlobFixture) -> P,
    change: impl AsyncFn(&BlobFixture, &mut P) -> T,
    check: impl AsyncFn(&BlobFixture, P, T, usize),
) {
    for operations in 0.. {
        let fixture = BlobFixture::new();
        let mut prepared = prepare(&fixture).await;
        let (background, steps) = fixture.stepped();
        let mut sweep = pin!(async {
            while background.sweeper.tick().await.expect("it has no error of its own") {}
        });
        let is_done = steps.run(&mut sweep, operations).await.is_some();
        let changed = change(&fixture, &mut prepared).await;
        if !is_done {
            steps.run(&mut sweep, ALL).await.expect("it ends");
        }
        fixture.sweep().await;
        check(&fixture, prepared, changed, operations).await;
        if is_done {
            return;
        }
    }
}

/// Writes the first page of each of the chunks.
async fn write_chunks(fixture: &BlobFixture, key: &BlobKey, chunks: u64, fill: u8) {
    for index in 0..chunks {
        fixture.write_pages(key, index * CHUNK, vec![fill; 512]).await.expect("written");
    }
}

async fn page_blob(fixture: &BlobFixture, chunks: u64) -> BlobKey {
    let key = fixture.key("pages").await;
    fixture.create_pages(&key, chunks * CHUNK).await.expect("created");
    write_chunks(fixture, &key, chunks, 1).await;
    key
}

/// Takes a snapshot, overwrites the blob, and deletes the snapshot.
async fn leave_unread(fixture: &BlobFixture, key: &BlobKey, chunks: u64, fill: u8) {
    let at = fixture.snapshot(key).await.expect("a snapshot");
    write_chunks(fixture, key, chunks, fill).await;
    fixture.delete_scope(key, DeleteScope::Snapshot(at)).await.expect("deleted");
}

#[tokio::test]
async fn a_snapshot_made_during_a_sweep_keeps_its_pages() {
    // More rows than one part of a scan has.
    const CHUNKS: u64 = 270;
    at_each_step(
        async |fixture| {
            let key = page_blob(fixture, CHUNKS).await;
            leave_unread(fixture, &key, CHUNKS, 2).await;
            fixture.advance(READ_GRACE + SECOND);
            key
        },
        async |fixture, key| {
            let at = fixture.snapshot(key).await.expect("a snapshot");
            write_chunks(fixture, key, CHUNKS, 3).await;
            at
        },
        async |fixture, key, at, operations| {
            let read = fixture.read_snapshot(&key, at).await.expect("read");
            let read = read.chunks(64 * 1024).map(|chunk| chunk[0]);
            let wrong: Vec<_> = read.enumerate().filter(|(_, fill)| *fill != 2).collect();
            assert!(wrong.is_empty(), "after {operations} operations: {wrong:?}");
            let current = fixture.read(&key).await.expect("read");
            assert!(current.chunks(64 * 1024).all(|chunk| chunk[0] == 3));
        },
    )
    .await;
}

#[tokio::test]
async fn a_blob_that_is_restored_while_it_expires_is_whole() {
    at_each_step(
        async |fixture| {
            let deleted_for = Some(KEPT_FOR);
            fixture.keep(Retention { deleted_for, ..Retention::default() });
            let key = fixture.key("a").await;
            fixture.put(&key, sample(100_000)).await;
            fixture.delete(&key).await.expect("deleted");
            fixture.advance(KEPT_FOR + SECOND);
            key
        },
        async |fixture, key| fixture.undelete(key).await.is_ok(),
        async |fixture, key, is_restored, operations| {
            fixture.advance(READ_GRACE + SECOND);
            fixture.sweep().await;
            let read = fixture.read(&key).await;
            assert_eq!(read.is_ok(), is_restored, "after {operations} operations: {read:?}");
            assert_eq!(fixture.objects().await, usize::from(is_restored));
        },
    )
    .await;
}

#[tokio::test]
async fn a_container_that_is_restored_while_it_expires_has_its_blobs() {
    at_each_step(
        async |fixture| {
            let containers_deleted_for = Some(KEPT_FOR);
            fixture.keep(Retention { containers_deleted_for, ..Retention::default() });
            let container = fixture.container("logs").await.id;
            let key = BlobKey { container, name: BlobName::stored("a".to_owned()) };
            fixture.put(&key, sample(100_000)).await;
            fixture.drop_container("logs").await;
            fixture.advance(KEPT_FOR + SECOND);
            key
        },
        async |fixture, key| {
            let name = container_name("logs");
            fixture.containers.undelete(&account(), (name, key.container), true).await.is_ok()
        },
        async |fixture, key, is_restored, operations| {
            fixture.advance(READ_GRACE + SECOND);
            fixture.sweep().await;
            let read = fixture.read(&key).await;
            assert_eq!(read.is_ok(), is_restored, "after {operations} operations: {read:?}");
        },
    )
    .await;
}

#[tokio::test]
async fn an_upload_that_is_published_after_a_day_is_whole_or_rejected() {
    at_each_step(
        async |fixture| {
            let key = fixture.key("a").await;
            let uploaded = fixture.upload(sample(100_000), SmallContent::Inline).await;
            fixture.advance(ORPHAN_GRACE + SECOND);
            (key, uploaded.ok())
        },
        async |fixture, (key, uploaded)| {
            let Uploaded { content, written, .. } = uploaded.take().expect("written");
            let (blobs, command) = (&fixture.blobs, PutCommand::default());
            written.publish(|due| blobs.put(key.clone(), command, content, due)).await.is_ok()
        },
        async |fixture, (key, _), is_published, operations| {
            let read = fixture.read(&key).await;
            assert_eq!(read.is_ok(), is_published, "after {operations} operations: {read:?}");
        },
    )
    .await;
}

#[tokio::test]
async fn an_upload_whose_process_stands_still_before_its_change_is_rejected() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let uploaded = fixture.upload(sample(100_000), SmallContent::Inline).await;
    let Uploaded { content, written, .. } = uploaded.expect("written");

    let published = written.publish(async |due| {
        fixture.advance(ORPHAN_GRACE + SECOND);
        // That of another process.
        fixture.sweep().await;
        fixture.blobs.put(key.clone(), PutCommand::default(), content, due).await
    });

    assert!(matches!(published.await, Err(BlobError::Busy)), "its object is gone");
    fixture.read(&key).await.expect_err("nothing was published");
}

#[tokio::test]
async fn sweeps_of_two_processes_leave_nothing_that_deleted_states_shared() {
    two_sweeps(async |fixture, key| {
        fixture.put(key, sample(100_000)).await;
        [fixture.snapshot(key).await, fixture.snapshot(key).await]
    })
    .await;
    two_sweeps(async |fixture, key| {
        for id in ["A", "B"] {
            fixture.stage(key, id, sample(40_000)).await.expect("staged");
        }
        fixture.commit(key, &["A", "B"]).await.expect("committed");
        let first = fixture.snapshot(key).await;
        fixture.stage(key, "C", sample(50_000)).await.expect("staged");
        fixture.commit(key, &["A", "C"]).await.expect("committed");
        [first, fixture.snapshot(key).await]
    })
    .await;
}

/// Has two processes sweep what two deleted snapshots shared, one of them between any two operations of the other.
async fn two_sweeps(
    prepare: impl AsyncFn(&BlobFixture, &BlobKey) -> [Result<Ticks, BlobError>; 2],
) {
    for operations in 0.. {
        let fixture = BlobFixture::new();
        let key = fixture.key("a").await;
        let states = prepare(&fixture, &key).await;
        fixture.put(&key, "small").await;
        for at in states {
            let scope = DeleteScope::Snapshot(at.expect("a snapshot"));
            fixture.delete_scope(&key, scope).await.expect("deleted");
        }
        let retired = Span::prefix(&key.row(BlobRow::SharedRetired, &[]));
        let rows = fixture.blobs.engine.scan(&retired, STEP).await.expect("read").entries;
        fixture.advance(READ_GRACE + SECOND);
        let (other, steps) = fixture.stepped();
        let mut sweep = pin!(other.sweeper.sweep_retired(BlobRow::SharedRetired));
        let is_done = steps.run(&mut sweep, operations).await.is_some();

        // This one is at the second state already.
        let last = rows.last().expect("two rows").key.clone();
        fixture.sweeper.with(|positions| *positions.retired(BlobRow::SharedRetired) = last);
        fixture.sweeper.sweep_retired(BlobRow::SharedRetired).await.expect("swept");

        if !is_done {
            steps.run(&mut sweep, ALL).await.expect("it ends").expect("swept");
        }
        // What the write of the small content left is retired later.
        for _ in 0..2 {
            fixture.advance(READ_GRACE + SECOND);
            fixture.sweep().await;
        }
        assert_eq!(fixture.objects().await, 0, "after {operations} operations");
        if is_done {
            return;
        }
    }
}

#[tokio::test]
async fn a_copy_of_pages_that_stalls_between_any_two_steps_is_whole_or_rejected() {
    // They are copied in three parts.
    const CHUNKS: u64 = 130;
    for operations in 0.. {
        let fixture = BlobFixture::new();
        let source = page_blob(&fixture, CHUNKS).await;
        let target = BlobKey { name: BlobName::stored("copy".to_owned()), ..source.clone() };
        let (writer, steps) = fixture.stepped();
        let mut copy = Box::pin(writer.copy((&source, BlobState::Current), &target));
        let done = steps.run(&mut copy, operations).await;

        fixture.advance(READ_GRACE + SECOND);
        fixture.sweep().await;

        let is_done = done.is_some();
        let copied = match done {
            Some(copied) => copied,
            None => steps.run(&mut copy, ALL).await.expect("it ends"),
        };
        fixture.advance(READ_GRACE + SECOND);
        fixture.sweep().await;
        let (expected, read) = (fixture.read(&source).await, fixture.read(&target).await);
        assert_eq!(read.is_ok(), copied.is_ok(), "after {operations} operations: {copied:?}");
        let is_whole = read.is_err() || read.ok() == expected.ok();
        assert!(is_whole, "after {operations} operations pages are missing");
        if is_done {
            return;
        }
    }
}

#[tokio::test]
async fn one_scan_of_a_page_blob_is_enough_for_all_of_its_deleted_snapshots() {
    const CHUNKS: u64 = 100;
    const SNAPSHOTS: usize = 50;
    let fixture = BlobFixture::new();
    let key = page_blob(&fixture, CHUNKS).await;
    for _ in 0..SNAPSHOTS {
        leave_unread(&fixture, &key, 1, 2).await;
    }
    let rows = fixture.rows().await;
    fixture.advance(READ_GRACE + SECOND);
    let (background, steps) = fixture.stepped();
    let mut sweep = pin!(async { while background.sweeper.tick().await.expect("swept") {} });
    steps.run(&mut sweep, ALL).await.expect("it ends");

    // Each chunk about once; for each snapshot its row, and a state beside it.
    let read = steps.rows();
    assert!(read < 4 * rows, "read {read} rows of {rows}");
    let expected = usize::try_from(CHUNKS).expect("few");
    assert_eq!(fixture.rows().await, 1 + expected, "the record and a row for each chunk");
}

#[tokio::test]
async fn a_tick_examines_a_bounded_part_of_each_blob_and_reaches_the_blobs_of_others() {
    const CHUNKS: u64 = 700;
    let fixture = BlobFixture::new();
    for _ in 0..3 {
        let large = page_blob(&fixture, CHUNKS).await;
        leave_unread(&fixture, &large, CHUNKS, 2).await;
    }
    let other = fixture.key("other").await;
    for length in [100_000, 200_000] {
        fixture.put(&other, sample(length)).await;
    }
    let small = page_blob(&fixture, 1).await;
    leave_unread(&fixture, &small, 1, 2).await;
    fixture.advance(READ_GRACE + SECOND);
    let (background, steps) = fixture.stepped();
    let rows = fixture.rows().await;

    let (mut ticks, mut before, mut is_over) = (0, 0, false);
    while !is_over {
        let mut tick = pin!(background.sweeper.tick());
        is_over = !steps.run(&mut tick, ALL).await.expect("it ends").expect("swept");
        let read = steps.rows() - before;
        assert!(read < 2500, "tick {ticks} reads {read} rows");
        (ticks, before) = (ticks + 1, steps.rows());
        if ticks == 1 {
            assert_eq!(fixture.objects().await, 1, "the content of another blob is deleted");
            let chunks = Span::prefix(&small.row(BlobRow::Chunk, &[]));
            let chunks = fixture.blobs.engine.scan(&chunks, STEP).await.expect("read").entries;
            assert_eq!(chunks.len(), 1, "a small one does not wait for the large ones");
            assert!(fixture.rows().await > rows / 2, "the large ones go on");
        }
    }
    assert!(ticks > 2);
    for blob in [small] {
        assert_eq!(fixture.read(&blob).await.expect("read")[0], 2);
    }
}

#[tokio::test]
async fn scans_of_one_container_leave_room_for_another_and_end_together() {
    const CHUNKS: u64 = 700;
    let fixture = BlobFixture::new();
    let first = page_blob(&fixture, CHUNKS).await;
    let named = |name: &str| BlobKey { name: BlobName::stored(name.to_owned()), ..first.clone() };
    let mut blobs = vec![first.clone()];
    for name in ["pages1", "pages2", "pages3", "pages4", "pages5"] {
        let key = named(name);
        fixture.create_pages(&key, CHUNKS * CHUNK).await.expect("created");
        write_chunks(&fixture, &key, CHUNKS, 1).await;
        blobs.push(key);
    }
    // Another container, whose keys come last.
    blobs.push(page_blob(&fixture, CHUNKS).await);
    for key in &blobs {
        leave_unread(&fixture, key, CHUNKS, 2).await;
    }
    fixture.advance(READ_GRACE + SECOND);
    let limit = ScanLimit { rows: 10_000, bytes: usize::MAX };
    let left = async |key: &BlobKey| {
        let chunks = Span::prefix(&key.row(BlobRow::Chunk, &[]));
        let rows = fixture.blobs.engine.scan(&chunks, limit).await.expect("read").entries.len();
        rows - usize::try_from(CHUNKS).expect("few")
    };

    for _ in 0..2 {
        fixture.sweeper.tick().await.expect("swept");
    }

    let all = usize::try_from(CHUNKS).expect("few");
    assert!(left(&blobs[6]).await < all, "the other container does not wait");
    for key in &blobs[..4] {
        let left = left(key).await;
        assert!(0 < left && left < all, "they take turns: {left}");
    }
    for key in &blobs[4..6] {
        assert_eq!(left(key).await, all, "later scans of the container begin later");
    }
    for _ in 0..10 {
        fixture.sweep().await;
    }
    for key in &blobs {
        assert_eq!(left(key).await, 0);
        assert_eq!(fixture.read(key).await.expect("read")[0], 2);
    }
}
