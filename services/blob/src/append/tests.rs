use std::time::Duration;
use trestle_model::read_grace::READ_GRACE;

use futures::future::join_all;
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::INLINE_BYTES_MAX;

use super::*;
use trestle_objects::faulty::{FaultyObjects, ObjectFault};

use crate::{
    blobs::{BlobState, PutCommand, RequestedRange},
    etag::ETagPattern,
    fixture::{BlobFixture, sample},
    objects::Objects,
    sweep::ORPHAN_GRACE,
};

const SECOND: Duration = Duration::from_secs(1);

fn reason<T: std::fmt::Debug>(result: Result<T, BlobError>) -> Reason {
    Fault::from(result.expect_err("it is rejected")).reason
}

fn content(record: &BlobRecord) -> AppendContent {
    let Content::Append(content) = record.content else { panic!("it is an append blob") };
    content
}

/// An append blob without content.
async fn created(fixture: &BlobFixture) -> BlobKey {
    let key = fixture.key("a").await;
    fixture.create_append(&key, PutCommand::default()).await.expect("created");
    key
}

#[tokio::test]
async fn appends_follow_each_other_as_rows_and_as_objects() {
    let fixture = BlobFixture::new();
    let key = created(&fixture).await;
    assert_eq!(fixture.read(&key).await.expect("read"), "");
    let pieces = [sample(10), sample(INLINE_BYTES_MAX), sample(INLINE_BYTES_MAX + 1), sample(7)];

    let (mut whole, mut etags) = (Vec::new(), Vec::new());
    for piece in &pieces {
        let appended = fixture.append(&key, piece.clone()).await.expect("appended");
        assert_eq!(appended.offset, whole.len() as u64);
        whole.extend_from_slice(piece);
        etags.push(appended.record.etag);
    }

    assert_eq!(fixture.read(&key).await.expect("read"), whole);
    assert_eq!(fixture.objects().await, 1);
    etags.dedup();
    assert_eq!(etags.len(), 4, "each append is a version");
    for (offset, length) in [(0, 1), (9, 2), (5, 40_000), (65_000, 600), (65_552, 1)] {
        let range = RequestedRange { offset, length: Some(length) };
        let read = fixture.read_range(&key, Some(range)).await.expect("read");
        let at = usize::try_from(offset).expect("small");
        let end = whole.len().min(at + usize::try_from(length).expect("small"));
        assert_eq!(read, whole[at..end], "{offset} {length}");
    }
}

#[tokio::test]
async fn concurrent_appends_are_whole_and_in_some_order() {
    let fixture = BlobFixture::new();
    let key = created(&fixture).await;
    let piece = |number: usize| vec![u8::try_from(number).expect("small"); 100 + number];

    let appends = (0..32).map(|number| fixture.append(&key, piece(number)));
    let mut offsets: Vec<(u64, usize)> = Vec::new();
    for (number, appended) in join_all(appends).await.into_iter().enumerate() {
        offsets.push((appended.expect("appended").offset, number));
    }

    offsets.sort_unstable();
    let whole: Vec<u8> = offsets.iter().flat_map(|(_, number)| piece(*number)).collect();
    assert_eq!(fixture.read(&key).await.expect("read"), whole);
    let record = fixture
        .blobs
        .get((&key, BlobState::Current), (&Conditions::default(), None))
        .await
        .expect("got")
        .record;
    assert_eq!(content(&record).blocks, 32);
}

#[tokio::test]
async fn conditions_on_the_length_are_exact() {
    let fixture = BlobFixture::new();
    let key = created(&fixture).await;
    fixture.append(&key, "12345").await.expect("appended");
    let append = async |position, size_max| {
        let command = AppendCommand { position, size_max, ..fixture.appending(&key) };
        fixture.append_with(command, "678".into()).await
    };

    for position in [0, 4, 6] {
        let found = reason(append(Some(position), None).await);
        assert_eq!(found, Reason::AppendPositionConditionNotMet, "{position}");
    }
    for size_max in [0, 7] {
        let found = reason(append(None, Some(size_max)).await);
        assert_eq!(found, Reason::MaxBlobSizeConditionNotMet, "{size_max}");
    }
    assert_eq!(append(Some(5), Some(8)).await.expect("appended").offset, 5);
    assert_eq!(fixture.read(&key).await.expect("read"), "12345678");
}

