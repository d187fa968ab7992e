//! Conditions: those of Azure, which differ from HTTP.

use trestle_tests::{BlobRest, RestRequest};

const PAST: &str = "Fri, 21 Nov 2008 12:00:00 GMT";
const FUTURE: &str = "Fri, 21 Nov 2098 12:00:00 GMT";

#[tokio::test]
async fn tags_have_conditions_on_the_blob_in_headers_of_their_own() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let etag = rest.blob("/photos/x", "1").await;
    let other = "\"0x8D0000000000001\"";
    let body = "<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>";
    for (name, value, status) in [
        ("x-ms-blob-if-match", etag.as_str(), [204, 200]),
        ("x-ms-blob-if-match", other, [412, 412]),
        ("x-ms-blob-if-none-match", &etag, [412, 304]),
        ("x-ms-blob-if-none-match", other, [204, 200]),
        ("x-ms-blob-if-modified-since", FUTURE, [412, 304]),
        ("x-ms-blob-if-unmodified-since", PAST, [412, 412]),
        ("x-ms-blob-if-unmodified-since", FUTURE, [204, 200]),
    ] {
        let set = RestRequest::blob("PUT", "/photos/x?comp=tags").with(name, value).body(body);
        let set = rest.send(set).await.status;
        let read = rest.call_with("GET", "/photos/x?comp=tags", &[(name, value)]).await;
        let found = [set, read.status];
        assert_eq!(found, status, "{name}: {value}");
    }
    let both = [("x-ms-blob-if-match", etag.as_str()), ("if-match", &etag)];
    let failed = rest.call_with("GET", "/photos/x?comp=tags", &both).await;
    assert_eq!(failed.failure(), (400, "MultipleConditionHeadersNotSupported"));
    let failed = rest.call_with("PUT", "/photos/x?comp=metadata", &both[..1]).await;
    assert_eq!(failed.failure(), (400, "UnsupportedHeader"));
}

#[tokio::test]
async fn a_range_of_another_version_is_the_whole_blob() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let older = rest.blob("/photos/x", "12345").await;
    let etag = rest.blob("/photos/x", "hello").await;
    let range = ("range", "bytes=1-2");
    let modified = rest.call("HEAD", "/photos/x").await.header("last-modified").to_owned();
    for (if_range, status, text) in [
        (etag.as_str(), 206, "el"),
        (&older, 200, "hello"),
        (&format!("W/{etag}"), 200, "hello"),
        (&modified, 200, "hello"),
        ("x", 200, "hello"),
    ] {
        let read = rest.call_with("GET", "/photos/x", &[range, ("if-range", if_range)]).await;
        assert_eq!((read.status, read.text()), (status, text), "{if_range}");
    }
    // Conditions come first, and those of If-Match decide alone.
    let unchanged = [range, ("if-range", &older), ("if-none-match", &etag)];
    assert_eq!(rest.call_with("GET", "/photos/x", &unchanged).await.status, 304);
    let other = [range, ("if-range", &etag), ("if-match", &older)];
    assert_eq!(rest.call_with("GET", "/photos/x", &other).await.status, 412);
    let past = [("range", "bytes=9-"), ("if-range", etag.as_str())];
    assert_eq!(rest.call_with("GET", "/photos/x", &past).await.status, 416);
}

#[tokio::test]
async fn a_read_takes_place_by_each_combination_of_conditions() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let etag = rest.blob("/photos/x", "1").await;
    let other = "\"0x8D0000000000001\"";
    let list = format!("{other}, {etag}");
    for (headers, status) in [
        (&[("if-match", etag.as_str())][..], 200),
        (&[("if-match", etag.trim_matches('"'))], 200),
        (&[("if-match", &list)], 200),
        (&[("if-match", other)], 412),
        (&[("if-match", "\"of-another-server\"")], 412),
        (&[("if-none-match", "\"of-another-server\"")], 200),
        (&[("if-none-match", &etag)], 304),
        (&[("if-none-match", &list)], 304),
        (&[("if-none-match", other)], 200),
        (&[("if-modified-since", PAST)], 200),
        (&[("if-modified-since", FUTURE)], 304),
        (&[("if-unmodified-since", PAST)], 412),
        (&[("if-unmodified-since", FUTURE)], 200),
        // Unlike HTTP: one of the two is enough.
        (&[("if-none-match", &etag), ("if-modified-since", PAST)], 200),
        (&[("if-none-match", &etag), ("if-modified-since", FUTURE)], 304),
        (&[("if-match", other), ("if-none-match", &etag)], 412),
    ] {
        for method in ["GET", "HEAD"] {
            let read = rest.call_with(method, "/photos/x", headers).await;
            assert_eq!(read.status, status, "{headers:?}");
            let code = if status == 200 { "" } else { "ConditionNotMet" };
            assert_eq!(read.header("x-ms-error-code"), code, "{headers:?}");
            if status == 304 {
                assert_eq!((read.text(), read.header("etag")), ("", etag.as_str()));
            }
        }
    }
    let any = rest.call_with("GET", "/photos/x", &[("if-none-match", "*")]).await;
    assert_eq!(any.failure(), (400, "UnsatisfiableCondition"));
    let absent = rest.call_with("GET", "/photos/y", &[("if-match", &etag)]).await;
    assert_eq!(absent.failure(), (404, "BlobNotFound"));
}

#[tokio::test]
async fn a_write_takes_place_by_its_condition() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let put = |target: &'static str, headers: Vec<(&'static str, String)>| {
        let request = RestRequest::blob("PUT", target).with("x-ms-blob-type", "BlockBlob");
        let with = |request: RestRequest, (name, value): (&'static str, String)| {
            request.with(name, &value)
        };
        rest.send(headers.into_iter().fold(request, with))
    };
    let of = |name, value: &str| vec![(name, value.to_owned())];
    let absent = put("/photos/x", of("if-match", "*")).await;
    assert_eq!(absent.failure(), (412, "ConditionNotMet"));
    assert_eq!(put("/photos/x", of("if-none-match", "*")).await.status, 201);
    let again = put("/photos/x", of("if-none-match", "*")).await;
    assert_eq!(again.failure(), (409, "BlobAlreadyExists"));
    let etag = rest.blob("/photos/x", "2").await;
    let stale = put("/photos/x", of("if-none-match", &etag)).await;
    assert_eq!(stale.failure(), (412, "ConditionNotMet"));
    let two = vec![("if-match", etag.clone()), ("if-none-match", "a".to_owned())];
    let two = put("/photos/x", two).await;
    assert_eq!(two.failure(), (400, "MultipleConditionHeadersNotSupported"));
    let list = put("/photos/x", of("if-match", &format!("{etag}, {etag}"))).await;
    assert_eq!(list.failure(), (400, "MultipleConditionHeadersNotSupported"));
    assert_eq!(put("/photos/x", of("if-match", &etag)).await.status, 201);
    let tags = put("/photos/x", of("x-ms-if-tags", "\"a\" = 'b'")).await;
    assert_eq!(tags.failure(), (412, "ConditionNotMet"));
    let malformed = put("/photos/x", of("if-modified-since", "yesterday")).await;
    assert_eq!(malformed.failure(), (400, "InvalidHeaderValue"));
    assert_eq!(malformed.only("HeaderName"), "if-modified-since");
    assert_eq!(malformed.only("HeaderValue"), "yesterday");
}
