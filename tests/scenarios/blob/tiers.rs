//! Access tiers of blobs.

use tonic::Code;
use trestle_proto::blob::v1::{self as proto, AccessTier, Blob, BlobType};
use trestle_tests::{CallError, Container, World, blob_scenario};

blob_scenario!(
    a_tier_is_set_with_the_content_or_after_it,
    an_archived_blob_is_only_described_listed_deleted_and_restored,
    an_archived_blob_is_copied_to_another_tier,
    a_page_blob_is_created_with_a_tier,
    a_tier_that_is_not_of_the_type_of_the_blob_is_rejected,
);

const ARCHIVED: (Code, &str) = (Code::FailedPrecondition, "BLOB_ARCHIVED");
const INVALID: (Code, &str) = (Code::InvalidArgument, "INVALID_BLOB_TIER");

fn setting(container: &Container, blob: &str, tier: AccessTier) -> proto::SetBlobTierRequest {
    proto::SetBlobTierRequest {
        container: container.name(),
        blob: blob.to_owned(),
        access_tier: tier.into(),
        ..Default::default()
    }
}

async fn set(container: &Container, blob: &str, tier: AccessTier) -> Result<Blob, CallError> {
    let response = container.client().set_blob_tier(setting(container, blob, tier)).await?;
    Ok(response.into_inner().blob.expect("a blob"))
}

async fn a_tier_is_set_with_the_content_or_after_it(world: &World) {
    let logs = world.container("logs").await;
    let written = logs.write("a", "1").await.unwrap();
    assert_eq!((written.access_tier(), written.is_access_tier_inferred), (AccessTier::Hot, true));
    assert_eq!(written.access_tier_change_time, None);

    let cool = set(&logs, "a", AccessTier::Cool).await.unwrap();
    assert_eq!((cool.access_tier(), cool.is_access_tier_inferred), (AccessTier::Cool, false));
    assert!(cool.access_tier_change_time.is_some());
    assert_eq!((&cool.etag, cool.last_modified), (&written.etag, written.last_modified));
    assert_eq!(logs.get("a").await.unwrap(), cool);

    let kept = logs.write("a", "2").await.unwrap();
    assert_eq!(kept.access_tier(), AccessTier::Cool);
    let access_tier = AccessTier::Cold.into();
    let spec = proto::WriteBlobSpec { access_tier, ..logs.spec("a") };
    assert_eq!(logs.write_with(spec, "3").await.unwrap().access_tier(), AccessTier::Cold);
    logs.stage("b", "A", "x").await.unwrap();
    let commit = proto::CommitBlocksRequest {
        container: logs.name(),
        blob: "b".to_owned(),
        access_tier,
        ..Default::default()
    };
    let committed = logs.client().commit_blocks(commit).await.unwrap().into_inner();
    assert_eq!(committed.blob.unwrap().access_tier(), AccessTier::Cold);
}

async fn an_archived_blob_is_only_described_listed_deleted_and_restored(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    let archived = set(&logs, "a", AccessTier::Archive).await.unwrap();

    assert_eq!(logs.get("a").await.unwrap(), archived);
    assert_eq!(logs.list("", "").await.unwrap(), ["a"]);
    assert_eq!(logs.read("a").await.unwrap_err().kind(), ARCHIVED);
    assert_eq!(logs.write("a", "2").await.unwrap_err().kind(), ARCHIVED);
    assert_eq!(logs.stage("a", "A", "2").await.unwrap_err().kind(), ARCHIVED);
    assert_eq!(logs.commit("a", &[]).await.unwrap_err().kind(), ARCHIVED);
    assert_eq!(logs.snapshot("a").await.unwrap_err().kind(), ARCHIVED);

    set(&logs, "a", AccessTier::Hot).await.unwrap();
    assert_eq!(logs.read("a").await.unwrap().data, "1");
    set(&logs, "a", AccessTier::Archive).await.unwrap();
    logs.delete("a").await.unwrap();
}

