use std::{sync::Arc, time::Duration};
use trestle_model::read_grace::READ_GRACE;

use super::*;
use trestle_objects::faulty::{FaultyObjects, ObjectFault};

use crate::{
    blobs::{BlobChange, BlobState, DeleteScope},
    etag::ETagPattern,
    fixture::{BlobFixture, sample},
    names::BlobName,
    objects::Objects,
    record::BlobCopy,
    sweep::ORPHAN_GRACE,
};

const SECOND: Duration = Duration::from_secs(1);

fn command() -> CopyCommand {
    CopyCommand {
        metadata: None,
        tags: None,
        conditions: Conditions::default(),
        lease_id: None,
        is_sealed: false,
        tier: None,
        properties: None,
        block_bytes_max: None,
        origin: Some(CopyOrigin { id: Uuid::from_u128(5), source: "logs/a".to_owned() }),
        retention: Retention::default(),
    }
}

fn other(key: &BlobKey) -> BlobKey {
    BlobKey { name: BlobName::stored("other".to_owned()), ..key.clone() }
}

async fn open(
    fixture: &BlobFixture,
    source: (&BlobKey, BlobState),
    target: &BlobKey,
    command: CopyCommand,
) -> Result<OpenedCopy, BlobError> {
    let required = (&Conditions::default(), None);
    let source = (source.0.clone(), source.1);
    fixture.blobs.open_copy(source, required, target.clone(), command).await
}

async fn copy(
    fixture: &BlobFixture,
    source: (&BlobKey, BlobState),
    target: &BlobKey,
) -> Result<BlobRecord, BlobError> {
    open(fixture, source, target, command()).await?.run(|_| ()).await?.publish().await
}

async fn wait_for_objects(fixture: &BlobFixture, count: usize) {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
        if fixture.objects().await == count {
            return;
        }
    }
    panic!("objects: {}", fixture.objects().await);
}

#[tokio::test]
async fn a_copy_has_content_properties_and_metadata_of_its_source_and_bytes_of_its_own() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let target = other(&key);
    for length in [0, 10, 100_000, 9_000_000] {
        let data = sample(length);
        let metadata = vec![("k".to_owned(), "v".to_owned())];
        let put = PutCommand { metadata: metadata.clone(), ..PutCommand::default() };
        fixture.put_with(&key, data.clone(), put).await.expect("put");

        let record = copy(&fixture, (&key, BlobState::Current), &target).await.expect("copied");

        assert_eq!(record.metadata, metadata);
        let size = Some(record.content.size());
        let expected = BlobCopy {
            origin: command().origin.expect("a copy"),
            completed_at: record.etag.0,
            size,
        };
        assert_eq!(record.copy, Some(expected));
        fixture.delete(&key).await.expect("deleted");
        fixture.advance(READ_GRACE + SECOND);
        fixture.sweep().await;
        assert_eq!(fixture.read(&target).await.expect("read"), data, "{length}");
    }
    let change =
        BlobChange::Update { properties: None, metadata: Some(Vec::new()), versions: false };
    let changed = fixture.blobs.change(target, change, Default::default()).await.expect("changed");
    assert_eq!(changed.record.copy, None);
}

#[tokio::test]
async fn a_copy_keeps_the_block_list() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.stage(&key, "A", sample(5_000_000)).await.expect("staged");
    fixture.stage(&key, "B", "b").await.expect("staged");
    fixture.commit(&key, &["A", "B", "A"]).await.expect("committed");
    let target = other(&key);
    fixture.put(&target, sample(100_000)).await;
    fixture.stage(&target, "X", "dropped").await.expect("staged");

    copy(&fixture, (&key, BlobState::Current), &target).await.expect("copied");

    let list = async |key| {
        let blocks = fixture.blobs.blocks(key, None).await.expect("read");
        assert!(blocks.staged.is_empty());
        let block = |block: StoredBlock| (block.id, block.part.size);
        blocks.committed.into_iter().map(block).collect::<Vec<_>>()
    };
    assert_eq!(list(&target).await, list(&key).await);
    assert_eq!(fixture.read(&target).await.expect("read"), fixture.read(&key).await.expect("read"));
    fixture.commit(&target, &["B"]).await.expect("its blocks can be committed again");
    fixture.delete(&key).await.expect("deleted");
    fixture.advance(ORPHAN_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.read(&target).await.expect("read"), "b");
    assert_eq!(fixture.objects().await, 1);
}

