use proptest::prelude::*;
use trestle_model::fault::{Fault, Reason};
use trestle_model::read_grace::READ_GRACE;

use super::*;
use crate::{
    blobs::{BlobState, DeleteScope, PutCommand, RequestedRange},
    etag::ETagPattern,
    fixture::{BlobFixture, sample},
    sweep::ORPHAN_GRACE,
};

fn reason<T: std::fmt::Debug>(result: Result<T, BlobError>) -> Reason {
    Fault::from(result.expect_err("it is rejected")).reason
}

fn content(record: &BlobRecord) -> PageContent {
    let Content::Pages(content) = record.content else { panic!("it is a page blob") };
    content
}

/// A page blob of this length without data.
async fn created(fixture: &BlobFixture, size: u64) -> BlobKey {
    let key = fixture.key("a").await;
    fixture.create_pages(&key, size).await.expect("created");
    key
}

/// Ranges of pages that have data: first and end.
async fn ranges(fixture: &BlobFixture, key: &BlobKey, ranges_max: usize) -> Vec<(u64, u64)> {
    let required = (&Conditions::default(), None);
    let (_, mut chunks, bytes) =
        fixture.blobs.open_pages((key, BlobState::Current), None, required).await.expect("opened");
    let (mut found, mut first) = (Vec::new(), bytes.start);
    loop {
        let bytes = (first, bytes.end);
        let request = PageRangesRequest { since: None, bytes, ranges_max };
        let list = fixture.blobs.page_ranges(&mut chunks, request).await.expect("listed");
        assert!(list.ranges.len() <= ranges_max && list.ranges.iter().all(|it| !it.is_cleared));
        found.extend(list.ranges.into_iter().map(|range| (range.bytes.start, range.bytes.end)));
        match list.next {
            Some(next) => first = next,
            None => return found,
        }
    }
}

#[tokio::test]
async fn pages_are_written_cleared_and_listed() {
    let fixture = BlobFixture::new();
    let key = created(&fixture, 1 << 20).await;
    assert_eq!(fixture.read(&key).await.expect("read"), vec![0; 1 << 20]);
    assert_eq!(ranges(&fixture, &key, 10).await, []);
    let mut expected = vec![0; 1 << 20];

    for (offset, length) in [(0, 512), (65_024, 1024), (131_072, 65_536), (200_192, 200_192)] {
        let data = sample(length);
        let at = usize::try_from(offset).expect("small");
        expected[at..at + length].copy_from_slice(&data);
        fixture.write_pages(&key, offset, data).await.expect("written");
    }
    assert_eq!(fixture.read(&key).await.expect("read"), expected);
    let found = [(0, 512), (65_024, 66_048), (131_072, 196_608), (200_192, 400_384)];
    for ranges_max in [1, 3, 10] {
        assert_eq!(ranges(&fixture, &key, ranges_max).await, found);
    }

    let cleared = fixture.clear_pages(&key, 512..262_144).await.expect("cleared");
    expected[512..262_144].fill(0);
    assert_eq!(fixture.read(&key).await.expect("read"), expected);
    assert_eq!(ranges(&fixture, &key, 10).await, [(0, 512), (262_144, 400_384)]);
    for (offset, length) in [(0, 1), (100, 1000), (262_143, 3), (400_000, 1000)] {
        let range = RequestedRange { offset, length: Some(length) };
        let read = fixture.read_range(&key, Some(range)).await.expect("read");
        let at = |offset| usize::try_from(offset).expect("small");
        assert_eq!(read, expected[at(offset)..at(offset + length)], "{offset}");
    }
    let again = fixture.clear_pages(&key, 512..262_144).await.expect("cleared again");
    assert_ne!(cleared.etag, again.etag, "each change is a version");
}

