//! Uploads: streams of messages that end as they should, and those that do not.

use bytes::Bytes;
use tonic::Code;
use trestle_proto::blob::v1::{
    AccessTier, AppendBlockSpec, BlobConditions, BlobSource, CopyBlobRequest, HttpProperties,
    UploadFinish, WriteBlobRequest, WriteBlobSpec,
};
use trestle_tests::{Container, World, blob_scenario};

blob_scenario!(
    data_may_come_in_any_number_of_messages,
    data_that_differs_from_what_is_stated_is_not_stored,
    a_stream_without_its_end_stores_nothing,
    misplaced_parts_of_a_stream_are_rejected,
    a_write_that_is_not_permitted_is_rejected_before_its_data,
    errors_name_the_fields_of_the_request,
);

fn first(container: &Container, data: impl Into<Bytes>) -> WriteBlobRequest {
    WriteBlobRequest { spec: Some(container.spec("a")), data: data.into(), finish: None }
}

fn more(data: impl Into<Bytes>) -> WriteBlobRequest {
    WriteBlobRequest { data: data.into(), ..Default::default() }
}

fn end(finish: UploadFinish) -> WriteBlobRequest {
    WriteBlobRequest { finish: Some(finish), ..Default::default() }
}

async fn data_may_come_in_any_number_of_messages(world: &World) {
    let logs = world.container("logs").await;
    let piece = Bytes::from((0..700_001).map(|at| (at * 13) as u8).collect::<Vec<_>>());
    let mut messages = vec![first(&logs, piece.clone())];
    messages.extend((0..14).map(|_| more(piece.clone())));
    let finish = UploadFinish { size: Some(15 * 700_001), ..Default::default() };
    messages.push(end(finish));

    let written = logs.send(messages).await.unwrap();

    let whole: Bytes = vec![piece.as_ref(); 15].concat().into();
    assert_eq!(written.blob.unwrap().size, whole.len() as u64);
    assert_eq!(logs.read("a").await.unwrap().data, whole);
    let finish = UploadFinish { crc64: Some(written.crc64), ..Default::default() };
    logs.send(vec![
        first(&logs, whole.slice(..4_000_000)),
        more(whole.slice(4_000_000..8_000_000)),
        more(whole.slice(8_000_000..)),
        end(finish),
    ])
    .await
    .unwrap();
}

async fn data_that_differs_from_what_is_stated_is_not_stored(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "before").await.unwrap();
    let md5 = |md5: &'static [u8]| UploadFinish { md5: md5.into(), ..Default::default() };
    let hello = b"\x5e\xb6\x3b\xbb\xe0\x1e\xee\xd0\x93\xcb\x22\xbb\x8f\x5a\xcd\xc3";
    let size = UploadFinish { size: Some(10), ..Default::default() };
    let crc64 = UploadFinish { crc64: Some(1), ..Default::default() };
    for (finish, code, reason) in [
        (md5(&[1; 16]), Code::DataLoss, "MD5_MISMATCH"),
        (md5(&[1; 15]), Code::InvalidArgument, "INVALID_MD5"),
        (crc64, Code::DataLoss, "CRC64_MISMATCH"),
        (size, Code::InvalidArgument, "INVALID_INPUT"),
    ] {
        let error = logs.send(vec![first(&logs, "hello world"), end(finish)]).await.unwrap_err();
        assert_eq!(error.kind(), (code, reason));
        assert_eq!(logs.read("a").await.unwrap().data, "before");
    }

    let crc64 = Some(u64::from_le_bytes(*b"\xbe\x8e\xea\xf6\xc3\xd5\x29\x8d"));
    let finish = UploadFinish { size: Some(11), crc64, ..md5(hello) };
    logs.send(vec![first(&logs, "hello world"), end(finish)]).await.unwrap();
    let stored = logs.get("a").await.unwrap().properties.unwrap().content_md5;
    assert_eq!(stored.as_ref(), hello);
}

