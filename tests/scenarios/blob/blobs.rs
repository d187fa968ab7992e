//! Block blobs: their content, properties, metadata, ranges and listings.

use bytes::Bytes;
use prost::Message as _;
use tonic::Code;
use trestle_proto::blob::v1::{self as proto, ByteRange, HttpProperties, listed_blob::Item};
use trestle_tests::{World, blob_scenario};

blob_scenario!(
    a_blob_of_any_size_is_written_and_read_back,
    ranges_are_read_and_rejected_past_the_end,
    properties_and_metadata_come_back_and_are_updated,
    an_overwrite_replaces_everything,
    a_deleted_blob_is_not_found,
    blobs_are_listed_with_prefix_and_delimiter,
    blobs_are_listed_between_bounds,
    a_listing_skips_and_repeats_nothing_while_blobs_are_written,
    a_page_of_blobs_fits_into_a_message,
    names_are_data,
);

const NOT_FOUND: (Code, &str) = (Code::NotFound, "BLOB_NOT_FOUND");

fn sample(length: usize) -> Bytes {
    (0..length).map(|at| (at / 4096 + at * 31) as u8).collect::<Vec<_>>().into()
}

async fn a_blob_of_any_size_is_written_and_read_back(world: &World) {
    let logs = world.container("logs").await;
    for length in [0, 1, 4096, 32 * 1024, 32 * 1024 + 1, 1024 * 1024, 4_000_000] {
        let written = logs.write("a", sample(length)).await.unwrap();
        let found = logs.read("a").await.unwrap();

        assert_eq!(found.data, sample(length), "{length}");
        assert_eq!(found.blob, written);
        assert_eq!(written.size, length as u64);
        assert_eq!(written.properties.unwrap().content_md5.len(), 16);
        assert_eq!(
            found.messages,
            (length / (1024 * 1024)).max(1) + usize::from(length > 1024 * 1024)
        );
    }
}

async fn ranges_are_read_and_rejected_past_the_end(world: &World) {
    let logs = world.container("logs").await;
    for length in [10, 100_000] {
        let data = sample(length);
        logs.write("a", data.clone()).await.unwrap();
        let range = |offset, length| {
            let range = Some(ByteRange { offset, length });
            logs.read_with(proto::ReadBlobRequest { range, ..logs.reading("a") })
        };
        let found = range(3, Some(4)).await.unwrap();
        assert_eq!(found.data, data.slice(3..7));
        assert_eq!(found.range, Some(ByteRange { offset: 3, length: Some(4) }));
        assert_eq!(found.blob.size, length as u64);
        assert_eq!(range(5, None).await.unwrap().data, data.slice(5..));
        assert_eq!(range(5, Some(u64::MAX)).await.unwrap().data, data.slice(5..));
        let error = range(length as u64, None).await.unwrap_err();
        assert_eq!(error.kind(), (Code::OutOfRange, "INVALID_RANGE"));
        let error = range(0, Some(0)).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    }
    logs.write("a", "").await.unwrap();
    let range = Some(ByteRange::default());
    let request = proto::ReadBlobRequest { range, ..logs.reading("a") };
    let error = logs.read_with(request).await.unwrap_err();
    assert_eq!(error.kind(), (Code::OutOfRange, "INVALID_RANGE"), "an empty blob has no range");
}