#[tokio::test]
async fn a_shorter_blob_has_lost_its_pages_when_it_grows() {
    let fixture = BlobFixture::new();
    let key = created(&fixture, 262_144).await;
    fixture.write_pages(&key, 0, sample(262_144)).await.expect("written");
    let resize = async |size| {
        let update = PageUpdate { size: Some(size), sequence: None };
        fixture.blobs.update_pages(fixture.paging(&key), update).await.expect("resized")
    };

    assert_eq!(content(&resize(1024).await).size, 1024);
    assert_eq!(fixture.read(&key).await.expect("read"), sample(262_144)[..1024]);
    resize(131_072).await;

    let expected = [&sample(262_144)[..1024], &vec![0; 131_072 - 1024]].concat();
    assert_eq!(fixture.read(&key).await.expect("read"), expected);
    assert_eq!(ranges(&fixture, &key, 10).await, [(0, 1024)]);
    let past = fixture.write_pages(&key, 131_072, sample(512)).await;
    assert_eq!(reason(past), Reason::InvalidPageRange);
    let past = fixture.clear_pages(&key, 0..131_584).await;
    assert_eq!(reason(past), Reason::InvalidPageRange);
}

#[tokio::test]
async fn the_largest_blob_costs_as_much_as_its_data() {
    let fixture = BlobFixture::new();
    let size = trestle_model::limits::PAGE_BLOB_BYTES_MAX;
    let key = created(&fixture, size).await;
    fixture.write_pages(&key, size - 512, sample(512)).await.expect("written");
    fixture.write_pages(&key, 1 << 40, sample(512)).await.expect("written");

    assert_eq!(ranges(&fixture, &key, 10).await, [(1 << 40, (1 << 40) + 512), (size - 512, size)]);
    let tail = RequestedRange { offset: size - 1024, length: None };
    let read = fixture.read_range(&key, Some(tail)).await.expect("read");
    assert_eq!(read, [vec![0; 512], sample(512).to_vec()].concat());
    fixture.clear_pages(&key, 0..size).await.expect("cleared");
    assert_eq!(ranges(&fixture, &key, 10).await, []);
}

#[tokio::test]
async fn more_chunks_than_a_change_may_write_are_cleared_in_several() {
    let fixture = BlobFixture::new();
    let key = created(&fixture, 1 << 30).await;
    for chunk in 0..5000 {
        fixture.write_pages(&key, chunk * 65_536, sample(512)).await.expect("written");
    }
    let etag = fixture
        .blobs
        .get((&key, BlobState::Current), (&Conditions::default(), None))
        .await
        .expect("got")
        .record
        .etag;
    let if_match = vec![ETagPattern::parse(&etag.quoted()).expect("an etag")];
    let conditions = Conditions { if_match, ..Conditions::default() };
    let command = PageCommand { conditions, ..fixture.paging(&key) };

    fixture.blobs.clear_pages(command, 0..1 << 30).await.expect("cleared");

    assert_eq!(ranges(&fixture, &key, 10).await, []);
}

#[tokio::test]
async fn sequence_numbers_are_compared_and_changed() {
    let fixture = BlobFixture::new();
    let key = created(&fixture, 512).await;
    let update = async |update| {
        let update = PageUpdate { size: None, sequence: Some(update) };
        fixture.blobs.update_pages(fixture.paging(&key), update).await
    };
    for (change, expected) in [
        (SequenceUpdate::Set(5), 5),
        (SequenceUpdate::Raise(3), 5),
        (SequenceUpdate::Raise(7), 7),
        (SequenceUpdate::Increment, 8),
    ] {
        let changed = update(change).await.expect("changed");
        assert_eq!(content(&changed).sequence_number, expected, "{change:?}");
    }
    let write = async |sequence| {
        let command = PageCommand { sequence, ..fixture.paging(&key) };
        fixture.blobs.write_pages(command, 0, sample(512)).await
    };
    let none = SequenceConditions::default();
    for (conditions, is_met) in [
        (SequenceConditions { at_most: Some(8), ..none }, true),
        (SequenceConditions { at_most: Some(7), ..none }, false),
        (SequenceConditions { less_than: Some(9), ..none }, true),
        (SequenceConditions { less_than: Some(8), ..none }, false),
        (SequenceConditions { equal: Some(8), ..none }, true),
        (SequenceConditions { equal: Some(9), ..none }, false),
        (SequenceConditions { equal: Some(8), less_than: Some(8), ..none }, false),
    ] {
        let written = write(conditions).await;
        assert_eq!(written.is_ok(), is_met, "{conditions:?}");
        if !is_met {
            assert_eq!(reason(written), Reason::SequenceNumberConditionNotMet);
        }
    }
    update(SequenceUpdate::Set(i64::MAX as u64)).await.expect("changed");
    let over = update(SequenceUpdate::Increment).await;
    assert_eq!(reason(over), Reason::SequenceNumberIncrementTooLarge);
}

