use std::time::Duration;

use trestle_kv::Version;
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::{BLOB_BYTES_MAX, STAGED_BLOCKS_MAX};
use trestle_model::name::AccountName;
use trestle_model::time::Ticks;

use super::{stage::decide_stage, *};
use crate::{
    blobs::{BlobChange, BlobState, NewContent, PutCommand},
    conditions::Conditions,
    fixture::{BlobFixture, sample},
    lease::{LeaseAction, LeaseError, ResourceLease},
    record::{BlobRecord, ContentId, Part, Staging},
    upload::SmallContent,
};

fn reason<T: std::fmt::Debug>(result: Result<T, BlobError>) -> Reason {
    Fault::from(result.expect_err("it is rejected")).reason
}

fn ids(blocks: &[StoredBlock]) -> Vec<&str> {
    blocks.iter().map(|block| std::str::from_utf8(&block.id).expect("text")).collect()
}

async fn blocks(fixture: &BlobFixture, key: &BlobKey) -> BlobBlocks {
    fixture.blobs.blocks(key, None).await.expect("there are blocks")
}

#[tokio::test]
async fn staged_blocks_become_content_in_the_order_of_the_list() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.stage(&key, "A", "first ").await.expect("staged");
    fixture.stage(&key, "B", "second ").await.expect("staged");
    assert!(matches!(fixture.read(&key).await, Err(BlobError::BlobNotFound(_))));
    assert_eq!(ids(&blocks(&fixture, &key).await.staged), ["A", "B"]);

    let record = fixture.commit(&key, &["B", "A", "B"]).await.expect("committed");

    assert_eq!(record.content.size(), 20);
    assert_eq!(fixture.read(&key).await.expect("read"), "second first second ");
    let found = blocks(&fixture, &key).await;
    assert_eq!((ids(&found.committed), found.staged), (vec!["B", "A", "B"], Vec::new()));
}

#[tokio::test]
async fn a_commit_keeps_what_it_names_and_drops_the_rest() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    for (id, data) in [("A", "a"), ("B", "b"), ("C", "c")] {
        fixture.stage(&key, id, data).await.expect("staged");
    }
    fixture.commit(&key, &["A", "B"]).await.expect("committed");
    fixture.stage(&key, "A", "newer").await.expect("staged");

    fixture.commit(&key, &["B", "A"]).await.expect("committed");
    assert_eq!(fixture.read(&key).await.expect("read"), "bnewer");
    assert_eq!(reason(fixture.commit(&key, &["C"]).await), Reason::InvalidBlockList);
    assert_eq!(fixture.read(&key).await.expect("unchanged"), "bnewer");

    fixture.advance(trestle_model::read_grace::READ_GRACE + Duration::from_secs(1));
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 2, "of `B` and the newer `A`");
    assert_eq!(fixture.read(&key).await.expect("read"), "bnewer");
}

#[tokio::test]
async fn the_last_block_with_an_id_counts() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.stage(&key, "A", "old").await.expect("staged");
    fixture.stage(&key, "A", "new").await.expect("staged");

    let found = blocks(&fixture, &key).await;
    assert_eq!(found.staging.map(|staging| (staging.count, staging.size)), Some((1, 3)));
    fixture.commit(&key, &["A"]).await.expect("committed");
    assert_eq!(fixture.read(&key).await.expect("read"), "new");
}

#[tokio::test]
async fn ids_of_staged_blocks_have_one_length_until_they_are_committed() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.stage(&key, "A", "x").await.expect("staged");

    assert_eq!(reason(fixture.stage(&key, "AB", "x").await), Reason::InvalidBlobOrBlock);
    fixture.commit(&key, &["A"]).await.expect("committed");
    fixture.stage(&key, "AB", "y").await.expect("the first of new ones");
    fixture.commit(&key, &["A", "AB"]).await.expect("committed");
    assert_eq!(fixture.read(&key).await.expect("read"), "xy");
}

#[tokio::test]
async fn a_put_and_a_delete_drop_staged_blocks() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.stage(&key, "A", "x").await.expect("staged");
    fixture.put(&key, "whole").await;
    assert_eq!(reason(fixture.commit(&key, &["A"]).await), Reason::InvalidBlockList);
    assert_eq!(blocks(&fixture, &key).await.committed, Vec::new(), "a put has no blocks");

    fixture.delete(&key).await.expect("deleted");
    fixture.stage(&key, "A", "x").await.expect("staged");
    fixture.delete(&key).await.expect("staged blocks are enough");
    assert!(matches!(fixture.blobs.blocks(&key, None).await, Err(BlobError::BlobNotFound(_))));
}