async fn an_archived_blob_is_copied_to_another_tier(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    set(&logs, "a", AccessTier::Archive).await.unwrap();
    let copy = |blob: &str, access_tier: AccessTier| proto::CopyBlobRequest {
        container: logs.name(),
        blob: blob.to_owned(),
        source: Some(proto::BlobSource {
            container: logs.name(),
            blob: "a".to_owned(),
            ..Default::default()
        }),
        access_tier: access_tier.into(),
        ..Default::default()
    };
    for tier in [AccessTier::Unspecified, AccessTier::Archive] {
        assert_eq!(logs.copy(copy("b", tier)).await.unwrap_err().kind(), ARCHIVED, "{tier:?}");
    }
    assert_eq!(logs.copy(copy("b", AccessTier::P10)).await.unwrap_err().kind(), INVALID);
    assert_eq!(logs.copy(copy("a", AccessTier::Hot)).await.unwrap_err().kind(), ARCHIVED);
    let copied = logs.copy(copy("b", AccessTier::Cool)).await.unwrap();
    assert_eq!(copied.access_tier(), AccessTier::Cool);
    assert_eq!(logs.read("b").await.unwrap().data, "1");
    assert_eq!(logs.get("a").await.unwrap().access_tier(), AccessTier::Archive);
}

async fn a_page_blob_is_created_with_a_tier(world: &World) {
    let logs = world.container("logs").await;
    let create = async |access_tier: AccessTier| {
        let request = proto::CreatePageBlobRequest {
            container: logs.name(),
            blob: "pages".to_owned(),
            size: 512,
            access_tier: access_tier.into(),
            ..Default::default()
        };
        let response = logs.client().create_page_blob(request).await?.into_inner();
        Ok::<_, CallError>(response.blob.expect("a blob"))
    };
    assert_eq!(create(AccessTier::Hot).await.unwrap_err().kind(), INVALID);
    assert_eq!(create(AccessTier::P20).await.unwrap().access_tier(), AccessTier::P20);
    assert_eq!(create(AccessTier::Unspecified).await.unwrap().access_tier(), AccessTier::P20);

    let copy = async |access_tier: AccessTier| {
        let access_tier = access_tier.into();
        let request = proto::CopyBlobRequest { access_tier, ..logs.copying("pages", "copy") };
        logs.copy(request).await
    };
    assert_eq!(copy(AccessTier::P30).await.unwrap().access_tier(), AccessTier::P30);
    assert_eq!(copy(AccessTier::Cool).await.unwrap_err().kind(), INVALID);
}

async fn a_tier_that_is_not_of_the_type_of_the_blob_is_rejected(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    let log = logs.create_append("log").await.unwrap();
    assert_eq!((log.r#type(), log.access_tier()), (BlobType::Append, AccessTier::Unspecified));

    for tier in [AccessTier::P10, AccessTier::Unspecified] {
        assert_eq!(set(&logs, "a", tier).await.unwrap_err().kind(), INVALID);
    }
    let unknown =
        proto::SetBlobTierRequest { access_tier: 99, ..setting(&logs, "a", AccessTier::Hot) };
    let error = CallError::from(logs.client().set_blob_tier(unknown).await.unwrap_err());
    assert_eq!((error.kind(), error.fields.as_slice()), (INVALID, &["access_tier".to_owned()][..]));
    let spec = proto::WriteBlobSpec { access_tier: 99, ..logs.spec("a") };
    assert_eq!(logs.write_with(spec, "2").await.unwrap_err().kind(), INVALID);
    let error = set(&logs, "log", AccessTier::Hot).await.unwrap_err();
    assert_eq!(error.kind(), (Code::FailedPrecondition, "INVALID_BLOB_TYPE"));
    let error = set(&logs, "absent", AccessTier::Hot).await.unwrap_err();
    assert_eq!(error.kind(), (Code::NotFound, "BLOB_NOT_FOUND"));
}
