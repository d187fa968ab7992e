//! Append blobs.

use bytes::Bytes;
use futures::future::join_all;
use tonic::Code;
use trestle_proto::blob::v1 as proto;
use trestle_tests::{Container, World, blob_scenario};

blob_scenario!(
    appends_are_read_in_their_order,
    concurrent_appends_are_all_there_and_whole,
    rejects_appends_by_position_size_and_type,
    a_sealed_blob_is_closed_to_appends_only,
    a_copy_is_sealed_on_request,
    rejects_blocks_past_their_bounds_and_with_other_digests,
);

async fn seal(container: &Container, blob: &str) -> proto::Blob {
    let (container_name, blob) = (container.name(), blob.to_owned());
    let request = proto::SealBlobRequest { container: container_name, blob, ..Default::default() };
    container.client().seal_blob(request).await.unwrap().into_inner().blob.unwrap()
}

async fn appends_are_read_in_their_order(world: &World) {
    let logs = world.container("logs").await;
    let created = logs.create_append("a").await.unwrap();
    assert_eq!((created.r#type(), created.size), (proto::BlobType::Append, 0));
    let large = Bytes::from(vec![7; 3_000_000]);

    let first = logs.append(logs.appending("a"), "hello world").await.unwrap();
    let second = logs.append(logs.appending("a"), large.clone()).await.unwrap();

    let hello = u64::from_le_bytes(*b"\xbe\x8e\xea\xf6\xc3\xd5\x29\x8d");
    assert_eq!((first.offset, first.crc64), (0, hello));
    let staged = logs.stage("other", "A", large.clone()).await.unwrap();
    assert_eq!((second.offset, second.crc64), (11, staged));
    let blob = second.blob.unwrap();
    assert_eq!((blob.size, blob.committed_block_count, blob.is_sealed), (3_000_011, 2, false));
    assert_ne!(first.blob.unwrap().etag, blob.etag);
    let read = logs.read("a").await.unwrap();
    assert_eq!(read.data, [b"hello world".as_ref(), large.as_ref()].concat());
    assert_eq!(read.blob, blob);
    let range = proto::ByteRange { offset: 9, length: Some(5) };
    let request = proto::ReadBlobRequest { range: Some(range), ..logs.reading("a") };
    assert_eq!(logs.read_with(request).await.unwrap().data, b"ld\x07\x07\x07"[..]);
    assert_eq!(logs.list("", "").await.unwrap(), ["a"]);
    logs.delete("a").await.unwrap();
    assert_eq!(logs.read("a").await.unwrap_err().reason, "BLOB_NOT_FOUND");
}

async fn concurrent_appends_are_all_there_and_whole(world: &World) {
    let logs = world.container("logs").await;
    logs.create_append("a").await.unwrap();
    let line = |number: usize| format!("{number:04} {}\n", "x".repeat(number));

    let appends = (0..16).map(async |writer| {
        for number in (writer..160).step_by(16) {
            logs.append(logs.appending("a"), line(number)).await.unwrap();
        }
    });
    join_all(appends).await;

    let text = String::from_utf8(logs.read("a").await.unwrap().data.to_vec()).unwrap();
    let mut lines: Vec<_> = text.split_inclusive('\n').collect();
    lines.sort_unstable();
    assert_eq!(lines, (0..160).map(line).collect::<Vec<_>>());
}

async fn rejects_appends_by_position_size_and_type(world: &World) {
    let logs = world.container("logs").await;
    logs.create_append("a").await.unwrap();
    logs.write("block", "text").await.unwrap();
    logs.append(logs.appending("a"), "12345").await.unwrap();
    let at = |position| proto::AppendBlockSpec { position: Some(position), ..logs.appending("a") };
    let up_to = |size| proto::AppendBlockSpec { size_max: Some(size), ..logs.appending("a") };

    let error = logs.append(at(4), "6").await.unwrap_err();
    assert_eq!(error.kind(), (Code::Aborted, "APPEND_POSITION_CONDITION_NOT_MET"));
    let error = logs.append(up_to(5), "6").await.unwrap_err();
    assert_eq!(error.kind(), (Code::FailedPrecondition, "MAX_BLOB_SIZE_CONDITION_NOT_MET"));
    let error = logs.append(logs.appending("block"), "6").await.unwrap_err();
    assert_eq!(error.kind(), (Code::FailedPrecondition, "INVALID_BLOB_TYPE"));
    let error = logs.append(logs.appending("absent"), "6").await.unwrap_err();
    assert_eq!(error.kind(), (Code::NotFound, "BLOB_NOT_FOUND"));
    for error in [
        logs.write("a", "text").await.unwrap_err(),
        logs.stage("a", "A", "x").await.unwrap_err(),
        logs.commit("a", &[]).await.unwrap_err(),
        logs.create_append("block").await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), (Code::FailedPrecondition, "INVALID_BLOB_TYPE"));
    }
    logs.append(at(5), "6").await.unwrap();
    assert_eq!(logs.read("a").await.unwrap().data, "123456");
}

