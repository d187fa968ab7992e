//! Deleted and overwritten blobs that can be restored.

use tonic::Code;
use trestle_proto::blob::v1::{self as proto, listed_blob::Item};
use trestle_tests::{CallError, Container, World, blob_scenario};

blob_scenario!(
    deleted_and_overwritten_blobs_are_restored,
    a_group_of_deleted_blobs_only_is_not_listed,
    nothing_is_kept_unless_the_settings_require_it,
    rejects_settings_out_of_range,
);

const NOT_FOUND: (Code, &str) = (Code::NotFound, "BLOB_NOT_FOUND");

async fn keep(world: &World, enabled: bool, days: i32) -> Result<(), CallError> {
    let policy = proto::DeleteRetentionPolicy { enabled, days };
    let data_protection =
        Some(proto::DataProtection { delete_retention_policy: Some(policy), ..Default::default() });
    let request = proto::SetServicePropertiesRequest { data_protection, ..Default::default() };
    Ok(world.blobs().set_service_properties(request).await.map(drop)?)
}

async fn undelete(container: &Container, blob: &str) -> Result<(), CallError> {
    let (container_name, blob) = (container.name(), blob.to_owned());
    let request = proto::UndeleteBlobRequest { container: container_name, blob };
    Ok(container.client().undelete_blob(request).await.map(drop)?)
}

/// The blobs and snapshots, deleted ones included.
async fn every_state(container: &Container) -> Vec<proto::Blob> {
    let request = proto::ListBlobsRequest {
        container: container.name(),
        include_snapshots: true,
        include_deleted: true,
        ..Default::default()
    };
    let items = container.client().list_blobs(request).await.unwrap().into_inner().items;
    let blob = |item: proto::ListedBlob| match item.item.unwrap() {
        Item::Blob(blob) => blob,
        Item::Prefix(prefix) => panic!("{prefix}"),
    };
    items.into_iter().map(blob).collect()
}

async fn deleted_and_overwritten_blobs_are_restored(world: &World) {
    let logs = world.container("logs").await;
    keep(world, true, 7).await.unwrap();
    logs.write("a", "one").await.unwrap();
    let written = logs.write("a", "two").await.unwrap();
    logs.delete("a").await.unwrap();

    assert_eq!(logs.read("a").await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(logs.list("", "").await.unwrap(), [""; 0]);
    let states = every_state(&logs).await;
    assert_eq!(states.len(), 2, "the overwritten content, and the blob");
    assert!(states.iter().all(|blob| blob.delete_time.is_some()));
    assert!(states.iter().all(|blob| blob.remaining_retention_days >= 6));
    undelete(&logs, "a").await.unwrap();
    let found = logs.read("a").await.unwrap();
    assert_eq!((found.data, found.blob), ("two".into(), written));
    let states = every_state(&logs).await;
    assert!(states.iter().all(|blob| blob.delete_time.is_none()));
    let snapshot = states[0].snapshot.clone();
    let request = proto::ReadBlobRequest { snapshot, ..logs.reading("a") };
    assert_eq!(logs.read_with(request).await.unwrap().data, "one");
    undelete(&logs, "a").await.unwrap();
    assert_eq!(undelete(&logs, "b").await.unwrap_err().kind(), NOT_FOUND);
    keep(world, false, 0).await.unwrap();
}

async fn nothing_is_kept_unless_the_settings_require_it(world: &World) {
    let logs = world.container("logs").await;
    let get = async || {
        let request = proto::GetServicePropertiesRequest {};
        let response = world.blobs().get_service_properties(request).await.unwrap().into_inner();
        assert!(response.properties.unwrap().cors.is_some());
        response.data_protection.unwrap().delete_retention_policy.unwrap()
    };
    assert!(!get().await.enabled);
    logs.write("a", "one").await.unwrap();
    logs.write("a", "two").await.unwrap();
    logs.delete("a").await.unwrap();
    assert_eq!(every_state(&logs).await.len(), 0);
    assert_eq!(undelete(&logs, "a").await.unwrap_err().kind(), NOT_FOUND);

    keep(world, true, 365).await.unwrap();
    assert_eq!((get().await.enabled, get().await.days), (true, 365));
    keep(world, false, 0).await.unwrap();
    assert!(!get().await.enabled);
}

async fn rejects_settings_out_of_range(world: &World) {
    for days in [-1, 0, 366] {
        let error = keep(world, true, days).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_SERVICE_PROPERTY"), "{days}");
    }
    let request = proto::SetServicePropertiesRequest::default();
    let error = world.blobs().set_service_properties(request).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "there is nothing to change");
}

async fn a_group_of_deleted_blobs_only_is_not_listed(world: &World) {
    let logs = world.container("logs").await;
    keep(world, true, 7).await.unwrap();
    for blob in ["a/1", "b/1", "b/2"] {
        logs.write(blob, "x").await.unwrap();
    }
    for blob in ["a/1", "b/1"] {
        logs.delete(blob).await.unwrap();
    }
    assert_eq!(logs.list("", "/").await.unwrap(), ["[b/]"]);
    let all = proto::ListBlobsRequest {
        container: logs.name(),
        delimiter: "/".to_owned(),
        include_deleted: true,
        ..Default::default()
    };
    let listed = logs.client().list_blobs(all).await.unwrap().into_inner().items;
    let groups: Vec<_> = listed.into_iter().filter_map(|it| it.item).collect();
    assert_eq!(groups, ["a/", "b/"].map(|it| Item::Prefix(it.to_owned())));
}
