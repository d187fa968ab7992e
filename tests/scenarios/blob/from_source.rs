//! Blocks, appends and pages whose data the server reads itself, from another blob.

use bytes::Bytes;
use tonic::Code;
use trestle_identity::sas::Scope;
use trestle_proto::blob::v1::{self as proto, ByteRange, UploadFinish};
use trestle_tests::{
    CallError, Container, World, blob_scenario, if_match, if_none_match, terms, token,
};

blob_scenario!(
    blocks_appends_and_pages_come_from_a_blob,
    data_of_a_source_is_checked_before_it_is_stored,
    a_source_that_cannot_be_read_is_rejected,
    a_source_needs_the_permission_to_read,
    what_is_required_of_the_target_holds_with_a_source,
);

fn sample(length: usize) -> Bytes {
    (0..length).map(|at| (at / 4096 + at * 31) as u8).collect::<Vec<_>>().into()
}

fn source(container: &Container, blob: &str) -> Option<proto::BlobSource> {
    let (container, blob) = (container.name(), blob.to_owned());
    Some(proto::BlobSource { container, blob, ..Default::default() })
}

fn range(offset: u64, length: u64) -> Option<ByteRange> {
    Some(ByteRange { offset, length: Some(length) })
}

/// A block of `target` from the blob `source`.
fn block(container: &Container) -> proto::StageBlockSpec {
    proto::StageBlockSpec {
        container: container.name(),
        blob: "target".to_owned(),
        block_id: Bytes::from_static(b"1"),
        source: source(container, "source"),
        ..Default::default()
    }
}

async fn stage(
    container: &Container,
    spec: proto::StageBlockSpec,
    finish: UploadFinish,
) -> Result<proto::StageBlockResponse, CallError> {
    let message =
        proto::StageBlockRequest { spec: Some(spec), finish: Some(finish), ..Default::default() };
    Ok(container.client().stage_block(tokio_stream::iter([message])).await?.into_inner())
}

async fn blocks_appends_and_pages_come_from_a_blob(world: &World) {
    let logs = world.container("logs").await;
    let data = sample(4_000_000);
    logs.write("source", data.clone()).await.unwrap();

    let spec = proto::StageBlockSpec { source_range: range(1000, 3_000_000), ..block(&logs) };
    stage(&logs, spec, UploadFinish::default()).await.unwrap();
    logs.commit("target", &["1"]).await.unwrap();
    assert_eq!(logs.read("target").await.unwrap().data, data.slice(1000..3_001_000));

    logs.create_append("appended").await.unwrap();
    for source_range in [range(5, 10), None, None] {
        let spec = proto::AppendBlockSpec {
            source: source(&logs, "source"),
            source_range,
            ..logs.appending("appended")
        };
        logs.append(spec, "").await.unwrap();
    }
    let expected = [data.slice(5..15), data.clone(), data.clone()].concat();
    assert_eq!(logs.read("appended").await.unwrap().data, expected);

    logs.create_pages("pages", 4096).await.unwrap();
    let pages = async |from: &str, source_range| {
        let spec = proto::WritePagesSpec {
            container: logs.name(),
            blob: "pages".to_owned(),
            offset: 512,
            source: source(&logs, from),
            source_range,
            ..Default::default()
        };
        let finish = Some(UploadFinish::default());
        let message = proto::WritePagesRequest { spec: Some(spec), finish, ..Default::default() };
        Ok::<_, CallError>(logs.client().write_pages(tokio_stream::iter([message])).await?)
    };
    pages("source", range(100, 1024)).await.unwrap();
    let expected = [&[0; 512], &data[100..1124], &[0; 2560]].concat();
    assert_eq!(logs.read("pages").await.unwrap().data, expected);
    let error = pages("source", range(0, 513)).await.unwrap_err();
    assert_eq!(error.kind(), (Code::OutOfRange, "INVALID_PAGE_RANGE"));
    let error = pages("appended", None).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "REQUEST_BODY_TOO_LARGE"));
}

