//! Conditions on etags and times, end to end. Every combination is a test of the service.

use tonic::Code;
use trestle_proto::blob::v1::{self as proto, BlobConditions};
use trestle_tests::{World, blob_scenario, if_match, if_none_match};

blob_scenario!(
    a_write_takes_place_for_the_stated_version_only,
    a_blob_is_created_once,
    a_read_of_a_known_version_has_no_content,
    conditions_that_cannot_be_combined_are_rejected,
);

const NOT_MET: (Code, &str) = (Code::Aborted, "CONDITION_NOT_MET");

async fn a_write_takes_place_for_the_stated_version_only(world: &World) {
    let logs = world.container("logs").await;
    let first = logs.write("a", "1").await.unwrap();
    let spec = |etag: &str| proto::WriteBlobSpec { conditions: if_match(etag), ..logs.spec("a") };

    let second = logs.write_with(spec(&first.etag), "2").await.unwrap();
    let stale = logs.write_with(spec(&first.etag), "3").await.unwrap_err();
    assert_eq!(stale.kind(), NOT_MET);
    assert_eq!(logs.read("a").await.unwrap().data, "2");

    let delete = |etag: &str| proto::DeleteBlobRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        conditions: if_match(etag),
        ..Default::default()
    };
    let stale = logs.client().delete_blob(delete(&first.etag)).await.unwrap_err();
    assert_eq!(stale.code(), Code::Aborted);
    logs.client().delete_blob(delete(&second.etag)).await.unwrap();
    let absent = logs.write_with(spec("*"), "4").await.unwrap_err();
    assert_eq!(absent.kind(), NOT_MET, "an absent blob matches nothing");
}

async fn a_blob_is_created_once(world: &World) {
    let logs = world.container("logs").await;
    let create = || proto::WriteBlobSpec { conditions: if_none_match("*"), ..logs.spec("a") };

    logs.write_with(create(), "1").await.unwrap();
    let again = logs.write_with(create(), "2").await.unwrap_err();

    assert_eq!(again.kind(), (Code::AlreadyExists, "BLOB_ALREADY_EXISTS"));
    assert_eq!(logs.read("a").await.unwrap().data, "1");
}

async fn a_read_of_a_known_version_has_no_content(world: &World) {
    let logs = world.container("logs").await;
    let written = logs.write("a", "1").await.unwrap();
    let read = |conditions: Option<BlobConditions>| {
        logs.read_with(proto::ReadBlobRequest { conditions, ..logs.reading("a") })
    };

    let known = read(if_none_match(&written.etag)).await.unwrap();
    assert_eq!((known.not_modified, known.data.len()), (true, 0));
    assert_eq!(known.blob.etag, written.etag);
    let other = read(if_none_match("\"0x1\"")).await.unwrap();
    assert_eq!((other.not_modified, other.data), (false, "1".into()));
    let error = read(if_match("\"0x1\"")).await.unwrap_err();
    assert_eq!(error.kind(), NOT_MET);
    let error = read(if_none_match("*")).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "UNSATISFIABLE_CONDITION"));

    // Unlike RFC 9110: one true part of the two is enough.
    let if_modified_since = Some(prost_types::Timestamp { seconds: 0, nanos: 0 });
    let both = BlobConditions { if_modified_since, ..if_none_match(&written.etag).unwrap() };
    assert_eq!(read(Some(both)).await.unwrap().data, "1");
}

async fn conditions_that_cannot_be_combined_are_rejected(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    let two = BlobConditions { if_match: vec!["1".into(), "2".into()], ..Default::default() };
    let if_none_match = vec!["*".to_owned()];
    let mixed = BlobConditions { if_none_match, ..if_match("*").unwrap() };

    for conditions in [two, mixed] {
        let spec = proto::WriteBlobSpec { conditions: Some(conditions), ..logs.spec("a") };
        let error = logs.write_with(spec, "2").await.unwrap_err();
        let expected = (Code::InvalidArgument, "MULTIPLE_CONDITION_HEADERS_NOT_SUPPORTED");
        assert_eq!(error.kind(), expected);
    }
}
