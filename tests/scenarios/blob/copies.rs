//! Copies within the server.

use bytes::Bytes;
use tonic::Code;
use trestle_proto::blob::v1 as proto;
use trestle_tests::{CallError, Container, World, blob_scenario, if_match, if_none_match};

blob_scenario!(
    a_copy_has_what_its_source_has,
    a_snapshot_becomes_the_content_again,
    conditions_of_source_and_target_decide,
    no_copy_is_pending,
    a_url_of_the_service_names_a_source,
);

fn copying(source: &Container, blob: &str, target: &Container) -> proto::CopyBlobRequest {
    let (container, blob) = (source.name(), blob.to_owned());
    proto::CopyBlobRequest {
        container: target.name(),
        blob: "copy".to_owned(),
        source: Some(proto::BlobSource { container, blob, ..Default::default() }),
        ..Default::default()
    }
}

async fn a_copy_has_what_its_source_has(world: &World) {
    let (logs, other) = (world.container("logs").await, world.container("other").await);
    let properties =
        Some(proto::HttpProperties { content_type: "text/plain".to_owned(), ..Default::default() });
    let metadata = [("k".to_owned(), "v".to_owned())].into();
    for length in [0, 10, 100_000, 4_000_000] {
        let data = Bytes::from(vec![7; length]);
        let spec = proto::WriteBlobSpec {
            properties: properties.clone(),
            metadata: std::collections::HashMap::clone(&metadata),
            ..logs.spec("a")
        };
        let source = logs.write_with(spec, data.clone()).await.unwrap();

        let copy = other.copy(copying(&logs, "a", &other)).await.unwrap();

        assert_eq!((&copy.properties, &copy.metadata), (&source.properties, &source.metadata));
        assert_ne!(copy.etag, source.etag);
        let of = copy.copy.clone().unwrap();
        assert_eq!((of.source.as_str(), of.id.len()), ("logs/a", 36));
        assert_eq!(of.status(), proto::CopyStatus::Success);
        assert_eq!((of.copied_bytes, of.total_bytes), (length as u64, length as u64));
        logs.delete("a").await.unwrap();
        let found = other.read("copy").await.unwrap();
        assert_eq!((found.data, found.blob), (data, copy));
    }
    logs.write("a", "x").await.unwrap();
    let request = proto::CopyBlobRequest {
        metadata: [("own".to_owned(), "1".to_owned())].into(),
        source_text: "http://server/logs/a".to_owned(),
        ..copying(&logs, "a", &other)
    };
    let copy = other.copy(request).await.unwrap();
    assert_eq!((copy.metadata.len(), copy.metadata["own"].as_str()), (1, "1"));
    assert_eq!(copy.copy.unwrap().source, "http://server/logs/a");
    assert!(other.write("copy", "y").await.unwrap().copy.is_none());
}

async fn a_snapshot_becomes_the_content_again(world: &World) {
    let logs = world.container("logs").await;
    logs.stage("copy", "A", "first").await.unwrap();
    logs.commit("copy", &["A"]).await.unwrap();
    let snapshot = logs.snapshot("copy").await.unwrap().snapshot;
    logs.write("copy", "newer").await.unwrap();
    let mut request = copying(&logs, "copy", &logs);
    request.source.as_mut().unwrap().snapshot = snapshot.clone();

    let copy = logs.copy(request).await.unwrap();

    assert_eq!(logs.read("copy").await.unwrap().data, "first");
    assert_eq!(copy.copy.unwrap().source, format!("logs/copy?snapshot={snapshot}"));
    let (container, blob) = (logs.name(), "copy".to_owned());
    let request = proto::GetBlockListRequest { container, blob, ..Default::default() };
    let list = logs.client().get_block_list(request).await.unwrap().into_inner();
    assert_eq!(list.committed, [proto::Block { id: "A".into(), size: 5 }]);
    assert_eq!(logs.delete("copy").await.unwrap_err().reason, "SNAPSHOTS_PRESENT");
}