async fn a_stream_without_its_end_stores_nothing(world: &World) {
    let logs = world.container("logs").await;
    for data in [Bytes::from("small"), vec![1; 5_000_000].into()] {
        let rest = data.slice(data.len() / 2..);
        let error = logs
            .send(vec![first(&logs, data.slice(..data.len() / 2)), more(rest)])
            .await
            .unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
        assert_eq!(error.fields, ["finish"]);
        assert_eq!(logs.read("a").await.unwrap_err().reason, "BLOB_NOT_FOUND");
    }
}

async fn misplaced_parts_of_a_stream_are_rejected(world: &World) {
    let logs = world.container("logs").await;
    let twice = vec![first(&logs, "a"), first(&logs, "b"), end(UploadFinish::default())];
    let headless = vec![more("a"), end(UploadFinish::default())];
    for (messages, reason) in
        [(Vec::new(), "INVALID_INPUT"), (twice, "INVALID_INPUT"), (headless, "INVALID_INPUT")]
    {
        let error = logs.send(messages).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, reason));
        assert_eq!(error.fields, ["spec"]);
    }
    let ended = || WriteBlobRequest { data: "b".into(), ..end(UploadFinish::default()) };
    for behind in [more("lost"), end(UploadFinish::default())] {
        let error = logs.send(vec![first(&logs, "a"), ended(), behind]).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
        assert_eq!(error.fields, ["finish"]);
        assert_eq!(logs.read("a").await.unwrap_err().reason, "BLOB_NOT_FOUND");
    }
    let large = vec![0; 4 * 1024 * 1024 + 1];
    let error = logs.send(vec![first(&logs, large)]).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "REQUEST_BODY_TOO_LARGE"));
}

async fn a_write_that_is_not_permitted_is_rejected_before_its_data(world: &World) {
    let absent = world.existing_container("absent");
    let (sender, messages) = tokio::sync::mpsc::channel(1);
    sender.send(first(&absent, "data")).await.unwrap();
    let messages = tokio_stream::wrappers::ReceiverStream::new(messages);

    // The client sends nothing more, and does not end its stream.
    let error = absent.client().write_blob(messages).await.unwrap_err();

    assert_eq!(error.code(), Code::NotFound);
    drop(sender);
}

async fn errors_name_the_fields_of_the_request(world: &World) {
    let logs = world.container("logs").await;
    let mut spec = logs.spec("");
    spec.metadata = [("1".to_owned(), String::new())].into();
    spec.access_tier = AccessTier::P10.into();
    let etags = vec!["\"open".to_owned()];
    spec.conditions = Some(BlobConditions { if_match: etags, ..Default::default() });
    let error = logs.write_with(spec, "x").await.unwrap_err();
    let mut fields = error.fields;
    fields.sort_unstable();
    assert_eq!(
        fields,
        ["spec.access_tier", "spec.blob", "spec.conditions.if_match", "spec.metadata"]
    );
    let content_md5 = vec![1; 16].into();
    let properties = Some(HttpProperties { content_md5, ..Default::default() });
    let spec = WriteBlobSpec { properties, ..logs.spec("a") };
    let error = logs.write_with(spec, "x").await.unwrap_err();
    assert_eq!(error.kind(), (Code::DataLoss, "MD5_MISMATCH"));
    assert_eq!(error.fields, ["spec.properties.content_md5"]);

    let source = BlobSource { snapshot: "now".to_owned(), ..Default::default() };
    let copy = CopyBlobRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        source: Some(source.clone()),
        ..Default::default()
    };
    let error = logs.copy(copy).await.unwrap_err();
    assert_eq!(error.fields, ["source.snapshot", "source.container", "source.blob"]);
    let spec = AppendBlockSpec { source: Some(source), ..logs.appending("a") };
    let error = logs.append(spec, "").await.unwrap_err();
    assert_eq!(error.fields, ["spec.source.snapshot", "spec.source.container", "spec.source.blob"]);
}
