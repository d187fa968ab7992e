//! Page blobs.

use bytes::Bytes;
use tonic::Code;
use trestle_proto::blob::v1::{self as proto, update_page_blob_request::SequenceNumber};
use trestle_tests::{CallError, Container, World, blob_scenario};

blob_scenario!(
    pages_are_written_cleared_and_listed_in_pages,
    changes_since_a_snapshot_are_listed,
    a_page_blob_is_resized_and_numbered,
    sequence_numbers_are_compared_and_have_a_bound,
    changes_are_listed_since_an_earlier_snapshot_only,
    rejects_pages_past_their_bounds,
);

fn writing(container: &Container, blob: &str, offset: u64) -> proto::WritePagesSpec {
    let (container, blob) = (container.name(), blob.to_owned());
    proto::WritePagesSpec { container, blob, offset, ..Default::default() }
}

async fn write(
    container: &Container,
    spec: proto::WritePagesSpec,
    data: Bytes,
) -> Result<proto::WritePagesResponse, CallError> {
    let finish = Some(proto::UploadFinish::default());
    let message = proto::WritePagesRequest { spec: Some(spec), data, finish };
    Ok(container.client().write_pages(tokio_stream::iter([message])).await?.into_inner())
}

async fn clear(container: &Container, offset: u64, length: u64) -> Result<(), CallError> {
    let request = proto::ClearPagesRequest {
        container: container.name(),
        blob: "a".to_owned(),
        offset,
        length,
        ..Default::default()
    };
    Ok(container.client().clear_pages(request).await.map(drop)?)
}

/// The ranges of pages with data, read so many at a time.
async fn ranges(container: &Container, page_size: i32) -> Vec<(u64, u64)> {
    let mut request = proto::ListPageRangesRequest {
        container: container.name(),
        blob: "a".to_owned(),
        page_size: Some(page_size),
        ..Default::default()
    };
    let mut found = Vec::new();
    loop {
        let page = container.client().list_page_ranges(request.clone()).await.unwrap();
        let page = page.into_inner();
        found.extend(page.ranges.into_iter().map(|range| (range.offset, range.length)));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return found;
        }
    }
}

async fn update(
    container: &Container,
    size: Option<u64>,
    sequence_number: Option<SequenceNumber>,
) -> Result<proto::Blob, CallError> {
    let request = proto::UpdatePageBlobRequest {
        container: container.name(),
        blob: "a".to_owned(),
        size,
        sequence_number,
        ..Default::default()
    };
    let response = container.client().update_page_blob(request).await?.into_inner();
    Ok(response.blob.unwrap())
}