async fn a_sealed_blob_is_closed_to_appends_only(world: &World) {
    let logs = world.container("logs").await;
    logs.create_append("a").await.unwrap();
    let appended = logs.append(logs.appending("a"), "text").await.unwrap().blob.unwrap();

    let sealed = seal(&logs, "a").await;
    assert_eq!((sealed.is_sealed, sealed.etag), (true, appended.etag));
    assert!(seal(&logs, "a").await.is_sealed);
    let error = logs.append(logs.appending("a"), "more").await.unwrap_err();
    assert_eq!(error.kind(), (Code::FailedPrecondition, "BLOB_IS_SEALED"));
    assert_eq!(logs.read("a").await.unwrap().data, "text");
    logs.create_append("a").await.unwrap();
    assert_eq!(logs.get("a").await.unwrap().size, 0);
}

async fn a_copy_is_sealed_on_request(world: &World) {
    let logs = world.container("logs").await;
    logs.create_append("a").await.unwrap();
    logs.append(logs.appending("a"), "one").await.unwrap();
    logs.write("block", "text").await.unwrap();
    let copy = async |from: &str, blob: &str, is_sealed| {
        let request = proto::CopyBlobRequest { is_sealed, ..logs.copying(from, blob) };
        logs.copy(request).await
    };
    assert!(copy("a", "sealed", true).await.unwrap().is_sealed);
    let closed = logs.append(logs.appending("sealed"), "two").await.unwrap_err();
    assert_eq!(closed.kind(), (Code::FailedPrecondition, "BLOB_IS_SEALED"));
    assert_eq!(logs.read("sealed").await.unwrap().data, "one");
    assert!(!copy("sealed", "open", false).await.unwrap().is_sealed);
    logs.append(logs.appending("open"), "two").await.unwrap();
    assert_eq!(logs.read("open").await.unwrap().data, "onetwo");
    let of = logs.get("open").await.unwrap().copy.unwrap();
    assert_eq!((of.copied_bytes, of.total_bytes), (3, 3), "what was copied, not what came after");
    let other = copy("block", "text", true).await.unwrap_err();
    assert_eq!(other.kind(), (Code::FailedPrecondition, "INVALID_BLOB_TYPE"));
    assert_eq!(logs.get("text").await.unwrap_err().reason, "BLOB_NOT_FOUND");
}

async fn rejects_blocks_past_their_bounds_and_with_other_digests(world: &World) {
    let logs = world.container("logs").await;
    logs.create_append("a").await.unwrap();

    let error = logs.append(logs.appending("a"), "").await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_HEADER_VALUE"));
    let finish = proto::UploadFinish { crc64: Some(1), ..Default::default() };
    let spec = Some(logs.appending("a"));
    let wrong = proto::AppendBlockRequest { spec, data: "x".into(), finish: Some(finish) };
    let status = logs.client().append_block(tokio_stream::iter([wrong])).await.unwrap_err();
    assert_eq!(status.code(), Code::DataLoss);
    let part = |spec| proto::AppendBlockRequest {
        spec,
        data: Bytes::from(vec![0; 4 * 1024 * 1024]),
        finish: None,
    };
    let parts = std::iter::once(part(Some(logs.appending("a"))));
    let parts = parts.chain((0..25).map(move |_| part(None)));
    let status = logs.client().append_block(tokio_stream::iter(parts)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(status.message().contains("104857600"), "{status}");
    assert_eq!(logs.read("a").await.unwrap().data, "");
}
