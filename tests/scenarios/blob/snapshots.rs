//! Snapshots: taking, reading, listing and deleting them.

use tonic::Code;
use trestle_proto::blob::v1::{self as proto, DeleteSnapshots, listed_blob::Item};
use trestle_tests::{CallError, Container, World, blob_scenario, if_match};

blob_scenario!(
    a_snapshot_is_read_as_it_was,
    snapshots_are_listed_before_their_blob,
    a_delete_names_what_becomes_of_snapshots,
    rejects_names_that_no_snapshot_has,
);

const PRESENT: (Code, &str) = (Code::FailedPrecondition, "SNAPSHOTS_PRESENT");
const INVALID: (Code, &str) = (Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE");
const NOT_FOUND: (Code, &str) = (Code::NotFound, "BLOB_NOT_FOUND");

async fn read(container: &Container, snapshot: &str) -> Result<String, CallError> {
    let snapshot = snapshot.to_owned();
    let request = proto::ReadBlobRequest { snapshot, ..container.reading("a") };
    let data = container.read_with(request).await?.data;
    Ok(String::from_utf8(data.to_vec()).unwrap())
}

async fn delete(
    container: &Container,
    snapshot: &str,
    delete_snapshots: DeleteSnapshots,
) -> Result<(), CallError> {
    let request = proto::DeleteBlobRequest {
        container: container.name(),
        blob: "a".to_owned(),
        snapshot: snapshot.to_owned(),
        delete_snapshots: delete_snapshots.into(),
        ..Default::default()
    };
    Ok(container.client().delete_blob(request).await.map(drop)?)
}

async fn a_snapshot_is_read_as_it_was(world: &World) {
    let logs = world.container("logs").await;
    let base = logs.write("a", "one").await.unwrap();
    let first = logs.snapshot("a").await.unwrap();
    logs.write("a", "two").await.unwrap();

    assert_eq!((&first.etag, first.last_modified), (&base.etag, base.last_modified));
    assert!(first.snapshot.len() == 28 && first.lease.is_none());
    assert_eq!(read(&logs, &first.snapshot).await.unwrap(), "one");
    assert_eq!(read(&logs, "").await.unwrap(), "two");
    let request = proto::GetBlobRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        snapshot: first.snapshot.clone(),
        conditions: if_match(&base.etag),
        ..Default::default()
    };
    let found = logs.client().get_blob(request).await.unwrap().into_inner().blob.unwrap();
    assert_eq!(found, first);

    let request = proto::SnapshotBlobRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        metadata: [("k".to_owned(), "v".to_owned())].into(),
        conditions: if_match("\"0x1\""),
    };
    let stale = logs.client().snapshot_blob(request.clone()).await.unwrap_err();
    assert_eq!(stale.code(), Code::Aborted);
    let request = proto::SnapshotBlobRequest { conditions: None, ..request };
    let own = logs.client().snapshot_blob(request).await.unwrap().into_inner().snapshot.unwrap();
    assert_eq!(own.metadata["k"], "v");
    let base = logs.get("a").await.unwrap();
    assert!(own.etag != base.etag && base.metadata.is_empty());
    assert!(own.snapshot > first.snapshot);
}

async fn snapshots_are_listed_before_their_blob(world: &World) {
    let logs = world.container("logs").await;
    let mut expected = Vec::new();
    for name in ["a", "b", "b/c"] {
        logs.write(name, "x").await.unwrap();
        for _ in 0..3 {
            expected.push((name.to_owned(), logs.snapshot(name).await.unwrap().snapshot));
        }
        expected.push((name.to_owned(), String::new()));
    }
    for page_size in [1, 2, 3, 100] {
        let request = proto::ListBlobsRequest {
            container: logs.name(),
            include_snapshots: true,
            page_size: Some(page_size),
            ..Default::default()
        };
        let (mut found, mut page_token) = (Vec::new(), String::new());
        loop {
            let request = proto::ListBlobsRequest { page_token, ..request.clone() };
            let page = logs.client().list_blobs(request).await.unwrap().into_inner();
            assert!(page.items.len() <= page_size as usize);
            found.extend(page.items.into_iter().map(|item| match item.item.unwrap() {
                Item::Blob(blob) => (blob.name, blob.snapshot),
                Item::Prefix(prefix) => panic!("{prefix}"),
            }));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        assert_eq!(found, expected, "{page_size}");
    }
    assert_eq!(logs.list("", "").await.unwrap(), ["a", "b", "b/c"]);
    assert_eq!(logs.list("", "/").await.unwrap(), ["a", "b", "[b/]"]);
    let request = proto::ListBlobsRequest {
        container: logs.name(),
        delimiter: "/".to_owned(),
        include_snapshots: true,
        ..Default::default()
    };
    let error = CallError::from(logs.client().list_blobs(request).await.unwrap_err());
    assert_eq!(error.kind(), INVALID);
}

async fn a_delete_names_what_becomes_of_snapshots(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "x").await.unwrap();
    let mut names = Vec::new();
    for _ in 0..3 {
        names.push(logs.snapshot("a").await.unwrap().snapshot);
    }

    assert_eq!(logs.delete("a").await.unwrap_err().kind(), PRESENT);
    let both = delete(&logs, &names[0], DeleteSnapshots::Include).await.unwrap_err();
    assert_eq!(both.kind(), INVALID);
    let unknown = proto::DeleteBlobRequest { delete_snapshots: 9, ..logs.deleting("a") };
    let unknown = CallError::from(logs.client().delete_blob(unknown).await.unwrap_err());
    assert_eq!(unknown.kind(), INVALID);
    assert_eq!(unknown.fields, ["delete_snapshots"]);
    delete(&logs, &names[0], DeleteSnapshots::Unspecified).await.unwrap();
    assert_eq!(read(&logs, &names[0]).await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(read(&logs, &names[1]).await.unwrap(), "x");
    delete(&logs, "", DeleteSnapshots::Only).await.unwrap();
    assert_eq!(read(&logs, &names[1]).await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(read(&logs, "").await.unwrap(), "x");
    logs.snapshot("a").await.unwrap();
    delete(&logs, "", DeleteSnapshots::Include).await.unwrap();
    assert_eq!(read(&logs, "").await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(logs.snapshot("a").await.unwrap_err().kind(), NOT_FOUND);
}

async fn rejects_names_that_no_snapshot_has(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "x").await.unwrap();

    for name in ["now", "2020-07-24T14:34:28Z", "2020-07-24T14:34:28.282185Z"] {
        assert_eq!(read(&logs, name).await.unwrap_err().kind(), INVALID, "{name}");
        let error = delete(&logs, name, DeleteSnapshots::Unspecified).await.unwrap_err();
        assert_eq!(error.kind(), INVALID, "{name}");
    }
    let unknown = "2020-07-24T14:34:28.2821851Z";
    assert_eq!(read(&logs, unknown).await.unwrap_err().kind(), NOT_FOUND);
    let error = delete(&logs, unknown, DeleteSnapshots::Unspecified).await.unwrap_err();
    assert_eq!(error.kind(), NOT_FOUND);
}
