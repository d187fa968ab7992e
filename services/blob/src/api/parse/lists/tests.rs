//! Tests of requests for pages of containers and of blobs: bounds, defaults and choices that exclude each other.

use super::*;
use crate::api::parse::tests::assert_rejected;

fn blobs() -> proto::ListBlobsRequest {
    proto::ListBlobsRequest { container: "logs".to_owned(), ..Default::default() }
}

fn containers() -> proto::ListContainersRequest {
    proto::ListContainersRequest::default()
}

#[test]
fn a_page_of_blobs_has_1_to_5000_items() {
    for (page_size, expected) in
        [(None, 5000), (Some(1), 1), (Some(5000), 5000), (Some(5001), 5000), (Some(i32::MAX), 5000)]
    {
        let request = proto::ListBlobsRequest { page_size, ..blobs() };
        let (container, list) = list_blobs(request).expect("valid");
        assert_eq!(list.page_size, expected, "{page_size:?}");
        assert_eq!(container.as_str(), "logs");
    }
    for page_size in [0, -1, i32::MIN] {
        let request = proto::ListBlobsRequest { page_size: Some(page_size), ..blobs() };
        let expected = [(Reason::OutOfRangeQueryParameterValue, "page_size")];
        assert_rejected(list_blobs(request), &expected);
    }
}

#[test]
fn a_page_of_containers_may_be_empty_and_has_at_most_5000() {
    for (page_size, expected) in [(None, 5000), (Some(0), 0), (Some(7), 7), (Some(5001), 5000)] {
        let request = proto::ListContainersRequest { page_size, ..containers() };
        let list = list_containers(request).expect("valid");
        assert_eq!(list.page_size, expected, "{page_size:?}");
    }
    for page_size in [-1, i32::MIN] {
        let request = proto::ListContainersRequest { page_size: Some(page_size), ..containers() };
        assert_rejected(list_containers(request), &[(Reason::InvalidInput, "page_size")]);
    }
}

#[test]
fn names_that_bound_a_page_of_blobs_have_at_most_1024_characters() {
    let name = |chars| "é".repeat(chars);
    let request = |chars| proto::ListBlobsRequest {
        prefix: name(chars),
        start_from: name(chars),
        end_before: name(chars),
        ..blobs()
    };
    let (_, list) = list_blobs(request(1024)).expect("valid");
    assert_eq!([list.prefix, list.start_from, list.end_before], [(); 3].map(|()| name(1024)));
    let fields = ["prefix", "start_from", "end_before"];
    let expected = fields.map(|field| (Reason::InvalidUri, field));
    assert_rejected(list_blobs(request(1025)), &expected);
}

#[test]
fn a_prefix_of_containers_is_no_longer_than_a_name() {
    let list = |length| {
        let request = proto::ListContainersRequest { prefix: "a".repeat(length), ..containers() };
        list_containers(request)
    };
    assert_eq!(list(63).expect("valid").prefix.len(), 63);
    assert_rejected(list(64), &[(Reason::OutOfRangeInput, "prefix")]);
}

#[test]
fn a_delimiter_is_any_text_of_at_most_64_bytes() {
    let list = |delimiter: &str| {
        list_blobs(proto::ListBlobsRequest { delimiter: delimiter.to_owned(), ..blobs() })
    };
    let (fits, long) = ("é".repeat(32), "é".repeat(33));
    for delimiter in ["", "/", "//", "\u{0}", &fits] {
        assert_eq!(list(delimiter).expect("valid").1.delimiter, delimiter);
    }
    assert_rejected(list(&long), &[(Reason::OutOfRangeQueryParameterValue, "delimiter")]);
}

#[test]
fn snapshots_are_not_listed_in_groups_and_versions_are() {
    let list = |delimiter: &str, include_snapshots, include_versions| {
        let delimiter = delimiter.to_owned();
        list_blobs(proto::ListBlobsRequest {
            delimiter,
            include_snapshots,
            include_versions,
            ..blobs()
        })
    };
    let expected = [(Reason::InvalidQueryParameterValue, "delimiter")];
    assert_rejected(list("/", true, false), &expected);
    assert_rejected(list("/", true, true), &expected);
    for (delimiter, snapshots, versions) in [("", true, true), ("/", false, true)] {
        let past = list(delimiter, snapshots, versions).expect("valid").1.past;
        assert_eq!((past.snapshots, past.versions, past.deleted), (snapshots, versions, false));
    }
}

#[test]
fn what_a_page_includes_is_what_the_request_names() {
    for flags in 0_u8..4 {
        let (one, other) = (flags & 1 != 0, flags & 2 != 0);
        let request = proto::ListBlobsRequest {
            include_uncommitted: one,
            include_deleted: other,
            page_token: "t".to_owned(),
            ..blobs()
        };
        let (_, list) = list_blobs(request).expect("valid");
        assert_eq!((list.with_uncommitted, list.past.deleted), (one, other));
        assert_eq!(list.page_token, "t");

        let request = proto::ListContainersRequest {
            include_deleted: one,
            include_system: other,
            page_token: "t".to_owned(),
            ..containers()
        };
        let list = list_containers(request).expect("valid");
        assert_eq!((list.with_deleted, list.with_system), (one, other));
        assert_eq!(list.page_token, "t");
    }
}

#[test]
fn every_violation_of_a_page_is_reported() {
    let request = proto::ListBlobsRequest {
        container: "UPPER".to_owned(),
        prefix: "a".repeat(1025),
        delimiter: "/".repeat(65),
        page_size: Some(0),
        include_snapshots: true,
        ..Default::default()
    };
    let expected = [
        (Reason::InvalidResourceName, "container"),
        (Reason::InvalidUri, "prefix"),
        (Reason::OutOfRangeQueryParameterValue, "delimiter"),
        (Reason::OutOfRangeQueryParameterValue, "page_size"),
        (Reason::InvalidQueryParameterValue, "delimiter"),
    ];
    assert_rejected(list_blobs(request), &expected);
}