#[tokio::test]
async fn the_kind_is_checked_and_nothing_is_left() {
    let fixture = BlobFixture::new();
    let key = created(&fixture, 65_536).await;
    let block = fixture.key("block").await;
    fixture.put(&block, "text").await;
    fixture.write_pages(&key, 0, sample(65_536)).await.expect("written");

    assert_eq!(reason(fixture.write_pages(&block, 0, sample(512)).await), Reason::InvalidBlobType);
    assert_eq!(reason(fixture.clear_pages(&block, 0..512).await), Reason::InvalidBlobType);
    assert_eq!(reason(fixture.append(&key, "x").await), Reason::InvalidBlobType);
    let put = fixture.put_with(&key, "x", PutCommand::default()).await;
    assert_eq!(reason(put), Reason::InvalidBlobType);

    fixture.create_pages(&key, 1024).await.expect("replaced");
    assert_eq!(fixture.read(&key).await.expect("read"), vec![0; 1024]);
    for key in [&key, &block] {
        fixture.delete(key).await.expect("deleted");
    }
    fixture.advance(READ_GRACE + std::time::Duration::from_secs(1));
    fixture.sweep().await;
    fixture.advance(ORPHAN_GRACE);
    fixture.sweep().await;
    assert_eq!((fixture.objects().await, fixture.rows().await), (0, 0));
}

/// Ranges that were changed since a snapshot: first, end, and whether they were cleared.
async fn changes(
    fixture: &BlobFixture,
    (key, state): (&BlobKey, BlobState),
    since: Ticks,
) -> Result<Vec<(u64, u64, bool)>, BlobError> {
    let required = (&Conditions::default(), None);
    let (_, mut chunks, bytes) = fixture.blobs.open_pages((key, state), None, required).await?;
    fixture.blobs.check_previous(key, chunks.view(), since).await?;
    let (since, bytes) = (Some(since), (bytes.start, bytes.end));
    let request = PageRangesRequest { since, bytes, ranges_max: 100 };
    let list = fixture.blobs.page_ranges(&mut chunks, request).await?;
    let range = |range: PageRange| (range.bytes.start, range.bytes.end, range.is_cleared);
    Ok(list.ranges.into_iter().map(range).collect())
}