#[tokio::test]
async fn a_snapshot_is_promoted_and_the_blob_keeps_its_snapshots() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let data = sample(100_000);
    fixture.put(&key, data.clone()).await;
    let at = fixture.snapshot(&key).await.expect("a snapshot");
    fixture.put(&key, "newer").await;

    let record = copy(&fixture, (&key, BlobState::Past(at)), &key).await.expect("copied");

    assert_eq!(record.history.snapshots, 1);
    assert_eq!(fixture.read(&key).await.expect("read"), data);
    fixture.delete_scope(&key, DeleteScope::SnapshotsOnly).await.expect("deleted");
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.read(&key).await.expect("it shares nothing"), data);
    copy(&fixture, (&key, BlobState::Current), &key).await.expect("onto itself");
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.read(&key).await.expect("read"), data);
    assert_eq!(fixture.objects().await, 1);
}

#[tokio::test]
async fn many_blocks_are_reserved_before_one_change_publishes_them() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let count = PARTS_AT_ONCE + 10;
    let ids: Vec<&'static str> =
        (0..count).map(|number| &*Box::leak(format!("{number:04}").into_boxed_str())).collect();
    for id in &ids {
        fixture.stage(&key, id, "x").await.expect("staged");
    }
    fixture.commit(&key, &ids).await.expect("committed");
    let target = other(&key);

    copy(&fixture, (&key, BlobState::Current), &target).await.expect("copied");
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.read(&target).await.expect("read").len(), count);

    // As after a crash between the reservations and the change.
    let opened = open(&fixture, (&key, BlobState::Current), &target, command()).await;
    let mut finished = opened.expect("open").run(|_| ()).await.expect("copied");
    let NewContent::Blocks(blocks) = finished.content else { panic!("it has blocks") };
    let reserved = fixture
        .blobs
        .reserve_parts(&target, blocks, PublishedBy::NEVER_LATE)
        .await
        .expect("reserved");
    assert_eq!(reserved.reserved.len(), 2);
    finished.content = NewContent::Blocks(reserved);
    let FinishedCopy { blobs, target, command, content, written, .. } = finished;
    std::mem::forget(written);
    fixture.advance(Duration::from_secs(31));
    let late = blobs.put(target.clone(), command, content, PublishedBy::NEVER_LATE).await;
    assert!(matches!(late, Err(BlobError::Busy)), "the sweeper may be reclaiming them");
    fixture.delete(&key).await.expect("deleted");
    fixture.delete(&target).await.expect("deleted");
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 0);
}

#[tokio::test]
async fn a_copy_of_pages_ends_once_the_sweeper_may_delete_what_it_copied() {
    let (fixture, part) = (BlobFixture::new(), 2 << 20);
    let key = fixture.key("a").await;
    fixture.create_pages(&key, 4 * part).await.expect("created");
    for number in 0..4 {
        let data = sample(usize::try_from(part).expect("small"));
        fixture.write_pages(&key, number * part, data).await.expect("written");
    }
    let target = other(&key);
    let opened = open(&fixture, (&key, BlobState::Current), &target, command()).await;
    let opened = opened.expect("open");

    let copied = opened.run(|_| fixture.advance(Duration::from_secs(31))).await;

    assert!(matches!(copied.map(drop), Err(BlobError::Busy)));
    let copied = copy(&fixture, (&key, BlobState::Current), &target).await.expect("copied");
    assert_eq!(copied.content.size(), 4 * part);
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.read(&target).await.expect("read"), fixture.read(&key).await.expect("read"));
}

#[tokio::test]
async fn conditions_of_source_and_target_decide_before_anything_is_copied() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let target = other(&key);
    let missing = copy(&fixture, (&key, BlobState::Current), &target).await;
    assert!(matches!(missing, Err(BlobError::BlobNotFound(_))));
    let etag = fixture.put(&key, sample(100_000)).await.etag.quoted();
    let matching = |etag: &str| vec![ETagPattern::parse(etag).expect("an etag")];
    let stale = Conditions { if_match: matching("0x1"), ..Conditions::default() };
    let same = Conditions { if_none_match: matching(&etag), ..Conditions::default() };
    for conditions in [stale, same] {
        let source = (key.clone(), BlobState::Current);
        let required = (&conditions, None);
        let opened = fixture.blobs.open_copy(source, required, target.clone(), command()).await;
        assert!(matches!(opened.map(drop), Err(BlobError::SourceUnmet(_))), "{conditions:?}");
    }
    fixture.put(&target, "kept").await;
    let conditions = Conditions { if_none_match: matching("*"), ..Conditions::default() };
    let exclusive = CopyCommand { conditions, ..command() };
    let opened = open(&fixture, (&key, BlobState::Current), &target, exclusive).await;
    assert!(matches!(opened.map(drop), Err(BlobError::Condition(ConditionError::AlreadyExists))));
    assert_eq!(fixture.read(&target).await.expect("read"), "kept");
    assert_eq!(fixture.objects().await, 1);
}

