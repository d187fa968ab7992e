//! Versions of blobs.

use tonic::Code;
use trestle_identity::sas::Scope;
use trestle_proto::blob::v1::{self as proto, listed_blob::Item};
use trestle_tests::{CallError, Container, World, blob_scenario, terms, token};

blob_scenario!(
    overwritten_and_deleted_blobs_remain_as_versions,
    a_previous_version_is_restored_by_a_copy_and_deleted_by_its_id,
    rejects_names_of_versions_that_are_none,
    a_previous_version_needs_a_permission_of_its_own_to_be_deleted,
    a_version_of_pages_is_no_snapshot_and_has_no_blocks,
);

const NOT_FOUND: (Code, &str) = (Code::NotFound, "BLOB_NOT_FOUND");

async fn keep_versions(world: &World, is_enabled: bool) {
    let data_protection =
        proto::DataProtection { is_versioning_enabled: Some(is_enabled), ..Default::default() };
    let request = proto::SetServicePropertiesRequest {
        data_protection: Some(data_protection),
        ..Default::default()
    };
    world.blobs().set_service_properties(request).await.unwrap();
    let request = proto::GetServicePropertiesRequest {};
    let set = world.blobs().get_service_properties(request).await.unwrap().into_inner();
    assert_eq!(set.data_protection.unwrap().is_versioning_enabled, Some(is_enabled));
}

async fn read(container: &Container, version_id: &str) -> Result<proto::Blob, CallError> {
    let version_id = version_id.to_owned();
    let request = proto::ReadBlobRequest { version_id, ..container.reading("a") };
    let found = container.read_with(request).await?;
    assert_eq!(found.data.len() as u64, found.blob.size);
    Ok(found.blob)
}

/// The version ids of a listing, with `*` behind that of the blob itself.
async fn versions(container: &Container) -> Vec<String> {
    let request = proto::ListBlobsRequest {
        container: container.name(),
        include_versions: true,
        delimiter: "/".to_owned(),
        ..Default::default()
    };
    let items = container.client().list_blobs(request).await.unwrap().into_inner().items;
    let id = |item: proto::ListedBlob| match item.item.unwrap() {
        Item::Blob(blob) if blob.is_current_version => format!("{}*", blob.version_id),
        Item::Blob(blob) => blob.version_id,
        Item::Prefix(prefix) => panic!("{prefix}"),
    };
    items.into_iter().map(id).collect()
}

