use std::pin::pin;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use trestle_kv::faulty::{FaultRates, FaultyEngine};
use trestle_model::fault::{Fault, Reason};
use trestle_model::read_grace::READ_GRACE;

use super::*;
use crate::{
    blobs::{CopyCommand, DeleteScope},
    conditions::Conditions,
    fixture::{BlobFixture, sample},
    names::BlobName,
    pages::{PageRangesRequest, PageUpdate},
    record::{CopyOrigin, Retention},
};

/// Several messages of content.
const SIZE: usize = 8 << 20;

/// A page blob with data in every page.
async fn filled(fixture: &BlobFixture) -> BlobKey {
    let key = fixture.key("a").await;
    fixture.create_pages(&key, SIZE as u64).await.expect("created");
    write_all(fixture, &key, &sample(SIZE)).await;
    key
}

async fn write_all(fixture: &BlobFixture, key: &BlobKey, data: &Bytes) {
    for offset in (0..SIZE).step_by(4 << 20) {
        let part = data.slice(offset..offset + (4 << 20));
        fixture.write_pages(key, offset as u64, part).await.expect("written");
    }
}

/// The bytes of a blob, which is opened now.
async fn open(
    blobs: &Blobs,
    key: &BlobKey,
) -> impl Stream<Item = Result<Bytes, BlobError>> + use<> {
    let required = (&Conditions::default(), None);
    let opened = blobs.open((key.clone(), BlobState::Current), None, required).await;
    blobs.clone().bytes(&opened.expect("opened"))
}

async fn resize(fixture: &BlobFixture, key: &BlobKey, size: u64) {
    let update = PageUpdate { size: Some(size), sequence: None };
    fixture.blobs.update_pages(fixture.paging(key), update).await.expect("resized");
}

#[tokio::test]
async fn a_read_has_the_bytes_of_one_version_whatever_is_written_meanwhile() {
    let fixture = BlobFixture::new();
    let key = filled(&fixture).await;
    let mut pieces = pin!(open(&fixture.blobs, &key).await);
    let mut read = pieces.next().await.expect("a piece").expect("read").to_vec();
    assert!(read.len() < SIZE / 2, "the rest is read later");

    write_all(&fixture, &key, &vec![7; SIZE].into()).await;
    resize(&fixture, &key, 4096).await;
    fixture.delete(&key).await.expect("deleted");
    while let Some(piece) = pieces.try_next().await.expect("read") {
        read.extend_from_slice(&piece);
    }

    assert!(read == sample(SIZE), "a byte is of another version");
}

#[tokio::test(start_paused = true)]
async fn a_slow_read_goes_on_unless_the_blob_was_changed() {
    let fixture = BlobFixture::new();
    let key = filled(&fixture).await;
    let mut pieces = pin!(open(&fixture.blobs, &key).await);
    let mut read = Vec::new();
    while let Some(piece) = pieces.try_next().await.expect("read") {
        read.extend_from_slice(&piece);
        tokio::time::advance(HELD_MAX).await;
    }
    assert!(read == sample(SIZE), "a byte is of another version");

    let mut pieces = pin!(open(&fixture.blobs, &key).await);
    pieces.next().await.expect("a piece").expect("read");
    fixture.write_pages(&key, 0, sample(512)).await.expect("written");
    tokio::time::advance(HELD_MAX).await;
    let error = loop {
        match pieces.next().await.expect("the read does not end as if it was whole") {
            Ok(_) => {}
            Err(error) => break Fault::from(error),
        }
    };
    assert_eq!(error.reason, Reason::ConditionNotMet);
    assert_eq!(error.message, ConditionError::NotMet.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_slow_read_of_a_deleted_snapshot_ends_where_its_pages_are_deleted() {
    let fixture = BlobFixture::new();
    let key = filled(&fixture).await;
    let at = fixture.snapshot(&key).await.expect("a snapshot");
    write_all(&fixture, &key, &vec![7; SIZE].into()).await;
    let required = (&Conditions::default(), None);
    let opened = fixture.blobs.open((key.clone(), BlobState::Past(at)), None, required).await;
    let mut pieces = pin!(fixture.blobs.clone().bytes(&opened.expect("opened")));
    let mut read = pieces.next().await.expect("a piece").expect("read").to_vec();
    fixture.delete_scope(&key, DeleteScope::Snapshot(at)).await.expect("deleted");
    tokio::time::advance(HELD_MAX).await;
    read.extend(pieces.next().await.expect("a piece").expect("they are kept for reads"));
    assert!(read[..] == sample(SIZE)[..read.len()], "a byte is of another version");

    fixture.advance(READ_GRACE + Duration::from_secs(1));
    fixture.sweep().await;
    tokio::time::advance(HELD_MAX).await;

    let error = loop {
        match pieces.next().await.expect("the read does not end as if it was whole") {
            Ok(piece) => read.extend_from_slice(&piece),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, BlobError::Condition(ConditionError::NotMet)), "{error:?}");
    assert!(read[..] == sample(SIZE)[..read.len()], "a byte is of another version");
}

#[tokio::test]
async fn a_read_survives_snapshots_that_the_engine_ends() {
    let fixture = BlobFixture::new();
    let key = filled(&fixture).await;
    let rates = FaultRates { snapshot_reads_max: Some(2), ..FaultRates::default() };
    let engine = FaultyEngine::new(Arc::clone(&fixture.blobs.engine), 1, rates);
    let blobs = Blobs { engine: Arc::new(engine), ..fixture.blobs.clone() };

    let pieces: Vec<Bytes> = open(&blobs, &key).await.try_collect().await.expect("read");

    assert!(pieces.concat() == sample(SIZE), "a byte is of another version");
}

#[tokio::test]
async fn a_copy_and_a_list_of_ranges_have_the_pages_of_one_version() {
    let fixture = BlobFixture::new();
    let key = filled(&fixture).await;
    let target = BlobKey { name: BlobName::stored("copy".to_owned()), ..key.clone() };
    let command = CopyCommand {
        metadata: None,
        tags: None,
        conditions: Conditions::default(),
        lease_id: None,
        tier: None,
        is_sealed: false,
        properties: None,
        block_bytes_max: None,
        origin: Some(CopyOrigin { id: uuid::Uuid::nil(), source: String::new() }),
        retention: Retention::default(),
    };
    let required = (&Conditions::default(), None);
    let source = (key.clone(), BlobState::Current);
    let copy = fixture.blobs.open_copy(source, required, target.clone(), command).await;
    let opened = fixture.blobs.open_pages((&key, BlobState::Current), None, required).await;
    let (_, mut chunks, bytes) = opened.expect("opened");

    resize(&fixture, &key, 4096).await;
    copy.expect("opened").run(|_| ()).await.expect("copied").publish().await.expect("published");
    let request =
        PageRangesRequest { since: None, bytes: (bytes.start, bytes.end), ranges_max: 10 };
    let list = fixture.blobs.page_ranges(&mut chunks, request).await.expect("listed");

    assert!(fixture.read(&target).await.expect("read") == sample(SIZE), "another version");
    let ranges: Vec<_> = list.ranges.into_iter().map(|range| range.bytes).collect();
    assert_eq!(ranges.len(), 1);
    assert_eq!(ranges[0], 0..SIZE as u64);
}