#[tokio::test]
async fn an_empty_list_makes_an_empty_blob() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.stage(&key, "A", "x").await.expect("staged");

    let record = fixture.commit(&key, &[]).await.expect("committed");

    assert_eq!(record.content.size(), 0);
    assert_eq!(fixture.read(&key).await.expect("read"), "");
    assert_eq!(blocks(&fixture, &key).await.staging, None);
}

#[tokio::test]
async fn concurrent_stages_of_a_new_blob_are_all_kept() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    const IDS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

    let staged = IDS.map(|id| fixture.stage(&key, id, id));
    for result in futures::future::join_all(staged).await {
        result.expect("staged");
    }

    assert_eq!(ids(&blocks(&fixture, &key).await.staged), IDS);
    fixture.commit(&key, &IDS).await.expect("committed");
    assert_eq!(fixture.read(&key).await.expect("read"), "01234567");
}

#[tokio::test]
async fn blocks_of_several_extents_come_back_and_a_list_replaces_a_put() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.put(&key, sample(100_000)).await;
    let (first, second) = (sample(5_000_000), sample(4_500_000));
    fixture.stage(&key, "A", first.clone()).await.expect("staged");
    fixture.stage(&key, "B", second.clone()).await.expect("staged");
    fixture.commit(&key, &["A", "B"]).await.expect("committed");

    let whole: Bytes = [first, second].concat().into();
    assert_eq!(fixture.read(&key).await.expect("read"), whole);
    fixture.advance(trestle_model::read_grace::READ_GRACE + Duration::from_secs(1));
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 4, "two of each block, none of the put");
}

#[tokio::test]
async fn a_stage_needs_the_lease_of_the_blob() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let block = NewBlock { blob: key.clone(), id: "A".into(), lease_id: Some(Uuid::nil()) };

    let absent = fixture.blobs.check_stage(&block).await;
    assert!(matches!(absent, Err(BlobError::BlobLease(LeaseError::NotPresent))));
    fixture.put_with(&key, "x", PutCommand::default()).await.expect("put");
    let available = fixture.blobs.check_stage(&block).await;
    assert!(matches!(available, Err(BlobError::BlobLease(LeaseError::NotPresent))));
}

/// The lease of a blob after a block was staged with this id, with the error where it was not.
async fn stage_with(
    fixture: &BlobFixture,
    key: &BlobKey,
    lease_id: Option<u128>,
) -> (ResourceLease, Option<LeaseError>) {
    let lease_id = lease_id.map(Uuid::from_u128);
    let block = NewBlock { blob: key.clone(), id: "A".into(), lease_id };
    let checked = fixture.blobs.check_stage(&block).await.err();
    let uploaded = fixture.upload("a".into(), SmallContent::Object).await.expect("uploaded");
    let NewContent::Whole(part) = uploaded.content else { panic!("blocks are objects") };
    let staged = uploaded.written.publish(|due| fixture.blobs.stage(block, part, due)).await.err();
    let lease_error = |error: BlobError| match error {
        BlobError::BlobLease(error) => error,
        error => panic!("{error}"),
    };
    let (checked, staged) = (checked.map(lease_error), staged.map(lease_error));
    assert_eq!(checked, staged, "what is rejected is rejected before its data is sent");
    let required = (&Conditions::default(), None);
    let found = fixture.blobs.get((key, BlobState::Current), required).await.expect("found");
    (found.record.lease, staged)
}

#[tokio::test]
async fn a_stage_is_a_write_by_the_table_of_leases_in_every_state() {
    const OWN: u128 = 1;
    let acquire = LeaseAction::Acquire {
        duration: Some(Duration::from_secs(15)),
        proposed: Some(Uuid::from_u128(OWN)),
        generated: Uuid::nil(),
    };
    let broken = LeaseAction::Break(Some(Duration::ZERO));
    let breaking = LeaseAction::Break(None);
    let (mismatch, missing) = (Some(LeaseError::Mismatch), Some(LeaseError::IdMissing));
    let lost = Some(LeaseError::Lost);
    for (state, then, wait, with_own, without) in [
        ("leased", None, 0, None, missing),
        ("breaking", Some(breaking), 0, None, missing),
        ("broken", Some(broken), 1, lost, None),
        ("expired", None, 16, lost, None),
    ] {
        let fixture = BlobFixture::new();
        let key = fixture.key("a").await;
        let before = fixture.put(&key, "x").await;
        for action in [Some(acquire), then].into_iter().flatten() {
            let required = (Conditions::default(), None);
            let change = BlobChange::Lease(action);
            fixture.blobs.change(key.clone(), change, required).await.expect(state);
        }
        fixture.advance(Duration::from_secs(wait));
        let (lease, error) = stage_with(&fixture, &key, Some(2)).await;
        assert_eq!(error, mismatch, "{state}");
        assert_eq!(stage_with(&fixture, &key, Some(OWN)).await, (lease, with_own), "{state}");
        let after = if without.is_none() { ResourceLease::Absent } else { lease };
        assert_eq!(stage_with(&fixture, &key, None).await, (after, without), "{state}");
        let required = (&Conditions::default(), None);
        let found = fixture.blobs.get((&key, BlobState::Current), required).await.expect("found");
        let expected = BlobRecord { lease: after, ..before };
        assert_eq!(found.record, expected, "{state}: the etag is the same");
    }
}