async fn overwritten_and_deleted_blobs_remain_as_versions(world: &World) {
    let logs = world.container("logs").await;
    assert_eq!(logs.write("a", "before").await.unwrap().version_id, "");
    keep_versions(world, true).await;
    let first = logs.write("a", "one").await.unwrap();
    let second = logs.write("a", "second").await.unwrap();
    assert!(second.is_current_version && second.version_id > first.version_id);

    let found = read(&logs, &first.version_id).await.unwrap();
    assert_eq!((found.size, found.etag, found.is_current_version), (3, first.etag.clone(), false));
    assert_eq!((found.snapshot.as_str(), found.lease), ("", None));
    assert_eq!(read(&logs, &second.version_id).await.unwrap(), second);
    let listed = versions(&logs).await;
    assert_eq!(listed[1..], [first.version_id.clone(), format!("{}*", second.version_id)]);
    assert_eq!(logs.list("", "").await.unwrap(), ["a"]);

    logs.delete("a").await.unwrap();
    assert_eq!(logs.read("a").await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(read(&logs, &second.version_id).await.unwrap().size, 6);
    assert_eq!(versions(&logs).await[1..], [first.version_id, second.version_id]);
    keep_versions(world, false).await;
}

async fn a_previous_version_is_restored_by_a_copy_and_deleted_by_its_id(world: &World) {
    let logs = world.container("logs").await;
    keep_versions(world, true).await;
    let first = logs.write("a", "one").await.unwrap();
    let second = logs.write("a", "second").await.unwrap();
    let source = proto::BlobSource {
        container: logs.name(),
        blob: "a".to_owned(),
        version_id: first.version_id.clone(),
        ..Default::default()
    };
    let request = proto::CopyBlobRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        source: Some(source),
        ..Default::default()
    };
    let mut responses = logs.client().copy_blob(request).await.unwrap().into_inner();
    while responses.message().await.unwrap().is_some() {}
    let restored = logs.read("a").await.unwrap();
    assert_eq!(restored.data, "one");
    assert!(restored.blob.copy.unwrap().source.ends_with(&first.version_id));

    let delete = async |version_id: &str| {
        let request = proto::DeleteBlobRequest {
            container: logs.name(),
            blob: "a".to_owned(),
            version_id: version_id.to_owned(),
            ..Default::default()
        };
        logs.client().delete_blob(request).await.map(drop).map_err(CallError::from)
    };
    let error = delete(&restored.blob.version_id).await.unwrap_err();
    let root = (Code::FailedPrecondition, "OPERATION_NOT_ALLOWED_ON_ROOT_BLOB");
    assert_eq!(error.kind(), root);
    delete(&second.version_id).await.unwrap();
    assert_eq!(delete(&second.version_id).await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(read(&logs, &second.version_id).await.unwrap_err().kind(), NOT_FOUND);
    let left = [first.version_id, format!("{}*", restored.blob.version_id)];
    assert_eq!(versions(&logs).await, left);
    keep_versions(world, false).await;
}

async fn rejects_names_of_versions_that_are_none(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "one").await.unwrap();
    let invalid = (Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE");
    for id in ["now", "2019-08-28T17:07:35Z"] {
        assert_eq!(read(&logs, id).await.unwrap_err().kind(), invalid, "{id}");
    }
    let time = "2019-08-28T17:07:35.2821851Z".to_owned();
    assert_eq!(read(&logs, &time).await.unwrap_err().kind(), NOT_FOUND);
    let request =
        proto::ReadBlobRequest { version_id: time.clone(), snapshot: time, ..logs.reading("a") };
    assert_eq!(logs.read_with(request).await.unwrap_err().kind(), invalid);
}

async fn a_previous_version_needs_a_permission_of_its_own_to_be_deleted(world: &World) {
    let logs = world.container("logs").await;
    keep_versions(world, true).await;
    let first = logs.write("a", "one").await.unwrap();
    logs.write("a", "two").await.unwrap();
    let delete = async |permissions: &str, version_id: &str| {
        let token = token(terms(Scope::of_container("logs"), permissions));
        let held = world.signed_for_blob(&token, "logs").existing_container("logs");
        let version_id = version_id.to_owned();
        let request = proto::DeleteBlobRequest { version_id, ..held.deleting("a") };
        held.client().delete_blob(request).await.map(drop).map_err(CallError::from)
    };
    let denied = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");
    assert_eq!(delete("rwd", &first.version_id).await.unwrap_err().kind(), denied);
    assert_eq!(delete("x", "").await.unwrap_err().kind(), denied);
    delete("x", &first.version_id).await.unwrap();
    delete("d", "").await.unwrap();
    keep_versions(world, false).await;
}

async fn a_version_of_pages_is_no_snapshot_and_has_no_blocks(world: &World) {
    let logs = world.container("logs").await;
    keep_versions(world, true).await;
    let version_id = logs.create_pages("a", 512).await.unwrap().version_id;
    let update = proto::UpdateBlobRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        update_mask: Some(prost_types::FieldMask { paths: vec!["metadata".to_owned()] }),
        ..Default::default()
    };
    logs.client().update_blob(update).await.unwrap();

    let request = proto::ListPageRangesRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        previous_snapshot: version_id.clone(),
        ..Default::default()
    };
    let error = CallError::from(logs.client().list_page_ranges(request).await.unwrap_err());
    assert_eq!(error.kind(), (Code::NotFound, "PREVIOUS_SNAPSHOT_NOT_FOUND"));
    let request = proto::GetBlockListRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        version_id,
        ..Default::default()
    };
    let error = CallError::from(logs.client().get_block_list(request).await.unwrap_err());
    assert_eq!(error.kind(), (Code::FailedPrecondition, "INVALID_BLOB_TYPE"));
    keep_versions(world, false).await;
}
