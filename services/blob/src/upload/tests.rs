use std::{path::Path, sync::Arc, time::Duration};

use trestle_kv::{
    Change, DiskStatus, Engine, EngineError, EngineStatus, Limits, Snapshot, Span, Version,
};
use trestle_model::fault::{Fault, Reason};
use trestle_model::time::Ticks;

use super::*;
use trestle_objects::faulty::{FaultyObjects, ObjectFault};

use crate::fixture::{BlobFixture, sample};

#[tokio::test]
async fn a_full_disk_is_reported_with_what_an_extent_needs() {
    for (length, needed) in [(100_000, 100_000), (10_000_000, EXTENT_BYTES)] {
        let store = Arc::new(FaultyObjects::default());
        let fixture = BlobFixture::on(Objects::of(Arc::clone(&store) as _));
        store.plan([ObjectFault::Full]);
        let rejected = fixture.upload(sample(length), SmallContent::Inline).await.err();

        let fault = Fault::from(rejected.expect("there is no space"));
        assert_eq!(fault.reason, Reason::InsufficientStorage);
        let number = format!("content of blobs: needed_bytes=`{needed}`; ");
        assert!(fault.message.contains(&number), "{}", fault.message);
    }
}

/// Files below a folder.
fn files(folder: &Path) -> usize {
    let entry = |entry: std::fs::DirEntry| match entry.path() {
        path if path.is_dir() => files(&path),
        _ => 1,
    };
    std::fs::read_dir(folder).expect("a folder").flatten().map(entry).sum()
}

#[tokio::test]
async fn an_upload_that_is_cancelled_while_a_file_is_written_leaves_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let fixture = BlobFixture::on(Objects::in_directory(folder.path()).expect("usable"));
    let free = fixture.blobs.memory.free_kib();
    for polls in 1..30 {
        let upload = fixture.upload(sample(5_000_000), SmallContent::Object);
        let mut upload = std::pin::pin!(upload);
        for _ in 0..polls {
            let _ = futures::poll!(&mut upload);
            tokio::task::yield_now().await;
        }
    }
    let began = std::time::Instant::now();
    // A file that is still being written has memory.
    while fixture.blobs.memory.free_kib() < free || files(folder.path()) > 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "memory or files are left");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An engine whose disk is short of space.
struct ShortOfSpace(Arc<dyn Engine>);

#[async_trait::async_trait]
impl Engine for ShortOfSpace {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        self.0.snapshot().await
    }

    async fn commit(&self, change: Change) -> Result<Version, CommitError> {
        self.0.commit(change).await
    }

    async fn discard(&self, span: &Span) -> Result<(), EngineError> {
        self.0.discard(span).await
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn now(&self) -> Ticks {
        self.0.now()
    }

    fn status(&self) -> EngineStatus {
        EngineStatus {
            disk: Some(DiskStatus {
                storage_bytes: 0,
                free_bytes: 500,
                reserve_bytes: 1000,
                is_space_short: true,
            }),
            is_read_only: false,
            ..self.0.status()
        }
    }
}

#[tokio::test]
async fn an_upload_that_the_reserve_rejects_states_it() {
    let mut fixture = BlobFixture::new();
    fixture.blobs.engine = Arc::new(ShortOfSpace(Arc::clone(&fixture.blobs.engine)));

    let rejected = fixture.upload(sample(100_000), SmallContent::Inline).await.err();

    let message = rejected.expect("it is rejected").to_string();
    let numbers = "needed_bytes=`100000`, free_bytes=`500`, storage.min_free_bytes=`1000`";
    assert!(message.contains(numbers), "{message}");
    assert_eq!(fixture.objects().await, 0);
}

#[tokio::test]
async fn small_pieces_are_joined_and_their_order_is_kept() {
    let fixture = BlobFixture::new();
    let lengths = [1, 1, 5, JOINED_BYTES, 3, JOINED_BYTES - 1, 2, 100_000, 1];
    let all = sample(lengths.iter().sum());
    for small in [SmallContent::Object, SmallContent::Memory] {
        let mut upload = Upload::new(&fixture.blobs, small, true);
        let mut rest = all.clone();
        for length in lengths {
            upload.push(rest.split_to(length)).await.expect("there is memory");
        }
        upload.end_joined();

        assert_eq!(upload.pieces.concat(), all);
        let kept: Vec<_> = upload.pieces.iter().map(Bytes::len).collect();
        assert_eq!(kept, [1, 6, JOINED_BYTES, 3, JOINED_BYTES - 1, 2, 100_000, 1]);
        assert_eq!(upload.size(), all.len() as u64);
    }
}

#[tokio::test]
async fn single_bytes_hold_no_allocation_each() {
    let fixture = BlobFixture::new();
    let all = sample(100_000);
    let mut upload = Upload::new(&fixture.blobs, SmallContent::Object, false);
    for byte in &all {
        upload.push(Bytes::copy_from_slice(&[*byte])).await.expect("there is memory");
    }
    upload.end_joined();

    assert_eq!(upload.pieces.len(), 1 + (all.len() - 1).div_ceil(JOINED_BYTES));
    assert_eq!(upload.pieces.concat(), all);
}