async fn data_of_a_source_is_checked_before_it_is_stored(world: &World) {
    let logs = world.container("logs").await;
    let written = logs.write("source", sample(100)).await.unwrap();
    let md5 = written.properties.clone().unwrap().content_md5;
    let finish = |md5: &[u8]| UploadFinish { md5: md5.to_vec().into(), ..Default::default() };
    let other = sample(16);

    let error = stage(&logs, block(&logs), finish(&other)).await.unwrap_err();
    assert_eq!(error.kind(), (Code::DataLoss, "MD5_MISMATCH"));
    let crc64 = UploadFinish { crc64: Some(1), ..Default::default() };
    let error = stage(&logs, block(&logs), crc64).await.unwrap_err();
    assert_eq!(error.kind(), (Code::DataLoss, "CRC64_MISMATCH"));
    let size = UploadFinish { size: Some(101), ..Default::default() };
    let error = stage(&logs, block(&logs), size).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    // Before the source is opened, which does not exist.
    let absent = proto::StageBlockSpec { source: source(&logs, "absent"), ..block(&logs) };
    let error = stage(&logs, absent, finish(b"short")).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_MD5"));
    let spec = proto::StageBlockSpec { source_range: range(0, 50), ..block(&logs) };
    let error = stage(&logs, spec, finish(&md5)).await.unwrap_err();
    assert_eq!(error.kind(), (Code::DataLoss, "MD5_MISMATCH"));
    let error = logs.commit("target", &["1"]).await.unwrap_err();
    assert_eq!(error.reason, "INVALID_BLOCK_LIST", "nothing was staged");

    stage(&logs, block(&logs), finish(&md5)).await.unwrap();
    logs.commit("target", &["1"]).await.unwrap();
    assert_eq!(logs.read("target").await.unwrap().data, sample(100));
}

async fn a_source_that_cannot_be_read_is_rejected(world: &World) {
    let logs = world.container("logs").await;
    let first = logs.write("source", sample(100)).await.unwrap();
    logs.write("source", sample(200)).await.unwrap();
    let rejected = async |spec: proto::StageBlockSpec| {
        let error = stage(&logs, spec, UploadFinish::default()).await.unwrap_err();
        (error.code, error.reason, error.fields)
    };
    let absent = proto::StageBlockSpec { source: source(&logs, "absent"), ..block(&logs) };
    assert_eq!(rejected(absent).await.0, Code::NotFound);
    let condition = if_match(&first.etag);
    let changed = proto::StageBlockSpec { source_conditions: condition, ..block(&logs) };
    assert_eq!(rejected(changed).await.1, "SOURCE_CONDITION_NOT_MET");
    let past = proto::StageBlockSpec { source_range: range(200, 1), ..block(&logs) };
    let (_, reason, fields) = rejected(past).await;
    assert_eq!(
        (reason.as_str(), fields),
        ("INVALID_RANGE", vec!["spec.source_range.offset".to_owned()])
    );
    let read = logs.get("source").await.unwrap();
    let condition = if_none_match(&read.etag);
    let same = proto::StageBlockSpec { source_conditions: condition, ..block(&logs) };
    let error = stage(&logs, same, UploadFinish::default()).await.unwrap_err();
    assert_eq!(error.reason, "SOURCE_CONDITION_NOT_MET");
    assert!(error.message.contains("source_conditions.if_none_match"), "{}", error.message);
    let empty = proto::StageBlockSpec { source_range: range(0, 0), ..block(&logs) };
    assert_eq!(rejected(empty).await.2, ["spec.source_range.length"]);
    let alone = proto::StageBlockSpec { source: None, source_range: range(0, 1), ..block(&logs) };
    assert_eq!(rejected(alone).await.1, "MISSING_REQUIRED_HEADER");
    let source_url = "https://elsewhere.example/a".to_owned();
    let foreign = proto::StageBlockSpec { source: None, source_url, ..block(&logs) };
    assert_eq!(rejected(foreign).await.1, "CANNOT_VERIFY_COPY_SOURCE");

    let with_data = |data: &'static [u8], finish| proto::StageBlockRequest {
        spec: Some(block(&logs)),
        data: Bytes::from_static(data),
        finish,
    };
    let data = with_data(b"x", Some(UploadFinish::default()));
    let unfinished = with_data(b"", None);
    for (message, field) in [(data, "data"), (unfinished, "finish")] {
        let sent = logs.client().stage_block(tokio_stream::iter([message])).await;
        let error = CallError::from(sent.unwrap_err());
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
        assert_eq!(error.fields, [field]);
    }
}