#[tokio::test]
async fn snapshots_keep_their_pages_and_changes_are_listed() {
    let fixture = BlobFixture::new();
    let key = created(&fixture, 262_144).await;
    let read = async |at| fixture.read_snapshot(&key, at).await.expect("read");
    fixture.write_pages(&key, 0, vec![1; 131_072]).await.expect("written");
    let first = fixture.snapshot(&key).await.expect("snapshot");
    let before = fixture.read(&key).await.expect("read");

    fixture.write_pages(&key, 512, vec![2; 512]).await.expect("written");
    fixture.clear_pages(&key, 65_536..131_072).await.expect("cleared");
    fixture.write_pages(&key, 200_192, vec![3; 512]).await.expect("written");
    let second = fixture.snapshot(&key).await.expect("snapshot");
    let between = fixture.read(&key).await.expect("read");
    fixture.write_pages(&key, 0, vec![4; 512]).await.expect("written");

    assert_eq!(read(first).await, before);
    assert_eq!(read(second).await, between);
    let after = fixture.read(&key).await.expect("read");
    assert_eq!(after[..512], [4; 512]);
    let since_first = [(512, 1024, false), (65_536, 131_072, true), (200_192, 200_704, false)];
    let at_second = (&key, BlobState::Past(second));
    assert_eq!(changes(&fixture, at_second, first).await.expect("listed"), since_first);
    let now = (&key, BlobState::Current);
    assert_eq!(changes(&fixture, now, second).await.expect("listed"), [(0, 512, false)]);
    let at_first = (&key, BlobState::Past(first));
    let newer = changes(&fixture, at_first, second).await;
    assert_eq!(reason(newer), Reason::PreviousSnapshotCannotBeNewer);
    let absent = changes(&fixture, now, Ticks::new(first.get() + 1).expect("in range")).await;
    assert_eq!(reason(absent), Reason::PreviousSnapshotNotFound);

    // The chunks of a deleted snapshot go, and no others.
    let rows = fixture.rows().await;
    fixture.delete_scope(&key, DeleteScope::Snapshot(first)).await.expect("deleted");
    fixture.advance(READ_GRACE + std::time::Duration::from_secs(1));
    fixture.sweep().await;
    assert_eq!(fixture.rows().await, rows - 3, "the snapshot, and its two chunks");
    assert_eq!(read(second).await, between);
    assert_eq!(fixture.read(&key).await.expect("read"), after);
    fixture.create_pages(&key, 512).await.expect("replaced");
    assert_eq!(reason(changes(&fixture, now, second).await), Reason::BlobOverwritten);
    assert_eq!(read(second).await, between);
}

#[test]
fn an_epoch_is_unread_without_a_snapshot_between_it_and_the_next() {
    let cases: [(&[u64], &[u64], &[u64]); 6] = [
        (&[], &[], &[]),
        (&[0], &[], &[]),
        (&[0, 5], &[5], &[]),
        (&[0, 5], &[], &[0]),
        (&[0, 5, 9], &[9], &[0]),
        (&[0, 5, 9], &[5], &[5]),
    ];
    for (epochs, snapshots, unread) in cases {
        assert_eq!(unread_epochs(epochs, snapshots), unread, "{epochs:?} {snapshots:?}");
    }
}

/// A step on a blob of four chunks: pages from a page on, and what to do with them.
type Step = (u8, u64, u64);

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]
    #[test]
    fn any_changes_read_as_a_plain_array(
        steps in prop::collection::vec((0_u8..5, 0_u64..512, 1_u64..200), 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let fixture = BlobFixture::new();
            let key = created(&fixture, 512 * 512).await;
            let mut pages: Vec<Option<u8>> = vec![None; 512];
            for (number, (kind, first, count)) in steps.into_iter().enumerate() {
                let fill = u8::try_from(number + 1).expect("few");
                apply(&fixture, &key, &mut pages, (kind, first, count), fill).await;
                let expected: Vec<u8> =
                    pages.iter().flat_map(|page| vec![page.unwrap_or(0); 512]).collect();
                assert_eq!(fixture.read(&key).await.expect("read"), expected);
                let listed: Vec<_> = ranges(&fixture, &key, 3).await;
                let mut found = vec![false; pages.len()];
                for (first, end) in listed {
                    let at = |offset: u64| usize::try_from(offset / 512).expect("small");
                    found[at(first)..at(end)].fill(true);
                }
                let data: Vec<bool> = pages.iter().map(Option::is_some).collect();
                assert_eq!(found, data);
            }
        });
    }
}

/// Applies a step to the blob and to the model.
async fn apply(
    fixture: &BlobFixture,
    key: &BlobKey,
    pages: &mut Vec<Option<u8>>,
    (kind, first, count): Step,
    fill: u8,
) {
    let size = pages.len() as u64;
    let (first, end) = (first.min(size), (first + count).min(size));
    let at = |page: u64| usize::try_from(page).expect("small");
    match kind {
        0 => {
            let update = PageUpdate { size: Some(count * 512), sequence: None };
            fixture.blobs.update_pages(fixture.paging(key), update).await.expect("resized");
            pages.resize(at(count), None);
        }
        _ if first == end => {}
        1 => {
            fixture.clear_pages(key, first * 512..end * 512).await.expect("cleared");
            pages[at(first)..at(end)].fill(None);
        }
        _ => {
            let data = vec![fill; at(end - first) * 512];
            fixture.write_pages(key, first * 512, data).await.expect("written");
            pages[at(first)..at(end)].fill(Some(fill));
        }
    }
}

