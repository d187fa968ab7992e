//! Lists of containers and blobs.

use trestle_tests::{BlobRest, RestRequest};

const LIST: &str = "/photos?restype=container&comp=list";

async fn filled(names: &[&str]) -> BlobRest {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    for name in names {
        rest.blob(&format!("/photos/{name}"), "1").await;
    }
    rest
}

#[tokio::test]
async fn a_page_of_blobs_has_what_azure_has() {
    let rest = filled(&["d/a"]).await;

    let listed =
        rest.call("GET", &format!("{LIST}&prefix=d%2F&maxresults=9000&delimiter=%7C")).await;

    assert_eq!((listed.status, listed.header("content-type")), (200, "application/xml"));
    let start = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"{}\" \
         ContainerName=\"photos\"><Prefix>d/</Prefix><MaxResults>5000</MaxResults>\
         <Delimiter>|</Delimiter><Blobs><Blob><Name>d/a</Name><Properties>",
        rest.url("")
    );
    assert!(listed.text().starts_with(&start), "{}", listed.text());
    assert!(listed.text().ends_with("</Blobs><NextMarker /></EnumerationResults>"));
    let read = rest.call("HEAD", "/photos/d/a").await;
    for (name, value) in [
        ("Etag", read.header("etag").trim_matches('"')),
        ("Last-Modified", read.header("last-modified")),
        ("Creation-Time", read.header("x-ms-creation-time")),
        ("Content-Length", "1"),
        ("Content-Type", "application/octet-stream"),
        ("Content-MD5", read.header("content-md5")),
        ("Content-Encoding", ""),
        ("Cache-Control", ""),
        ("BlobType", "BlockBlob"),
        ("AccessTier", "Hot"),
        ("AccessTierInferred", "true"),
        ("LeaseStatus", "unlocked"),
        ("LeaseState", "available"),
        ("ServerEncrypted", "true"),
    ] {
        assert_eq!(listed.only(name), value, "{name}");
    }
    let none = rest.call("GET", &format!("{LIST}&prefix=z")).await;
    assert!(none.text().contains("<Blobs /><NextMarker />"), "{}", none.text());
}

#[tokio::test]
async fn pages_go_on_at_their_markers_with_prefixes_among_the_blobs() {
    let rest = filled(&["a", "B", "a/b", "ab", "a/c/d"]).await;
    let (mut marker, mut names) = (String::new(), Vec::new());
    loop {
        let page = format!("{LIST}&delimiter=%2F&maxresults=1&marker={marker}");
        let page = rest.call("GET", &page).await;
        assert_eq!(page.status, 200, "{page:?}");
        names.extend(page.all("Name"));
        marker = page.only("NextMarker");
        if marker.is_empty() {
            break;
        }
    }
    assert_eq!(names, ["B", "a", "a/", "ab"]);
    let all = rest.call("GET", LIST).await;
    assert_eq!(all.all("Name"), ["B", "a", "a/b", "a/c/d", "ab"]);
}

#[tokio::test]
async fn a_list_includes_what_its_request_names_and_ignores_the_rest() {
    let rest = filled(&["x"]).await;
    let metadata = [("x-ms-meta-Name", "v")];
    rest.call_with("PUT", "/photos/x?comp=metadata", &[("x-ms-meta-name", metadata[0].1)]).await;
    let tags = "<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>";
    rest.send(RestRequest::blob("PUT", "/photos/x?comp=tags").body(tags)).await;
    let snapshot = rest.call("PUT", "/photos/x?comp=snapshot").await;
    rest.send(RestRequest::blob("PUT", "/photos/y?comp=block&blockid=QQ==").body("1")).await;
    let plain = rest.call("GET", LIST).await;
    assert_eq!(plain.all("Name"), ["x"]);
    assert!(!plain.text().contains("<Metadata>") && !plain.text().contains("<TagSet>"));
    assert_eq!(plain.only("TagCount"), "1");

    let include = "metadata,tags,snapshots,uncommittedblobs,copy,deleted,versions,legalhold,new";
    let listed = rest.call("GET", &format!("{LIST}&include={include}")).await;

    assert_eq!(listed.all("Name"), ["x", "x", "y"]);
    assert_eq!(listed.all("Snapshot"), [snapshot.header("x-ms-snapshot")]);
    assert_eq!(listed.all("name"), ["v", "v"]);
    assert!(listed.text().contains("<TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet>"));
    assert_eq!(listed.all("Content-Length"), ["1", "1", "0"]);
}

#[tokio::test]
async fn a_name_that_xml_cannot_represent_is_encoded() {
    let rest = filled(&["a%01b%25", "plain%26%3C"]).await;
    let listed = rest.call("GET", LIST).await;
    assert!(listed.text().contains("<Name Encoded=\"true\">a%01b%25</Name>"), "{}", listed.text());
    assert!(listed.text().contains("<Name>plain&amp;&lt;</Name>"), "{}", listed.text());
}

#[tokio::test]
async fn containers_are_listed_by_name_with_quoted_etags() {
    let rest = BlobRest::start().await;
    let empty = rest.call("GET", "/?comp=list").await;
    assert!(empty.text().contains("<Containers /><NextMarker />"), "{}", empty.text());
    let headers = [("x-ms-meta-k", "v"), ("x-ms-blob-public-access", "blob")];
    let created = rest.call_with("PUT", "/b-2?restype=container", &headers).await;
    rest.container("a-1").await;
    rest.container("b-1").await;

    let listed = rest.call("GET", "/?comp=list&prefix=b&maxresults=1").await;

    assert_eq!((listed.only("Name"), listed.only("Prefix")), ("b-1".into(), "b".into()));
    let marker = listed.only("NextMarker");
    let rest_of = format!("/?comp=list&prefix=b&include=metadata&marker={marker}");
    let listed = rest.call("GET", &rest_of).await;
    assert_eq!((listed.only("Name"), listed.only("k")), ("b-2".into(), "v".into()));
    assert_eq!(listed.only("Etag"), created.header("etag"));
    assert_eq!(listed.only("PublicAccess"), "blob");
    for target in ["/?comp=list&maxresults=0", "/photos?restype=container&comp=list&maxresults=0"] {
        let failed = rest.call("GET", target).await;
        assert_eq!(failed.failure(), (400, "OutOfRangeQueryParameterValue"), "{target}");
    }
    let missing = rest.call("GET", LIST).await;
    assert_eq!(missing.failure(), (404, "ContainerNotFound"));
}