async fn a_source_needs_the_permission_to_read(world: &World) {
    let (logs, private) = (world.container("logs").await, world.container("private").await);
    for container in [&logs, &private] {
        container.write("source", "secret").await.unwrap();
    }
    logs.create_append("appended").await.unwrap();
    let held = |permissions| {
        let token = token(terms(Scope::of_container("logs"), permissions));
        world.signed_for_blob(&token, "logs").existing_container("logs")
    };
    for (permissions, from) in [("w", &logs), ("caw", &logs), ("rw", &private)] {
        let writer = held(permissions);
        let of = source(from, "source");
        let spec = proto::StageBlockSpec { source: of.clone(), ..block(&logs) };
        let error = stage(&writer, spec, UploadFinish::default()).await.unwrap_err();
        assert_eq!(error.code, Code::PermissionDenied, "{permissions}");
        let spec = proto::AppendBlockSpec { source: of, ..logs.appending("appended") };
        let error = writer.append(spec, "").await.unwrap_err();
        assert_eq!(error.code, Code::PermissionDenied, "{permissions}");
    }
    let reader = stage(&held("r"), block(&logs), UploadFinish::default()).await.unwrap_err();
    assert_eq!(reader.kind(), (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH"));
    assert_eq!(logs.read("appended").await.unwrap().data, "");
    stage(&held("rw"), block(&logs), UploadFinish::default()).await.unwrap();
    logs.commit("target", &["1"]).await.unwrap();
    assert_eq!(logs.read("target").await.unwrap().data, "secret");
}

async fn what_is_required_of_the_target_holds_with_a_source(world: &World) {
    let logs = world.container("logs").await;
    logs.write("source", sample(512)).await.unwrap();
    let created = logs.create_append("appended").await.unwrap();
    let lease_id = "00000000-0000-4000-8000-000000000001".to_owned();
    let appending = proto::AppendBlockSpec {
        source: source(&logs, "source"),
        position: Some(0),
        ..logs.appending("appended")
    };
    let conditions = if_none_match(&created.etag);
    for (spec, reason) in [
        (
            proto::AppendBlockSpec { position: Some(1), ..appending.clone() },
            "APPEND_POSITION_CONDITION_NOT_MET",
        ),
        (
            proto::AppendBlockSpec { size_max: Some(511), ..appending.clone() },
            "MAX_BLOB_SIZE_CONDITION_NOT_MET",
        ),
        (proto::AppendBlockSpec { conditions, ..appending.clone() }, "CONDITION_NOT_MET"),
    ] {
        assert_eq!(logs.append(spec, "").await.unwrap_err().reason, reason);
    }
    logs.append(appending.clone(), "").await.unwrap();
    let again = logs.append(appending, "").await.unwrap_err();
    assert_eq!(again.reason, "APPEND_POSITION_CONDITION_NOT_MET");
    assert_eq!(logs.read("appended").await.unwrap().data, sample(512));

    logs.create_pages("pages", 512).await.unwrap();
    let write = async |spec: proto::WritePagesSpec| {
        let finish = Some(UploadFinish::default());
        let message = proto::WritePagesRequest { spec: Some(spec), finish, ..Default::default() };
        Ok::<_, CallError>(logs.client().write_pages(tokio_stream::iter([message])).await?)
    };
    let pages = proto::WritePagesSpec {
        container: logs.name(),
        blob: "pages".to_owned(),
        source: source(&logs, "source"),
        ..Default::default()
    };
    let less_than = proto::SequenceConditions { less_than: Some(0), ..Default::default() };
    let unmet = proto::WritePagesSpec { sequence_conditions: Some(less_than), ..pages.clone() };
    assert_eq!(write(unmet).await.unwrap_err().reason, "SEQUENCE_NUMBER_CONDITION_NOT_MET");
    let past = proto::WritePagesSpec { offset: 512, ..pages.clone() };
    assert_eq!(write(past).await.unwrap_err().reason, "INVALID_PAGE_RANGE");
    write(pages).await.unwrap();
    assert_eq!(logs.read("pages").await.unwrap().data, sample(512));

    let leased = proto::StageBlockSpec { lease_id, blob: "source".to_owned(), ..block(&logs) };
    let error = stage(&logs, leased, UploadFinish::default()).await.unwrap_err();
    assert_eq!(error.reason, "LEASE_NOT_PRESENT_WITH_BLOB_OPERATION");
}