#[tokio::test]
async fn a_commit_is_prepared_again_where_blocks_were_staged_or_committed_meanwhile() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.stage(&key, "A", "a").await.expect("staged");
    let choices = [BlockChoice { id: "A".into(), source: BlockSource::Latest }];
    let prepare = async || {
        let blocks = fixture.blobs.read_blocks(&key).await.expect("read");
        let resolved = resolve::resolve(&choices, &blocks.committed, &blocks.staged);
        (blocks, resolved.expect("resolved"))
    };
    let command = PutCommand::default();

    let (blocks, resolved) = prepare().await;
    fixture.stage(&key, "B", "b").await.expect("staged meanwhile");
    let staged = fixture.blobs.try_commit(&key, &command, blocks, resolved).await;
    assert_eq!(staged.expect("decided"), None);

    let (blocks, resolved) = prepare().await;
    fixture.commit(&key, &["B"]).await.expect("committed meanwhile");
    let committed = fixture.blobs.try_commit(&key, &command, blocks, resolved).await;
    assert_eq!(committed.expect("decided"), None);
    assert_eq!(fixture.read(&key).await.expect("read"), "b");
}

#[test]
fn staged_blocks_have_bounds_in_number_and_bytes() {
    let staging = |count, size| {
        let at = Ticks::new(7).expect("ticks");
        Some(Staging { generation: 7, changed_at: at, id_bytes: 1, count, size })
    };
    let id = Bytes::from_static(b"A");
    let stage = |staging, replaced, size| {
        let staged =
            decide_stage(staging, replaced, &id, size, Version::new(Ticks::new(9).expect("ticks")));
        staged.map(|it| (it.count, it.size)).map_err(|error| Fault::from(error).reason)
    };
    let (full, past) = (STAGED_BLOCKS_MAX, Err(Reason::BlockCountExceedsLimit));
    let same = Some(Part { content: ContentId(1), mark: 0, size: 5 });

    assert_eq!(stage(staging(full - 1, 5), None, 1), Ok((full, 6)));
    assert_eq!(stage(staging(full, 5), None, 1), past);
    assert_eq!(stage(staging(full, 5), same, 1), Ok((full, 1)));
    assert_eq!(stage(staging(1, BLOB_BYTES_MAX - 1), None, 1), Ok((2, BLOB_BYTES_MAX)));
    assert_eq!(stage(staging(1, BLOB_BYTES_MAX), None, 1), past);
}

#[tokio::test]
async fn reads_and_changes_of_lists_hold_memory_of_their_account_until_they_end() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.stage(&key, "A", "a").await.expect("staged");
    fixture.commit(&key, &["A"; 1000]).await.expect("committed");
    fixture.stage(&key, "B", "b").await.expect("staged");
    let all = fixture.blobs.reads.free();
    let reads = fixture.blobs.reads.of(&AccountName::development());
    let blobs = Blobs { reads, ..fixture.blobs.clone() };

    let blocks = blobs.blocks(&key, None).await.expect("read");
    let held = all.0 - fixture.blobs.reads.free().0;
    assert!((1001 * BLOCK_BYTES..200_000).contains(&held), "{held}");
    drop(blocks);
    assert_eq!(fixture.blobs.reads.free(), all);

    // The account has its share already.
    let mut held = blobs.reads.list(1).expect("it fits");
    for bytes in [1 << 20, 1 << 10, 1] {
        while held.resize(held.amount() + bytes).is_ok() {}
    }
    let choice = BlockChoice { id: "A".into(), source: BlockSource::Latest };
    let command = PutCommand::default();
    assert_eq!(reason(blobs.blocks(&key, None).await.map(drop)), Reason::ServerBusy);
    let committed = blobs.commit_blocks(key.clone(), &[choice], command).await;
    assert_eq!(reason(committed), Reason::ServerBusy);
    drop(held);
    assert_eq!(blobs.blocks(&key, None).await.expect("read").committed.len(), 1000);
}
