use super::*;
use crate::{
    blobs::{BlobChange, BlobKey, BlobState, DeleteScope, PutCommand},
    conditions::Conditions,
    error::BlobError,
    fixture::{BlobFixture, sample},
    record::BlobRecord,
};

const ONLINE: [Tier; 3] = [Tier::Hot, Tier::Cool, Tier::Cold];

async fn set(fixture: &BlobFixture, key: &BlobKey, tier: Tier) -> Result<BlobRecord, BlobError> {
    let required = (Conditions::default(), None);
    let changed = fixture.blobs.change(key.clone(), BlobChange::Tier(tier), required).await;
    changed.map(|changed| changed.record)
}

async fn stored(fixture: &BlobFixture, key: &BlobKey) -> BlobRecord {
    let required = (&Conditions::default(), None);
    fixture.blobs.get((key, BlobState::Current), required).await.expect("it exists").record
}

fn is_archived<T>(outcome: &Result<T, BlobError>) -> bool {
    matches!(outcome, Err(BlobError::Tier(TierError::Archived)))
}

#[test]
fn a_tier_is_of_block_blobs_or_of_page_blobs() {
    for (at, tier) in Tier::ALL.into_iter().enumerate() {
        let (of_block, of_page) =
            if at < 4 { (Ok(()), false) } else { (Err(TierError::OfOtherKind), true) };
        assert_eq!(tier.check_kind(BlobKind::Block), of_block, "{tier:?}");
        assert_eq!(tier.check_kind(BlobKind::Page).is_ok(), of_page, "{tier:?}");
        assert_eq!(tier.check_kind(BlobKind::Append), Err(TierError::NoTiers));
    }
}

#[tokio::test]
async fn a_tier_is_set_without_a_new_etag_and_has_the_time_of_its_change() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let written = fixture.put(&key, "x").await;
    assert_eq!(written.tier, None);

    let mut changed_at = written.created_at;
    for tier in ONLINE {
        fixture.advance(std::time::Duration::from_secs(1));
        let record = set(&fixture, &key, tier).await.expect("set");
        let assigned = record.tier.expect("a tier");
        assert_eq!((assigned.tier, record.etag), (tier, written.etag));
        assert!(assigned.changed_at > changed_at);
        changed_at = assigned.changed_at;

        fixture.advance(std::time::Duration::from_secs(1));
        assert_eq!(set(&fixture, &key, tier).await.expect("set").tier, Some(assigned));
        assert_eq!(stored(&fixture, &key).await, record);
    }
    assert_eq!(fixture.read(&key).await.expect("read"), "x");
    let absent = fixture.key("absent").await;
    assert!(matches!(set(&fixture, &absent, Tier::Hot).await, Err(BlobError::BlobNotFound(_))));
}

#[tokio::test]
async fn a_write_of_content_sets_the_tier_or_keeps_it() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let command = |tier| PutCommand { tier, ..PutCommand::default() };

    let first = fixture.put_with(&key, "1", command(Some(Tier::Cool))).await.expect("put");
    fixture.advance(std::time::Duration::from_secs(1));
    let kept = fixture.put_with(&key, "2", command(None)).await.expect("put");
    assert_eq!((first.tier.map(|it| it.tier), kept.tier), (Some(Tier::Cool), first.tier));
    let other = fixture.put_with(&key, "3", command(Some(Tier::Cold))).await.expect("put");
    assert_eq!(other.tier.map(|it| (it.tier, it.changed_at)), Some((Tier::Cold, other.etag.0)));
    fixture.stage(&key, "A", "4").await.expect("staged");
    assert_eq!(fixture.commit(&key, &["A"]).await.expect("committed").tier, other.tier);

    let premium = fixture.put_with(&key, "5", command(Some(Tier::P4))).await;
    assert!(matches!(premium, Err(BlobError::Tier(TierError::OfOtherKind))));
    assert_eq!(fixture.read(&key).await.expect("read"), "4");
}

#[tokio::test]
async fn an_archived_blob_is_described_deleted_and_restored_only() {
    let fixture = BlobFixture::new();
    for data in [sample(10), sample(100_000)] {
        let key = fixture.key("a").await;
        fixture.put(&key, data.clone()).await;
        let archived = set(&fixture, &key, Tier::Archive).await.expect("archived");

        assert!(is_archived(&fixture.read(&key).await));
        assert!(is_archived(&fixture.put_with(&key, "x", PutCommand::default()).await));
        assert!(is_archived(&fixture.stage(&key, "A", "x").await));
        assert!(is_archived(&fixture.commit(&key, &[]).await));
        assert!(is_archived(&fixture.snapshot(&key).await));
        let copy = fixture.key("copy").await;
        assert!(is_archived(&fixture.copy((&key, BlobState::Current), &copy).await));
        fixture.put(&copy, "x").await;
        assert!(is_archived(&fixture.copy((&copy, BlobState::Current), &key).await));
        let update =
            BlobChange::Update { properties: None, metadata: Some(Vec::new()), versions: false };
        let required = (Conditions::default(), None);
        assert!(is_archived(&fixture.blobs.change(key.clone(), update, required).await));
        assert_eq!(stored(&fixture, &key).await, archived);

        set(&fixture, &key, Tier::Hot).await.expect("restored");
        assert_eq!(fixture.read(&key).await.expect("read"), data);
        set(&fixture, &key, Tier::Archive).await.expect("archived");
        fixture.delete_scope(&key, DeleteScope::Blob).await.expect("deleted");
        fixture.put(&key, "new").await;
        assert_eq!(stored(&fixture, &key).await.tier, None);
    }
}

#[tokio::test]
async fn append_and_page_blobs_have_other_tiers_or_none() {
    let fixture = BlobFixture::new();
    let (log, pages) = (fixture.key("log").await, fixture.key("pages").await);
    fixture.create_append(&log, PutCommand::default()).await.expect("created");
    fixture.create_pages(&pages, 512).await.expect("created");

    for (key, tier, expected) in [
        (&log, Tier::Hot, Err(TierError::NoTiers)),
        (&log, Tier::P4, Err(TierError::NoTiers)),
        (&pages, Tier::Archive, Err(TierError::OfOtherKind)),
        (&pages, Tier::P80, Ok(())),
    ] {
        match (set(&fixture, key, tier).await, expected) {
            (Ok(record), Ok(())) => assert_eq!(record.tier.map(|it| it.tier), Some(tier)),
            (Err(BlobError::Tier(error)), Err(expected)) => assert_eq!(error, expected),
            (outcome, expected) => panic!("{outcome:?} instead of {expected:?}"),
        }
    }
}