async fn conditions_of_source_and_target_decide(world: &World) {
    let logs = world.container("logs").await;
    let missing = logs.copy(copying(&logs, "a", &logs)).await.unwrap_err();
    assert_eq!(missing.kind(), (Code::NotFound, "BLOB_NOT_FOUND"));
    let source = logs.write("a", "x").await.unwrap();
    for source_conditions in [if_match("\"0x1\""), if_none_match(&source.etag)] {
        let request = proto::CopyBlobRequest { source_conditions, ..copying(&logs, "a", &logs) };
        let error = logs.copy(request).await.unwrap_err();
        assert_eq!(error.kind(), (Code::FailedPrecondition, "SOURCE_CONDITION_NOT_MET"));
    }
    let times = |seconds| {
        let if_unmodified_since = Some(prost_types::Timestamp { seconds, nanos: 0 });
        Some(proto::BlobConditions { if_unmodified_since, ..Default::default() })
    };
    for (seconds, expected) in [
        (-1, (Code::FailedPrecondition, "SOURCE_CONDITION_NOT_MET")),
        (-62_135_596_800, (Code::FailedPrecondition, "SOURCE_CONDITION_NOT_MET")),
        (253_402_300_800, (Code::InvalidArgument, "INVALID_HEADER_VALUE")),
    ] {
        let source_conditions = times(seconds);
        let request = proto::CopyBlobRequest { source_conditions, ..copying(&logs, "a", &logs) };
        let error = logs.copy(request).await.unwrap_err();
        assert_eq!(error.kind(), expected, "{seconds}");
    }
    let conditions = if_none_match("*");
    let once = proto::CopyBlobRequest { conditions, ..copying(&logs, "a", &logs) };
    logs.copy(once.clone()).await.unwrap();
    let again = logs.copy(once).await.unwrap_err();
    assert_eq!(again.kind(), (Code::AlreadyExists, "BLOB_ALREADY_EXISTS"));
    let request = proto::CopyBlobRequest { source: None, ..copying(&logs, "a", &logs) };
    let error = logs.copy(request).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "MISSING_REQUIRED_HEADER"));
}

async fn no_copy_is_pending(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "x").await.unwrap();
    let request = |blob: &str| proto::AbortCopyBlobRequest {
        container: logs.name(),
        blob: blob.to_owned(),
        ..Default::default()
    };

    let error = logs.client().abort_copy_blob(request("a")).await.unwrap_err();
    let error = CallError::from(error);
    assert_eq!(error.kind(), (Code::FailedPrecondition, "NO_PENDING_COPY_OPERATION"));
    let error = logs.client().abort_copy_blob(request("b")).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);

    let lease_id = logs.acquire_lease("a").await.unwrap();
    let error = logs.client().abort_copy_blob(request("a")).await.unwrap_err();
    assert_eq!(CallError::from(error).reason, "LEASE_ID_MISSING");
    let held = proto::AbortCopyBlobRequest { lease_id, ..request("a") };
    let error = logs.client().abort_copy_blob(held).await.unwrap_err();
    assert_eq!(CallError::from(error).reason, "NO_PENDING_COPY_OPERATION");
}

async fn a_url_of_the_service_names_a_source(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a b", "one").await.unwrap();
    let copy = async |url: String| {
        let request = proto::CopyBlobRequest {
            container: logs.name(),
            blob: "copy".to_owned(),
            source_url: url,
            ..Default::default()
        };
        let mut responses = logs.client().copy_blob(request).await?.into_inner();
        let mut last = None;
        while let Some(response) = responses.message().await? {
            last = response.blob;
        }
        Ok::<_, CallError>(last.expect("the last response has the blob"))
    };
    let host = "http://127.0.0.1:10000";
    let url = |account: &str| format!("{host}/{account}/{}/a%20b?sig=x", logs.name());
    let blob = copy(url("devstoreaccount1")).await.unwrap();
    assert_eq!(blob.copy.unwrap().source, format!("{}/a b", logs.name()));
    assert_eq!(logs.read("copy").await.unwrap().data, "one");

    for (source, expected) in [
        (url("other"), (Code::InvalidArgument, "COPY_ACROSS_ACCOUNTS_NOT_SUPPORTED")),
        (
            "http://127.0.0.1:9/a".to_owned(),
            (Code::FailedPrecondition, "CANNOT_VERIFY_COPY_SOURCE"),
        ),
        ("file:///etc/passwd".to_owned(), (Code::InvalidArgument, "INVALID_HEADER_VALUE")),
        (url("devstoreaccount1").replace("a%20b", "absent"), (Code::NotFound, "BLOB_NOT_FOUND")),
    ] {
        let error = copy(source.clone()).await.unwrap_err();
        assert_eq!(error.kind(), expected, "{source}");
    }
}
