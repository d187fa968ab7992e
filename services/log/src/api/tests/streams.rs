//! Streams and segments through the interface.

use super::*;
use crate::fixture::SECOND;

#[tokio::test]
async fn a_stream_is_created_changed_shown_and_deleted() {
    let api = api();
    let stream = proto::LogStream {
        name: "web".to_owned(),
        labels: [("team".to_owned(), "a".to_owned())].into(),
        ..proto::LogStream::default()
    };
    let request = proto::CreateStreamRequest { stream: Some(stream.clone()) };
    let created = api.create_stream(Request::new(request.clone())).await.unwrap().into_inner();
    assert!(created.created);
    assert!(!api.create_stream(Request::new(request)).await.unwrap().into_inner().created);
    let other = proto::LogStream { labels: Default::default(), ..stream };
    let request = proto::CreateStreamRequest { stream: Some(other.clone()) };
    let status = api.create_stream(Request::new(request)).await.unwrap_err();
    assert_eq!(status.code(), Code::AlreadyExists);

    let update_mask = Some(prost_types::FieldMask { paths: vec!["labels".to_owned()] });
    let request = proto::UpdateStreamRequest { stream: Some(other), update_mask };
    let updated = api.update_stream(Request::new(request)).await.unwrap().into_inner();
    assert!(updated.stream.as_ref().unwrap().labels.is_empty());

    append(&api, append_of("web", &[record(0, "a"), record(1, "b")])).await.unwrap();
    let get = proto::GetStreamRequest { stream: "web".to_owned() };
    let shown = api.get_stream(Request::new(get.clone())).await.unwrap().into_inner();
    assert_eq!(shown.stream, updated.stream);
    let stats = shown.stats.unwrap();
    assert_eq!((stats.next_sequence, stats.unsealed_records, stats.segments), (2, 2, 0));

    let delete = proto::DeleteStreamRequest { stream: "web".to_owned() };
    api.delete_stream(Request::new(delete.clone())).await.unwrap();
    let status = api.get_stream(Request::new(get)).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let status = api.delete_stream(Request::new(delete)).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
}

#[tokio::test]
async fn segments_are_listed_in_pages_and_by_time_with_rising_snapshots() {
    let api = api();
    create(&api, "web").await;
    let mut snapshots = Vec::new();
    for at in 0..5 {
        append(&api, append_of("web", &[record(at * SECOND, "a"), record((at + 1) * SECOND, "b")]))
            .await
            .unwrap();
        let flush = proto::FlushStreamRequest { stream: "web".to_owned() };
        let sealed = api.flush_stream(Request::new(flush)).await.unwrap().into_inner();
        assert_eq!((sealed.records, sealed.segments), (2, 1));
        snapshots.push(sealed.snapshot);
    }
    assert_eq!(snapshots, [1, 2, 3, 4, 5]);
    let list = async |request| {
        let listed = api.list_segments(Request::new(request)).await;
        listed.map(Response::into_inner)
    };
    let all = proto::ListSegmentsRequest { stream: "web".to_owned(), ..Default::default() };

    let mut found = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = proto::ListSegmentsRequest { page_size: Some(2), page_token, ..all.clone() };
        let page = list(request).await.unwrap();
        assert!(page.segments.len() <= 2 && page.snapshot == 5);
        found.extend(page.segments);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(found.len(), 5);
    for (segment, sequence) in found.iter().zip((0..).step_by(2)) {
        assert_eq!((segment.records, segment.level), (2, 0));
        assert_eq!((segment.min_sequence, segment.max_sequence), (sequence, sequence + 1));
        let url = &segment.url;
        assert!(url.starts_with("memory:///") || url.starts_with("memory://"), "{url}");
        assert!(url.contains("/stream=web/date=2027-01-15/") && url.ends_with(".parquet"), "{url}");
    }

    // By the times of their records: from 1 s to 3 s before the end.
    let (start_time, end_time) = (found[1].max_time, found[3].min_time);
    let request = proto::ListSegmentsRequest { start_time, end_time, ..all.clone() };
    let within = list(request).await.unwrap().segments;
    assert_eq!(within, found[1..3], "those that begin before the end and end after the start");

    for page_size in [0, 1_001, -1] {
        let request = proto::ListSegmentsRequest { page_size: Some(page_size), ..all.clone() };
        assert_eq!(violated(&list(request).await.unwrap_err()), ["page_size"], "{page_size}");
    }
    let request = proto::ListSegmentsRequest { page_token: "!".to_owned(), ..all };
    assert_eq!(violated(&list(request).await.unwrap_err()), ["page_token"]);
}

#[tokio::test]
async fn a_token_of_another_listing_is_invalid_input() {
    use tonic_types::StatusExt as _;

    let api = api();
    create(&api, "web").await;
    create(&api, "web2").await;
    let streams = async |prefix: &str, page_token| {
        let (prefix, page_size) = (prefix.to_owned(), Some(1));
        let request = proto::ListStreamsRequest { prefix, page_size, page_token };
        api.list_streams(Request::new(request)).await.map(Response::into_inner)
    };
    let page_token = streams("", String::new()).await.unwrap().next_page_token;
    assert!(!page_token.is_empty());
    let segments = proto::ListSegmentsRequest {
        stream: "web".to_owned(),
        page_token: page_token.clone(),
        ..Default::default()
    };

    for status in [
        streams("w", page_token).await.unwrap_err(),
        streams("", "!".to_owned()).await.unwrap_err(),
        api.list_segments(Request::new(segments)).await.unwrap_err(),
    ] {
        let info = status.get_details_error_info().unwrap();
        assert_eq!((status.code(), info.reason.as_str()), (Code::InvalidArgument, "INVALID_INPUT"));
        assert_eq!(violated(&status), ["page_token"]);
    }
}