async fn properties_and_metadata_come_back_and_are_updated(world: &World) {
    let logs = world.container("logs").await;
    let properties = HttpProperties {
        content_type: "text/plain".to_owned(),
        cache_control: "no-store".to_owned(),
        ..Default::default()
    };
    let metadata = [("Name".to_owned(), "value".to_owned())].into();
    let spec = proto::WriteBlobSpec { properties: Some(properties), metadata, ..logs.spec("a") };
    let written = logs.write_with(spec, "hello").await.unwrap();
    let properties = written.properties.clone().unwrap();
    assert_eq!(
        (properties.content_type.as_str(), written.metadata["Name"].as_str()),
        ("text/plain", "value")
    );

    let update = |paths: &[&str]| proto::UpdateBlobRequest {
        container: logs.name(),
        blob: "a".to_owned(),
        properties: Some(HttpProperties {
            content_language: "en".to_owned(),
            ..Default::default()
        }),
        update_mask: Some(prost_types::FieldMask {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        }),
        ..Default::default()
    };
    logs.client().update_blob(update(&["metadata"])).await.unwrap();
    let found = logs.get("a").await.unwrap();
    assert!(found.metadata.is_empty() && found.properties == written.properties);
    logs.client().update_blob(update(&["properties"])).await.unwrap();
    let found = logs.get("a").await.unwrap();
    let properties = found.properties.unwrap();
    assert_eq!(
        (properties.content_language.as_str(), properties.cache_control.as_str()),
        ("en", "")
    );
    assert_ne!(found.etag, written.etag);
    for paths in [&[][..], &["size"]] {
        let error = logs.client().update_blob(update(paths)).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
}

async fn an_overwrite_replaces_everything(world: &World) {
    let logs = world.container("logs").await;
    let metadata = [("Name".to_owned(), "value".to_owned())].into();
    let spec = proto::WriteBlobSpec { metadata, ..logs.spec("a") };
    let first = logs.write_with(spec, sample(100_000)).await.unwrap();

    let second = logs.write("a", "new").await.unwrap();

    assert_ne!(second.etag, first.etag);
    let found = logs.read("a").await.unwrap();
    assert_eq!((found.data, found.blob.metadata.len()), ("new".into(), 0));
    assert_eq!(found.blob.properties.unwrap().content_type, "application/octet-stream");
}

async fn a_deleted_blob_is_not_found(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "x").await.unwrap();

    logs.delete("a").await.unwrap();

    assert_eq!(logs.read("a").await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(logs.get("a").await.unwrap_err().kind(), NOT_FOUND);
    assert_eq!(logs.delete("a").await.unwrap_err().kind(), NOT_FOUND);
}

async fn blobs_are_listed_with_prefix_and_delimiter(world: &World) {
    let logs = world.container("logs").await;
    for name in ["b", "a", "a/1", "a/2", "B"] {
        logs.write(name, "x").await.unwrap();
    }

    assert_eq!(logs.list("", "").await.unwrap(), ["B", "a", "a/1", "a/2", "b"]);
    assert_eq!(logs.list("", "/").await.unwrap(), ["B", "a", "[a/]", "b"]);
    assert_eq!(logs.list("a/", "/").await.unwrap(), ["a/1", "a/2"]);
    let request = proto::ListBlobsRequest {
        container: logs.name(),
        page_size: Some(0),
        ..Default::default()
    };
    let error = logs.client().list_blobs(request).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}

async fn blobs_are_listed_between_bounds(world: &World) {
    let logs = world.container("logs").await;
    for name in ["a", "a/1", "a/2", "b", "c"] {
        logs.write(name, "x").await.unwrap();
    }
    let list = async |start_from: &str, end_before: &str| {
        let request = proto::ListBlobsRequest {
            container: logs.name(),
            start_from: start_from.to_owned(),
            end_before: end_before.to_owned(),
            ..Default::default()
        };
        let items = logs.client().list_blobs(request).await?.into_inner().items;
        let name = |item: proto::ListedBlob| match item.item {
            Some(Item::Blob(blob)) => blob.name,
            _ => panic!("there are no groups"),
        };
        Ok::<Vec<String>, trestle_tests::CallError>(items.into_iter().map(name).collect())
    };

    assert_eq!(list("a/1", "c").await.unwrap(), ["a/1", "a/2", "b"]);
    assert_eq!(list("a0", "").await.unwrap(), ["b", "c"]);
    assert_eq!(list("", "a/2").await.unwrap(), ["a", "a/1"]);
    assert!(list("b", "b").await.unwrap().is_empty());
    let long = "x".repeat(1025);
    for (start_from, end_before, field) in
        [(&long[..], "", "start_from"), ("", &long[..], "end_before")]
    {
        let error = list(start_from, end_before).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_URI"));
        assert_eq!(error.fields, [field]);
    }
}

async fn a_listing_skips_and_repeats_nothing_while_blobs_are_written(world: &World) {
    let logs = world.container("logs").await;
    let name = |number: usize| format!("{:02}/{number:03}", number / 20);
    let stable: Vec<usize> = (0..100).filter(|number| number % 2 == 0).collect();
    for number in &stable {
        logs.write(&name(*number), "x").await.unwrap();
    }
    for (delimiter, page_size) in [("", 7), ("/", 1)] {
        let mut request = proto::ListBlobsRequest {
            container: logs.name(),
            delimiter: delimiter.to_owned(),
            page_size: Some(page_size),
            ..Default::default()
        };
        let mut listed = Vec::new();
        loop {
            let page = logs.client().list_blobs(request.clone()).await.unwrap().into_inner();
            listed.extend(page.items.into_iter().map(|item| match item.item {
                Some(Item::Blob(blob)) => blob.name,
                Some(Item::Prefix(prefix)) => prefix,
                None => panic!("an item is a blob or a group"),
            }));
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = page.next_page_token;
            // Before and behind the next page.
            for number in [1, 49, 99] {
                match listed.len() % 2 {
                    0 => logs.write(&name(number), "x").await.map(drop).unwrap(),
                    _ => drop(logs.delete(&name(number)).await),
                }
            }
        }
        assert!(listed.is_sorted_by(|one, other| one < other), "{listed:?}");
        let groups = ["00/", "01/", "02/", "03/", "04/"].map(str::to_owned);
        let expected = match delimiter.is_empty() {
            true => stable.iter().map(|number| name(*number)).collect(),
            false => groups.to_vec(),
        };
        let missing: Vec<_> = expected.iter().filter(|name| !listed.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

async fn a_page_of_blobs_fits_into_a_message(world: &World) {
    let logs = world.container("logs").await;
    let names: Vec<String> = (0..560).map(|number| format!("{number:03}")).collect();
    let write = async |name: &String| {
        let metadata = [("value".to_owned(), "x".repeat(8 * 1024 - 8))].into();
        let spec = proto::WriteBlobSpec { metadata, ..logs.spec(name) };
        logs.write_with(spec, "x").await.unwrap();
    };
    for names in names.chunks(16) {
        futures::future::join_all(names.iter().map(write)).await;
    }

    let mut request = proto::ListBlobsRequest {
        container: logs.name(),
        include_metadata: true,
        page_size: Some(5000),
        ..Default::default()
    };
    let mut listed = Vec::new();
    loop {
        let page = logs.client().list_blobs(request.clone()).await.unwrap().into_inner();
        assert!(page.encoded_len() < 4 << 20, "clients accept 4 MiB by default");
        listed.extend(page.items.into_iter().map(|item| match item.item {
            Some(Item::Blob(blob)) => blob.name,
            _ => panic!("there are no groups"),
        }));
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert_eq!(listed, names);
}

async fn names_are_data(world: &World) {
    let logs = world.container("logs").await;
    let mut names = [".", "..", "../x", "/", "//", "a\\b", "ä/\u{10000}", "a b%20c", "x#1"];
    for name in names {
        logs.write(name, name.to_owned()).await.unwrap();
    }
    for name in names {
        assert_eq!(logs.read(name).await.unwrap().data, name);
    }
    names.sort_unstable();
    assert_eq!(logs.list("", "").await.unwrap(), names);
}
