//! Every write without the id of an expired lease ends it: its holder cannot renew it.

use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::{
    blobs::{BlobChange, BlobKey, BlobState},
    conditions::Conditions,
    error::BlobError,
    fixture::BlobFixture,
    pages::{PageUpdate, SequenceUpdate},
    record::BlobKind,
};

const OWN: Uuid = Uuid::from_u128(1);

async fn lease(fixture: &BlobFixture, key: &BlobKey, action: LeaseAction) -> Result<(), BlobError> {
    let required = (Conditions::default(), None);
    fixture.blobs.change(key.clone(), BlobChange::Lease(action), required).await.map(drop)
}

/// A blob with an expired lease.
async fn expired(fixture: &BlobFixture, kind: BlobKind) -> BlobKey {
    let key = fixture.key("a").await;
    match kind {
        BlobKind::Block => drop(fixture.put(&key, "x").await),
        BlobKind::Append => {
            drop(fixture.create_append(&key, Default::default()).await.expect("created"));
        }
        BlobKind::Page => drop(fixture.create_pages(&key, 1024).await.expect("created")),
    }
    let (duration, proposed) = (Some(Duration::from_secs(15)), Some(OWN));
    let acquire = LeaseAction::Acquire { duration, proposed, generated: OWN };
    lease(fixture, &key, acquire).await.expect("acquired");
    fixture.advance(Duration::from_secs(16));
    key
}

#[derive(Debug, Clone, Copy)]
enum BlobWrite {
    Put,
    Metadata,
    Append,
    Seal,
    WritePages,
    ClearPages,
    UpdatePages,
}

impl BlobWrite {
    fn kind(self) -> BlobKind {
        match self {
            Self::Put | Self::Metadata => BlobKind::Block,
            Self::Append | Self::Seal => BlobKind::Append,
            Self::WritePages | Self::ClearPages | Self::UpdatePages => BlobKind::Page,
        }
    }

    async fn run(self, fixture: &BlobFixture, key: &BlobKey) -> Result<(), BlobError> {
        match self {
            Self::Put => fixture.put_with(key, "y", Default::default()).await.map(drop),
            Self::Metadata => fixture.set_metadata(key, "b").await.map(drop),
            Self::Append => fixture.append(key, "line").await.map(drop),
            Self::Seal => fixture.blobs.seal(fixture.appending(key)).await.map(drop),
            Self::WritePages => fixture.write_pages(key, 0, vec![1; 512]).await.map(drop),
            Self::ClearPages => fixture.clear_pages(key, 0..512).await.map(drop),
            Self::UpdatePages => {
                let sequence = Some(SequenceUpdate::Increment);
                let update = PageUpdate { size: Some(512), sequence };
                fixture.blobs.update_pages(fixture.paging(key), update).await.map(drop)
            }
        }
    }
}

#[tokio::test]
async fn a_write_without_the_id_ends_an_expired_lease() {
    for write in [
        BlobWrite::Put,
        BlobWrite::Metadata,
        BlobWrite::Append,
        BlobWrite::Seal,
        BlobWrite::WritePages,
        BlobWrite::ClearPages,
        BlobWrite::UpdatePages,
    ] {
        let fixture = BlobFixture::new();
        let key = expired(&fixture, write.kind()).await;
        write.run(&fixture, &key).await.expect("nothing protects it");

        let required = (&Conditions::default(), None);
        let found = fixture.blobs.get((&key, BlobState::Current), required).await.expect("found");
        assert_eq!(found.record.lease, ResourceLease::Absent, "{write:?}");
        let renewed = lease(&fixture, &key, LeaseAction::Renew(OWN)).await;
        let is_other = matches!(renewed, Err(BlobError::BlobLease(LeaseError::ActionMismatch)));
        assert!(is_other, "{write:?}: {renewed:?}");
    }
}

#[tokio::test]
async fn sealing_again_ends_an_expired_lease_too() {
    let fixture = BlobFixture::new();
    let key = expired(&fixture, BlobKind::Append).await;
    let sealed = fixture.blobs.seal(fixture.appending(&key)).await.expect("sealed");
    let (duration, proposed) = (Some(Duration::from_secs(15)), Some(OWN));
    let acquire = LeaseAction::Acquire { duration, proposed, generated: OWN };
    lease(&fixture, &key, acquire).await.expect("acquired");
    fixture.advance(Duration::from_secs(16));

    let again = fixture.blobs.seal(fixture.appending(&key)).await.expect("sealed");

    assert_eq!(again, sealed);
    let renewed = lease(&fixture, &key, LeaseAction::Renew(OWN)).await;
    assert!(matches!(renewed, Err(BlobError::BlobLease(LeaseError::ActionMismatch))));
}
