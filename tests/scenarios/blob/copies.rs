//! Copies within the server.

use bytes::Bytes;
use tonic::Code;
use trestle_proto::blob::v1 as proto;
use trestle_tests::{Container, World, blob_scenario, if_match, if_none_match};

blob_scenario!(
    a_copy_has_what_its_source_has,
    a_snapshot_becomes_the_content_again,
    conditions_of_source_and_target_decide,
    no_copy_is_pending,
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
    let error = trestle_tests::CallError::from(error);
    assert_eq!(error.kind(), (Code::FailedPrecondition, "NO_PENDING_COPY_OPERATION"));
    let error = logs.client().abort_copy_blob(request("b")).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}
