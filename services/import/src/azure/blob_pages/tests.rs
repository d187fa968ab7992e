//! Tests of the module.

use proptest::prelude::*;

use super::*;
use crate::azure::xml;

/// A list of one blob with these properties and further elements.
fn list(name: &str, properties: &str, more: &str) -> String {
    format!(
        "\u{feff}<?xml version=\"1.0\"?><EnumerationResults><Blobs><Blob>{name}{more}<Properties>\
         <Etag>0x8D</Etag>{properties}</Properties></Blob></Blobs><NextMarker/></EnumerationResults>"
    )
}

fn first(xml: &str) -> BlobElement {
    let page: BlobsPage = xml::parse(xml.as_bytes()).unwrap();
    page.into_blobs().into_iter().next().unwrap()
}

#[test]
fn a_blob_has_its_properties_metadata_and_tags() {
    let properties = "<Content-Length>5</Content-Length><Content-Type>text/plain</Content-Type>\
        <Content-Encoding>gzip</Content-Encoding><Content-Language/>\
        <Content-MD5>XUFAKrxLKna5cZ2REBfFkg==</Content-MD5><Cache-Control>a, b</Cache-Control>\
        <Content-Disposition>inline</Content-Disposition><BlobType>BlockBlob</BlobType>\
        <LeaseStatus>unlocked</LeaseStatus><AccessTier>Cool</AccessTier>";
    let more = "<Snapshot>2026-01-02T03:04:05.0000000Z</Snapshot><Metadata><Owner>a&amp;b</Owner>\
        <empty/></Metadata><Tags><TagSet><Tag><Key>k 1</Key><Value>v</Value></Tag><Tag><Key>l</Key>\
        <Value/></Tag></TagSet></Tags>";

    let element = first(&list("<Name> a/ü &lt;1&gt; </Name>", properties, more));

    assert_eq!((element.etag().as_str(), element.snapshot.len()), ("\"0x8D\"", 28));
    let blob = element.described().unwrap();
    assert_eq!((blob.name.as_str(), blob.size, blob.is_snapshot), (" a/ü <1> ", 5, true));
    assert_eq!((blob.kind, blob.tier), (ImportedKind::Block, AccessTier::Cool));
    assert_eq!((blob.metadata["Owner"].as_str(), blob.metadata["empty"].as_str()), ("a&b", ""));
    assert_eq!((blob.tags["k 1"].as_str(), blob.tags["l"].as_str()), ("v", ""));
    assert_eq!(blob.properties.content_md5[..2], [0x5d, 0x41]);
    assert_eq!(blob.properties.cache_control, "a, b");
    assert_eq!(
        (blob.properties.content_type.as_str(), blob.properties.content_language.len()),
        ("text/plain", 0)
    );
}

#[test]
fn types_and_tiers_of_blobs_are_distinguished() {
    let blob = |properties: &str| {
        let length = "<Content-Length>1024</Content-Length>";
        first(&list("<Name>b</Name>", &format!("{length}{properties}"), "")).described()
    };
    let append = blob("<BlobType>AppendBlob</BlobType><Sealed>true</Sealed>").unwrap();
    assert_eq!(append.kind, ImportedKind::Append { is_sealed: true });
    let number = "<x-ms-blob-sequence-number>7</x-ms-blob-sequence-number>";
    let page = blob(&format!("<BlobType>PageBlob</BlobType>{number}")).unwrap();
    assert_eq!(page.kind, ImportedKind::Page { sequence_number: 7 });
    let inferred = "<AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred>";
    let block = blob(&format!("<BlobType>BlockBlob</BlobType>{inferred}")).unwrap();
    assert_eq!(block.tier, AccessTier::Unspecified);
    assert!(blob("<BlobType>Tape</BlobType>").unwrap_err().contains("`Tape`"));
    let bad = "<BlobType>BlockBlob</BlobType><Content-MD5>?</Content-MD5>";
    assert!(blob(bad).unwrap_err().contains("Content-MD5 must be base64"));
    let bad =
        "<BlobType>PageBlob</BlobType><x-ms-blob-sequence-number>x</x-ms-blob-sequence-number>";
    assert!(blob(bad).unwrap_err().contains("is not a number: `x`"));
}

#[test]
fn an_encoded_name_is_decoded() {
    let properties = "<Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>";
    let name = |name: &str| first(&list(name, properties, "")).name();

    assert_eq!(name("<Name Encoded=\"true\">a%EF%BF%BE%25</Name>").unwrap(), "a\u{fffe}%");
    assert_eq!(name("<Name>a%25</Name>").unwrap(), "a%25");
    assert!(name("<Name Encoded=\"true\">%ff</Name>").unwrap_err().contains("is not UTF-8"));
}

#[test]
fn containers_have_metadata_public_access_and_pages() {
    let xml = "<EnumerationResults><Containers><Container><Name>docs</Name><Properties>\
        <PublicAccess>blob</PublicAccess></Properties><Metadata><Owner>me</Owner></Metadata></Container>\
        <Container><Name>$web</Name><Properties><Etag>x</Etag></Properties></Container></Containers>\
        <NextMarker>m</NextMarker></EnumerationResults>";

    let page: ContainersPage = xml::parse(xml.as_bytes()).unwrap();

    assert_eq!(page.next_marker, "m");
    let [docs, web] = &page.into_containers()[..] else { panic!("two containers") };
    assert_eq!((docs.name.as_str(), docs.properties.public_access.as_str()), ("docs", "blob"));
    assert_eq!(docs.metadata["Owner"], "me");
    assert!(web.metadata.is_empty() && web.properties.public_access.is_empty());
    let none: ContainersPage = xml::parse(b"<EnumerationResults/>").unwrap();
    assert!(none.next_marker.is_empty() && none.into_containers().is_empty());
}

#[test]
fn pages_with_data_are_cut_to_the_listed_part_and_in_order() {
    let list = |xml: &str| xml::parse::<PageList>(xml.as_bytes()).unwrap();
    let xml = "<PageList><PageRange><Start>0</Start><End>511</End></PageRange><PageRange>\
        <Start>1024</Start><End>4095</End></PageRange><ClearRange><Start>5120</Start><End>5631</End>\
        </ClearRange></PageList>";
    let pages = |offset, length| PagesWithData { offset, length };

    assert_eq!(list(xml).within(0, 8192).unwrap(), [pages(0, 512), pages(1024, 3072)]);
    assert_eq!(list(xml).within(2048, 1024).unwrap(), [pages(2048, 1024)]);
    assert_eq!(list("<PageList/>").within(0, 512).unwrap(), []);
    for (first, second) in [("1024", "2047"), ("4096", "4095")] {
        let range = format!("<PageRange><Start>{first}</Start><End>{second}</End></PageRange>");
        let xml = xml.replacen("<ClearRange>", &format!("{range}<ClearRange>"), 1);
        let rejected = list(&xml).within(0, 8192).unwrap_err();
        assert!(rejected.contains("are not in order"), "{rejected}");
    }
}

proptest! {
    #[test]
    fn any_list_is_read_or_rejected(xml in "(<(/?)(Blobs?|Name|Properties|Etag|Metadata|a)>|[x&;0-9]){0,20}") {
        if let Ok(page) = xml::parse::<BlobsPage>(xml.as_bytes()) {
            page.into_blobs().iter().for_each(|blob| drop(blob.described()));
        }
    }
}