#[tokio::test]
async fn a_copy_that_ends_early_leaves_nothing() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = BlobFixture::on(Objects::of(Arc::clone(&store) as _));
    let key = fixture.key("a").await;
    let target = other(&key);
    fixture.stage(&key, "A", sample(5_000_000)).await.expect("staged");
    fixture.stage(&key, "B", sample(5_000_000)).await.expect("staged");
    fixture.commit(&key, &["A", "B"]).await.expect("committed");

    let opened = open(&fixture, (&key, BlobState::Current), &target, command()).await;
    let finished = opened.expect("open").run(|_| ()).await.expect("copied");
    assert_eq!(fixture.objects().await, 8);
    drop(finished);
    wait_for_objects(&fixture, 4).await;

    for calls in 0..12 {
        let failure = [vec![ObjectFault::None; calls], vec![ObjectFault::Failed]].concat();
        store.plan(failure);
        let copied = copy(&fixture, (&key, BlobState::Current), &target).await;
        store.plan([]);
        assert!(matches!(copied, Err(BlobError::Objects)), "{calls}");
        wait_for_objects(&fixture, 4).await;
    }
    assert!(fixture.read(&target).await.is_err());
}

#[tokio::test]
async fn a_source_that_is_deleted_too_long_ago_ends_the_copy() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let target = other(&key);
    fixture.put(&key, sample(100_000)).await;
    let opened = open(&fixture, (&key, BlobState::Current), &target, command()).await;
    fixture.delete(&key).await.expect("deleted");
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;

    let copied = opened.expect("open").run(|_| ()).await;

    assert!(matches!(copied.map(drop), Err(BlobError::SourceCondition)));
}

#[tokio::test]
async fn progress_is_reported_up_to_the_size() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.put(&key, sample(3_000_000)).await;
    let opened = open(&fixture, (&key, BlobState::Current), &other(&key), command()).await;
    let opened = opened.expect("open");
    assert_eq!(opened.size(), 3_000_000);

    let mut reported = Vec::new();
    opened.run(|bytes| reported.push(bytes)).await.expect("copied");

    assert!(reported.is_sorted() && reported.len() > 1, "{reported:?}");
    assert_eq!(reported.last(), Some(&3_000_000));
}

#[tokio::test]
async fn an_append_blob_is_copied_over_an_append_blob_only() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let target = other(&key);
    fixture.create_append(&key, PutCommand::default()).await.expect("created");
    fixture.append(&key, sample(100_000)).await.expect("appended");
    fixture.append(&key, "end").await.expect("appended");
    let at = fixture.snapshot(&key).await.expect("a snapshot");
    let data = fixture.read(&key).await.expect("read");

    for _ in 0..2 {
        let copied = copy(&fixture, (&key, BlobState::Current), &target).await.expect("copied");
        let Content::Append(content) = copied.content else { panic!("it is an append blob") };
        assert_eq!((content.size, content.blocks), (100_003, 2));
        fixture.append(&target, "more").await.expect("appended");
        let expected: Bytes = [data.as_ref(), b"more"].concat().into();
        assert_eq!(fixture.read(&target).await.expect("read"), expected);
    }
    fixture.append(&key, "later").await.expect("appended");
    copy(&fixture, (&key, BlobState::Past(at)), &key).await.expect("promoted");
    assert_eq!(fixture.read(&key).await.expect("read"), data);
    fixture.delete(&target).await.expect("deleted");
    fixture.put(&target, "a block blob").await;
    let rejected = copy(&fixture, (&key, BlobState::Current), &target).await;
    assert!(matches!(rejected, Err(BlobError::OtherKind(_))));
}
