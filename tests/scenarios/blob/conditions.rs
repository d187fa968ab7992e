//! Conditions on etags and times, end to end. Every combination is a test of the service.

use tonic::Code;
use trestle_identity::sas::Scope;
use trestle_proto::blob::v1::{self as proto, BlobConditions};
use trestle_tests::{CallError, World, blob_scenario, if_match, if_none_match, terms, token};

blob_scenario!(
    a_write_takes_place_for_the_stated_version_only,
    a_blob_is_created_once,
    a_read_of_a_known_version_has_no_content,
    tags_and_pages_of_a_known_version_are_not_read,
    conditions_that_cannot_be_combined_are_rejected,
    an_unmet_condition_is_named_with_what_there_is,
    a_text_that_is_no_etag_is_rejected,
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

async fn tags_and_pages_of_a_known_version_are_not_read(world: &World) {
    let logs = world.container("logs").await;
    let created = logs.create_pages("a", 512).await.unwrap();
    let set = proto::SetBlobTagsRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        tags: [("k".to_owned(), "v".to_owned())].into(),
        ..Default::default()
    };
    logs.client().set_blob_tags(set).await.unwrap();
    let known = if_none_match(&created.etag);
    for (conditions, not_modified) in [(known, true), (if_none_match("\"0x1\""), false)] {
        let request = proto::GetBlobTagsRequest {
            container: logs.name(),
            blob: "a".to_owned(),
            conditions: conditions.clone(),
            ..Default::default()
        };
        let tags = logs.client().get_blob_tags(request).await.unwrap().into_inner();
        assert_eq!((tags.not_modified, tags.tags.is_empty()), (not_modified, not_modified));
        let request = proto::ListPageRangesRequest {
            container: logs.name(),
            blob: "a".to_owned(),
            conditions: conditions.clone(),
            ..Default::default()
        };
        let ranges = logs.client().list_page_ranges(request).await.unwrap().into_inner();
        assert_eq!((ranges.not_modified, ranges.blob.unwrap().size), (not_modified, 512));
        let range = Some(proto::ByteRange { offset: 512, length: None });
        let request = proto::ReadBlobRequest { range, conditions, ..logs.reading("a") };
        match logs.read_with(request).await {
            Ok(read) => assert!(read.not_modified && not_modified),
            Err(error) => assert_eq!((&*error.reason, not_modified), ("INVALID_RANGE", false)),
        }
    }
}

async fn conditions_that_cannot_be_combined_are_rejected(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    let if_match_two = vec!["0x1".to_owned(), "0x2".to_owned()];
    let two = BlobConditions { if_match: if_match_two, ..Default::default() };
    let if_none_match = vec!["*".to_owned()];
    let mixed = BlobConditions { if_none_match, ..if_match("*").unwrap() };

    for conditions in [two, mixed] {
        let spec = proto::WriteBlobSpec { conditions: Some(conditions), ..logs.spec("a") };
        let error = logs.write_with(spec, "2").await.unwrap_err();
        let expected = (Code::InvalidArgument, "MULTIPLE_CONDITION_HEADERS_NOT_SUPPORTED");
        assert_eq!(error.kind(), expected);
        assert_eq!(error.fields, ["spec.conditions.if_match"]);
    }
}

async fn an_unmet_condition_is_named_with_what_there_is(world: &World) {
    let logs = world.container("logs").await;
    let etag = logs.write("a", "1").await.unwrap().etag;
    let delete = proto::DeleteBlobRequest { conditions: if_match("0x1"), ..logs.deleting("a") };

    let error = CallError::from(logs.client().delete_blob(delete.clone()).await.unwrap_err());
    assert_eq!(error.kind(), NOT_MET);
    let stated = "field=`conditions.if_match`, value=`\"0x1\"`";
    let shown = format!("{stated}, current=`{etag}`");
    assert!(error.message.ends_with(&shown), "{}", error.message);

    let token = token(terms(Scope::of_container("logs"), "d"));
    let deleter = world.signed_for_blob(&token, "logs").blobs();
    let error = CallError::from(deleter.clone().delete_blob(delete).await.unwrap_err());
    assert_eq!(error.kind(), NOT_MET);
    assert!(error.message.ends_with(stated), "it may not read: {}", error.message);

    let source = Some(proto::BlobSource {
        container: logs.name(),
        blob: "a".to_owned(),
        ..Default::default()
    });
    let request = proto::CopyBlobRequest {
        container: logs.name(),
        blob: "copy".to_owned(),
        source,
        source_conditions: if_none_match(&etag),
        ..Default::default()
    };
    let error = logs.copy(request).await.unwrap_err();
    let stated = format!("field=`source_conditions.if_none_match`, value=`{etag}`");
    let shown = format!("{stated}, current=`{etag}`");
    assert!(error.message.ends_with(&shown), "{}", error.message);
}

async fn a_text_that_is_no_etag_is_rejected(world: &World) {
    let logs = world.container("logs").await;
    for text in ["", "\"\"", "\"0x1", "0x1\", \"0x2"] {
        let spec = proto::WriteBlobSpec { conditions: if_none_match(text), ..logs.spec("a") };
        let error = logs.write_with(spec, "2").await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_HEADER_VALUE"), "{text}");
        assert_eq!(error.fields, ["spec.conditions.if_none_match"]);
    }
    // Etags are opaque: one of another server is that of no blob.
    for text in ["1", "\"*\"", "W/\"0x1\""] {
        let spec = proto::WriteBlobSpec { conditions: if_none_match(text), ..logs.spec("a") };
        logs.write_with(spec, "2").await.unwrap();
    }
}