#[tokio::test]
async fn other_conditions_and_the_kind_are_checked() {
    let fixture = BlobFixture::new();
    let (absent, block) = (fixture.key("absent").await, fixture.key("block").await);
    fixture.put(&block, "text").await;
    let key = created(&fixture).await;
    let other = Conditions {
        if_match: vec![ETagPattern::parse("\"0x1\"").expect("an etag")],
        ..Conditions::default()
    };
    let stale = AppendCommand { conditions: other, ..fixture.appending(&key) };
    let leased = AppendCommand { lease_id: Some(Uuid::nil()), ..fixture.appending(&key) };

    assert_eq!(reason(fixture.append(&absent, "x").await), Reason::BlobNotFound);
    assert_eq!(reason(fixture.append(&block, "x").await), Reason::InvalidBlobType);
    let sealed = fixture.blobs.seal(fixture.appending(&block)).await;
    assert_eq!(reason(sealed), Reason::InvalidBlobType);
    assert_eq!(reason(fixture.append_with(stale, "x".into()).await), Reason::ConditionNotMet);
    let found = reason(fixture.append_with(leased, "x".into()).await);
    assert_eq!(found, Reason::LeaseNotPresentWithBlobOperation);

    let put = fixture.put_with(&key, "text", PutCommand::default()).await;
    assert_eq!(reason(put), Reason::InvalidBlobType);
    assert_eq!(reason(fixture.stage(&key, "A", "x").await), Reason::InvalidBlobType);
    assert_eq!(reason(fixture.commit(&key, &[]).await), Reason::InvalidBlobType);
    assert_eq!(reason(fixture.blobs.blocks(&key, None).await.map(drop)), Reason::InvalidBlobType);
    let create = fixture.create_append(&block, PutCommand::default()).await;
    assert_eq!(reason(create), Reason::InvalidBlobType);
    fixture.stage(&absent, "A", "x").await.expect("staged");
    let create = fixture.create_append(&absent, PutCommand::default()).await;
    assert_eq!(reason(create), Reason::InvalidBlobType, "staged blocks are of a block blob");
    assert_eq!(fixture.read(&key).await.expect("read"), "");
}

#[tokio::test]
async fn a_sealed_blob_keeps_its_etag_and_takes_no_more() {
    let fixture = BlobFixture::new();
    let key = created(&fixture).await;
    let appended = fixture.append(&key, "text").await.expect("appended");
    let at = |position| AppendCommand { position: Some(position), ..fixture.appending(&key) };
    let early = fixture.blobs.seal(at(3)).await;
    assert_eq!(reason(early), Reason::AppendPositionConditionNotMet);

    let sealed = fixture.blobs.seal(at(4)).await.expect("sealed");
    let again = fixture.blobs.seal(at(4)).await.expect("sealed again");

    assert!(content(&sealed).is_sealed);
    assert_eq!([sealed.etag, again.etag], [appended.record.etag; 2]);
    assert_eq!(reason(fixture.append(&key, "more").await), Reason::BlobIsSealed);
    assert_eq!(fixture.read(&key).await.expect("read"), "text");
    let anew = fixture.create_append(&key, PutCommand::default()).await.expect("replaced");
    assert!(!content(&anew).is_sealed);
    fixture.append(&key, "new").await.expect("appended");
    assert_eq!(fixture.read(&key).await.expect("read"), "new");
}

#[test]
fn a_blob_takes_fifty_thousand_blocks() {
    let almost = AppendContent { blocks: 49_999, ..AppendContent::new(1) };
    let full = decide_append(almost, (1, true), None).expect("the last one");

    assert_eq!(full.blocks, 50_000);
    assert_eq!(decide_append(full, (1, true), None), Err(AppendError::TooManyBlocks));
}