#[tokio::test]
async fn a_snapshot_keeps_its_pages_and_a_copy_has_its_own() {
    let fixture = BlobFixture::new();
    let before = fixture.rows().await;
    let key = created(&fixture, 1 << 20).await;
    fixture.write_pages(&key, 0, sample(200_704)).await.expect("written");
    let first = fixture.read(&key).await.expect("read");
    let at = fixture.snapshot(&key).await.expect("a snapshot");
    fixture.write_pages(&key, 512, sample(1024)).await.expect("written");
    fixture.clear_pages(&key, 65_536..196_608).await.expect("cleared");
    let second = fixture.read(&key).await.expect("read");
    assert_ne!(first, second);
    assert_eq!(fixture.read_snapshot(&key, at).await.expect("read"), first);

    let target = BlobKey { name: crate::names::BlobName::stored("copy".to_owned()), ..key.clone() };
    fixture.copy((&key, BlobState::Past(at)), &target).await.expect("copied");
    assert_eq!(fixture.read(&target).await.expect("read"), first);
    fixture.copy((&key, BlobState::Current), &target).await.expect("copied");
    assert_eq!(fixture.read(&target).await.expect("read"), second);
    fixture.copy((&key, BlobState::Past(at)), &key).await.expect("promoted");
    assert_eq!(fixture.read(&key).await.expect("read"), first);
    fixture.delete_scope(&key, DeleteScope::WithSnapshots).await.expect("deleted");
    fixture.advance(READ_GRACE + std::time::Duration::from_secs(1));
    fixture.sweep().await;
    assert_eq!(fixture.read(&target).await.expect("read"), second);
    fixture.delete(&target).await.expect("deleted");
    fixture.advance(ORPHAN_GRACE);
    fixture.sweep().await;
    assert_eq!(fixture.rows().await, before);
}

#[tokio::test]
async fn copied_pages_that_are_not_published_are_deleted() {
    let fixture = BlobFixture::new();
    let before = fixture.rows().await;
    let key = created(&fixture, 1 << 20).await;
    fixture.write_pages(&key, 0, sample(512)).await.expect("written");
    let target = BlobKey { name: crate::names::BlobName::stored("copy".to_owned()), ..key.clone() };
    let open = async || {
        let command = crate::blobs::CopyCommand {
            metadata: None,
            tags: None,
            conditions: Conditions::default(),
            lease_id: None,
            is_sealed: false,
            tier: None,
            properties: None,
            block_bytes_max: None,
            origin: Some(crate::record::CopyOrigin { id: Uuid::nil(), source: String::new() }),
            retention: Default::default(),
        };
        let (source, required) = ((key.clone(), BlobState::Current), &Conditions::default());
        let opened = fixture.blobs.open_copy(source, (required, None), target.clone(), command);
        opened.await.expect("open")
    };

    let opened = open().await;
    fixture.write_pages(&key, 512, sample(512)).await.expect("written");
    drop(opened.run(|_| ()).await.expect("copied as it was"));
    drop(open().await.run(|_| ()).await.expect("copied"));
    let late = open().await.run(|_| ()).await.expect("copied");
    fixture.advance(std::time::Duration::from_secs(31));
    let late = late.publish().await;
    assert!(matches!(late, Err(BlobError::Busy)), "the sweeper may be reclaiming them");
    assert!(fixture.read(&target).await.is_err());
    fixture.delete(&key).await.expect("deleted");
    fixture.advance(ORPHAN_GRACE);
    fixture.sweep().await;
    assert_eq!(fixture.rows().await, before);
}