async fn pages_are_written_cleared_and_listed_in_pages(world: &World) {
    let disks = world.container("disks").await;
    let created = disks.create_pages("a", 1 << 30).await.unwrap();
    assert_eq!((created.r#type(), created.size), (proto::BlobType::Page, 1 << 30));
    let large = Bytes::from(vec![7; 4 * 1024 * 1024]);

    let first = write(&disks, writing(&disks, "a", 512), vec![1; 512].into()).await.unwrap();
    let second = write(&disks, writing(&disks, "a", 1 << 20), large.clone()).await.unwrap();
    let staged = disks.stage("other", "A", large.clone()).await.unwrap();
    assert_eq!(second.crc64, staged, "the checksum of the same data");
    assert_ne!(first.blob.unwrap().etag, second.blob.unwrap().etag);
    clear(&disks, (1 << 20) + 512, 1024).await.unwrap();

    let mib = 1 << 20;
    let expected = [(512, 512), (mib, 512), (mib + 1536, 4 * mib - 1536)];
    for page_size in [1, 2, 100] {
        assert_eq!(ranges(&disks, page_size).await, expected);
    }
    let first = proto::ListPageRangesRequest {
        container: disks.name(),
        blob: "a".to_owned(),
        page_size: Some(1),
        ..Default::default()
    };
    let page = disks.client().list_page_ranges(first.clone()).await.unwrap().into_inner();
    let range = Some(proto::ByteRange { offset: 0, length: Some(4096) });
    let page_token = page.next_page_token;
    let other = proto::ListPageRangesRequest { range, page_token, ..first };
    let error = CallError::from(disks.client().list_page_ranges(other).await.unwrap_err());
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE"));
    let range = proto::ByteRange { offset: mib - 1, length: Some(1026) };
    let request = proto::ReadBlobRequest { range: Some(range), ..disks.reading("a") };
    let read = disks.read_with(request).await.unwrap().data;
    assert_eq!(read, [vec![0; 1], vec![7; 512], vec![0; 513]].concat());
}

async fn changes_since_a_snapshot_are_listed(world: &World) {
    let disks = world.container("disks").await;
    disks.create_pages("a", 1 << 20).await.unwrap();
    write(&disks, writing(&disks, "a", 0), vec![1; 2048].into()).await.unwrap();
    let snapshot = disks.snapshot("a").await.unwrap().snapshot;
    write(&disks, writing(&disks, "a", 512), vec![2; 512].into()).await.unwrap();
    clear(&disks, 1024, 512).await.unwrap();

    let request = proto::ListPageRangesRequest {
        container: disks.name(),
        blob: "a".to_owned(),
        previous_snapshot: snapshot.clone(),
        ..Default::default()
    };
    let list = disks.client().list_page_ranges(request.clone()).await.unwrap().into_inner();
    let range = |range: &proto::PageRange| (range.offset, range.length, range.is_cleared);
    let found: Vec<_> = list.ranges.iter().map(range).collect();
    assert_eq!(found, [(512, 512, false), (1024, 512, true)]);
    let of_snapshot = proto::ListPageRangesRequest {
        snapshot: snapshot.clone(),
        previous_snapshot: String::new(),
        ..request.clone()
    };
    let list = disks.client().list_page_ranges(of_snapshot).await.unwrap().into_inner();
    assert_eq!(list.ranges.iter().map(range).collect::<Vec<_>>(), [(0, 2048, false)]);
    let read = proto::ReadBlobRequest { snapshot, ..disks.reading("a") };
    assert_eq!(disks.read_with(read).await.unwrap().data[..2048], [1; 2048]);
    disks.create_pages("a", 512).await.unwrap();
    let status = disks.client().list_page_ranges(request).await.unwrap_err();
    assert_eq!(CallError::from(status).kind(), (Code::Aborted, "BLOB_OVERWRITTEN"));
}

async fn a_page_blob_is_resized_and_numbered(world: &World) {
    let disks = world.container("disks").await;
    disks.create_pages("a", 1024).await.unwrap();
    write(&disks, writing(&disks, "a", 0), vec![1; 1024].into()).await.unwrap();

    let changed = update(&disks, Some(512), Some(SequenceNumber::Set(7))).await.unwrap();
    assert_eq!((changed.size, changed.sequence_number), (512, 7));
    let changed = update(&disks, Some(1024), Some(SequenceNumber::Increment(true))).await.unwrap();
    assert_eq!((changed.size, changed.sequence_number), (1024, 8));
    assert_eq!(disks.read("a").await.unwrap().data, [vec![1; 512], vec![0; 512]].concat());

    let equal = |number| proto::WritePagesSpec {
        sequence_conditions: Some(proto::SequenceConditions {
            equal: Some(number),
            ..Default::default()
        }),
        ..writing(&disks, "a", 0)
    };
    let error = write(&disks, equal(7), vec![2; 512].into()).await.unwrap_err();
    assert_eq!(error.kind(), (Code::Aborted, "SEQUENCE_NUMBER_CONDITION_NOT_MET"));
    write(&disks, equal(8), vec![2; 512].into()).await.unwrap();
}

async fn sequence_numbers_are_compared_and_have_a_bound(world: &World) {
    let disks = world.container("disks").await;
    disks.create_pages("a", 512).await.unwrap();
    let raised = update(&disks, None, Some(SequenceNumber::Raise(7))).await.unwrap();
    let lower = update(&disks, None, Some(SequenceNumber::Raise(3))).await.unwrap();
    assert_eq!((raised.sequence_number, lower.sequence_number), (7, 7));

    let conditions = proto::SequenceConditions::default();
    for (number, at_most, less_than, equal) in
        [(6, false, false, false), (7, true, false, true), (8, true, true, false)]
    {
        let stated = Some(number);
        for (sequence_conditions, is_met) in [
            (proto::SequenceConditions { at_most: stated, ..conditions }, at_most),
            (proto::SequenceConditions { less_than: stated, ..conditions }, less_than),
            (proto::SequenceConditions { equal: stated, ..conditions }, equal),
        ] {
            let sequence_conditions = Some(sequence_conditions);
            let spec = proto::WritePagesSpec { sequence_conditions, ..writing(&disks, "a", 0) };
            let written = write(&disks, spec, vec![2; 512].into()).await;
            assert_eq!(written.is_ok(), is_met, "{sequence_conditions:?}");
        }
    }

    let largest = i64::MAX as u64;
    update(&disks, None, Some(SequenceNumber::Set(largest))).await.unwrap();
    let past = update(&disks, None, Some(SequenceNumber::Increment(true))).await.unwrap_err();
    assert_eq!(past.kind(), (Code::OutOfRange, "SEQUENCE_NUMBER_INCREMENT_TOO_LARGE"));
    let past = update(&disks, None, Some(SequenceNumber::Set(largest + 1))).await.unwrap_err();
    assert_eq!(past.kind(), (Code::InvalidArgument, "INVALID_HEADER_VALUE"));
    assert_eq!(disks.get("a").await.unwrap().sequence_number, largest);
}

async fn changes_are_listed_since_an_earlier_snapshot_only(world: &World) {
    let disks = world.container("disks").await;
    disks.create_pages("a", 512).await.unwrap();
    let mut snapshots = Vec::new();
    for _ in 0..2 {
        snapshots.push(disks.snapshot("a").await.unwrap().snapshot);
    }
    let list = async |snapshot: &str, previous: &str| {
        let request = proto::ListPageRangesRequest {
            container: disks.name(),
            blob: "a".to_owned(),
            snapshot: snapshot.to_owned(),
            previous_snapshot: previous.to_owned(),
            ..Default::default()
        };
        let listed = disks.client().list_page_ranges(request).await;
        listed.map(drop).map_err(CallError::from)
    };
    list(&snapshots[1], &snapshots[0]).await.unwrap();
    let newer = list(&snapshots[0], &snapshots[1]).await.unwrap_err();
    assert_eq!(newer.kind(), (Code::InvalidArgument, "PREVIOUS_SNAPSHOT_CANNOT_BE_NEWER"));
    let absent = list("", "2020-07-24T14:34:28.2821851Z").await.unwrap_err();
    assert_eq!(absent.kind(), (Code::NotFound, "PREVIOUS_SNAPSHOT_NOT_FOUND"));
    let malformed = list("", "yesterday").await.unwrap_err();
    assert_eq!(malformed.kind(), (Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE"));
}

async fn rejects_pages_past_their_bounds(world: &World) {
    let disks = world.container("disks").await;
    for size in [1, 513, (8 << 40) + 512] {
        let error = disks.create_pages("a", size).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_HEADER_VALUE"), "{size}");
    }
    disks.create_pages("largest", 8 << 40).await.unwrap();
    disks.create_pages("a", 1024).await.unwrap();
    for (offset, length) in [(1, 512), (0, 511), (0, 0), (512, 1024), (1024, 512)] {
        let error =
            write(&disks, writing(&disks, "a", offset), vec![1; length].into()).await.unwrap_err();
        assert_eq!(error.kind(), (Code::OutOfRange, "INVALID_PAGE_RANGE"), "{offset} {length}");
        let error = clear(&disks, offset, length as u64).await.unwrap_err();
        assert_eq!(error.kind(), (Code::OutOfRange, "INVALID_PAGE_RANGE"), "{offset} {length}");
    }
    disks.write("block", "text").await.unwrap();
    let error = write(&disks, writing(&disks, "block", 0), vec![1; 512].into()).await.unwrap_err();
    assert_eq!(error.kind(), (Code::FailedPrecondition, "INVALID_BLOB_TYPE"));
    let error = disks.create_pages("block", 512).await.unwrap_err();
    assert_eq!(error.kind(), (Code::FailedPrecondition, "INVALID_BLOB_TYPE"));
    assert_eq!(disks.read("a").await.unwrap().data, vec![0; 1024]);

    let before = disks.get("a").await.unwrap();
    for (nothing, field) in [(None, "size"), (Some(SequenceNumber::Increment(false)), "increment")]
    {
        let error = update(&disks, None, nothing).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
        assert_eq!(error.fields, [field]);
    }
    assert_eq!(disks.get("a").await.unwrap(), before, "the etag is the same");
}