#[tokio::test]
async fn many_rows_become_objects_and_read_the_same() {
    let fixture = BlobFixture::new();
    let key = created(&fixture).await;
    let mut whole = Vec::new();
    for number in 0..400_usize {
        // Some are objects, after runs that are long and short.
        let length = if [3, 5, 200].contains(&number) { 50_000 } else { 30_000 + number };
        let piece = sample(length);
        whole.extend_from_slice(&piece);
        fixture.append(&key, piece).await.expect("appended");
    }
    let before = fixture.rows().await;
    let range = RequestedRange { offset: 0, length: None };
    let conditions = Conditions::default();
    let opened = fixture
        .blobs
        .open((key.clone(), BlobState::Current), Some(range), (&conditions, None))
        .await;
    let opened = opened.expect("opened");

    fixture.sweep().await;

    // Three that were large, and two of almost 4 MiB with one between them that a large one ends; the rest stays rows.
    assert_eq!(fixture.objects().await, 6);
    assert!(fixture.rows().await < before - 200, "{} of {before}", fixture.rows().await);
    assert_eq!(fixture.read(&key).await.expect("read"), whole);
    let pieces: Vec<Bytes> =
        futures::TryStreamExt::try_collect(fixture.blobs.clone().bytes(&opened))
            .await
            .expect("read");
    assert_eq!(pieces.concat(), whole, "a read that began before");
    fixture.append(&key, "end").await.expect("appended");
    let tail = RequestedRange { offset: whole.len() as u64 - 2, length: None };
    let read = fixture.read_range(&key, Some(tail)).await.expect("read");
    assert_eq!(read, [&whole[whole.len() - 2..], b"end"].concat());

    fixture.delete(&key).await.expect("deleted");
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;
    fixture.advance(ORPHAN_GRACE);
    fixture.sweep().await;
    assert_eq!((fixture.objects().await, fixture.rows().await), (0, 0));
}

#[tokio::test]
async fn small_rows_are_compacted_within_the_limits_of_a_change() {
    let fixture = BlobFixture::new();
    let key = created(&fixture).await;
    let piece = sample(1024);
    for _ in 0..4100 {
        fixture.append(&key, piece.clone()).await.expect("appended");
    }

    fixture.sweep().await;

    assert_eq!(fixture.objects().await, 1);
    assert_eq!(fixture.read(&key).await.expect("read"), piece.repeat(4100));
}

#[tokio::test]
async fn a_failed_compaction_changes_nothing_and_is_repeated() {
    let store = std::sync::Arc::new(FaultyObjects::default());
    let fixture = BlobFixture::on(Objects::of(std::sync::Arc::clone(&store) as _));
    let key = created(&fixture).await;
    let piece = sample(30_000);
    for _ in 0..150 {
        fixture.append(&key, piece.clone()).await.expect("appended");
    }
    for fault in [ObjectFault::Failed, ObjectFault::Unacknowledged] {
        store.plan([fault]);
        assert!(fixture.sweeper.tick().await.is_err(), "{fault:?}");
        // What was written is deleted, before the next fault is planned.
        tokio::task::yield_now().await;
        assert_eq!(fixture.read(&key).await.expect("read"), piece.repeat(150));
    }

    fixture.sweep().await;
    assert_eq!(fixture.read(&key).await.expect("read"), piece.repeat(150));
    fixture.advance(ORPHAN_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 1);
}

#[tokio::test]
async fn a_changed_or_missing_row_is_data_loss() {
    let fixture = BlobFixture::new();
    let key = created(&fixture).await;
    for piece in ["first", "second", "third"] {
        fixture.append(&key, piece).await.expect("appended");
    }
    let record = fixture
        .blobs
        .get((&key, BlobState::Current), (&Conditions::default(), None))
        .await
        .expect("got")
        .record;
    let place = (content(&record).generation, 11);
    let row = keys::piece(key.container, &key.name, place, PieceForm::Bytes);
    let change = async |value: Option<Bytes>| {
        let row = row.clone();
        let spec = ChangeSpec::new(key.domain());
        let decide = move |_: &trestle_kv::Reads<'_>, _: Version| {
            let mut writes = Writes::new();
            match value.clone() {
                Some(value) => writes.put(row.clone(), value),
                None => writes.delete(row.clone()),
            };
            Ok::<_, BlobError>((writes, ()))
        };
        transact(&*fixture.blobs.engine, spec, decide).await.expect("stored").expect("decided");
    };

    change(Some(Bytes::from_static(b"12345678second"))).await;
    assert_eq!(reason(fixture.read(&key).await), Reason::CorruptRecord);
    change(None).await;
    assert_eq!(reason(fixture.read(&key).await), Reason::CorruptRecord);
    let first = RequestedRange { offset: 0, length: Some(5) };
    assert_eq!(fixture.read_range(&key, Some(first)).await.expect("read"), "first");
}
