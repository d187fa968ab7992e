use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use object_store::{ObjectStoreExt as _, PutPayload, memory::InMemory};
use trestle_model::limits::INLINE_BYTES_MAX;
use uuid::Uuid;

use super::*;
use crate::{
    conditions::{ConditionError, Conditions, Freshness},
    etag::ETagPattern,
    extent::EXTENT_BYTES,
    fixture::{BlobFixture, sample},
    lease::{LeaseAction, LeaseError},
    record::{Content, ContentId, ContentProperties, Part},
};

/// Lengths around every boundary of storage.
fn lengths() -> [usize; 8] {
    let extent = usize::try_from(EXTENT_BYTES).expect("small");
    [0, 1, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, extent - 1, extent, extent + 1, 2 * extent + 5]
}

fn matching(etag: &str) -> Conditions {
    Conditions {
        if_match: vec![ETagPattern::parse(etag).expect("an etag")],
        ..Conditions::default()
    }
}

#[tokio::test]
async fn content_of_every_length_comes_back_and_is_replaced() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a/b").await;
    for length in lengths() {
        let data = sample(length);
        let record = fixture.put(&key, data.clone()).await;

        assert_eq!(record.content.size(), length as u64);
        assert_eq!(fixture.read(&key).await.expect("read"), data, "{length}");
    }
}

#[tokio::test]
async fn content_is_the_same_in_files_and_survives_a_new_store_object() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data/blob");
    std::fs::create_dir(directory.path().join("data")).expect("created");
    let fixture = BlobFixture::on(Objects::in_directory(&path).expect("usable"));
    let key = fixture.key("a").await;
    let data = sample(usize::try_from(EXTENT_BYTES).expect("small") + 70_000);
    fixture.put(&key, data.clone()).await;

    assert_eq!(std::fs::read_dir(&path).expect("listed").count(), 2);
    assert_eq!(fixture.read(&key).await.expect("read"), data);
    let range = Some(RequestedRange { offset: EXTENT_BYTES - 3, length: Some(6) });
    let middle = usize::try_from(EXTENT_BYTES).expect("small");
    let found = fixture.read_range(&key, range).await.expect("read");
    assert_eq!(found, data.slice(middle - 3..middle + 3));
}

/// Where an extent of a content is.
fn object_path(part: Part, index: u64) -> object_store::path::Path {
    let Part { content, mark, .. } = part;
    crate::extent::ExtentId { content, mark, index }.object().into()
}

#[tokio::test]
async fn bytes_that_another_server_wrote_under_the_same_name_are_never_served() {
    let store = Arc::new(InMemory::new());
    let fixture = BlobFixture::on(Objects::of(Arc::clone(&store) as _));
    let key = fixture.key("a").await;
    let record = fixture.put(&key, sample(200_000)).await;
    let Content::Whole(part) = record.content else { panic!("it is large") };
    let path = object_path(part, 0);
    store.delete(&path).await.expect("deleted");
    // Another server that goes on at the same content ids, such as with a copy of the data directory.
    let foreign = crate::extent::ExtentId { content: part.content, mark: part.mark + 1, index: 0 };
    let data = Bytes::from(vec![7; 200_000]);
    fixture.blobs.objects.write(foreign, vec![data]).await.expect("written");

    let found = fixture.read(&key).await;

    assert!(matches!(found, Err(BlobError::Corrupt(_))), "{found:?}");
}

#[tokio::test]
async fn an_object_of_another_server_is_neither_overwritten_nor_deleted() {
    let store = Arc::new(InMemory::new());
    let fixture = BlobFixture::on(Objects::of(Arc::clone(&store) as _));
    let key = fixture.key("a").await;
    let record = fixture.put(&key, sample(200_000)).await;
    let Content::Whole(part) = record.content else { panic!("it is large") };
    // Where the next content has its second extent.
    let next = Part { content: ContentId(part.content.0 + 1), ..part };
    let (first, foreign) = (object_path(next, 0), object_path(next, 1));
    store.put(&foreign, "foreign".into()).await.expect("stored");
    let large = sample(usize::try_from(EXTENT_BYTES).expect("small") + 1);

    let rejected = fixture.put_with(&key, large.clone(), PutCommand::default()).await;

    assert!(matches!(rejected, Err(BlobError::Occupied)), "{rejected:?}");
    // What the upload wrote is deleted in the background.
    while store.head(&first).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let found = store.get(&foreign).await.expect("kept").bytes().await.expect("kept");
    assert_eq!(found, "foreign");
    fixture.put(&key, large.clone()).await;
    assert_eq!(fixture.read(&key).await.expect("read"), large);
}

#[tokio::test]
async fn a_flipped_byte_is_reported_and_never_served() {
    let store = Arc::new(InMemory::new());
    let fixture = BlobFixture::on(Objects::of(Arc::clone(&store) as _));
    let key = fixture.key("a").await;
    let data = sample(200_000);
    let record = fixture.put(&key, data.clone()).await;
    let Content::Whole(part) = record.content else { panic!("it is large") };
    let path = object_path(part, 0);
    let stored = store.get(&path).await.expect("stored").bytes().await.expect("stored");

    for at in [0, 100_000, 199_999, 200_000, stored.len() - 1] {
        let mut damaged = stored.to_vec();
        damaged[at] ^= 1;
        store.put(&path, PutPayload::from(damaged)).await.expect("stored");
        let found = fixture.read(&key).await;
        assert!(matches!(found, Err(BlobError::Corrupt(_))), "{at}");
    }
    store.put(&path, PutPayload::from(stored.slice(..1000))).await.expect("stored");
    assert!(matches!(fixture.read(&key).await, Err(BlobError::Corrupt(_))), "it is too short");
    store.delete(&path).await.expect("deleted");
    assert!(matches!(fixture.read(&key).await, Err(BlobError::Corrupt(_))), "it is missing");
    store.put(&path, PutPayload::from(stored)).await.expect("stored");
    assert_eq!(fixture.read(&key).await.expect("whole again"), data);
}

#[tokio::test]
async fn a_read_of_an_overwritten_blob_goes_on_or_fails_but_never_mixes() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let data = sample(100_000);
    fixture.put(&key, data.clone()).await;
    let none = Conditions::default();
    let open = || fixture.blobs.open((key.clone(), BlobState::Current), None, (&none, None));
    let (first, second) = (open().await.expect("open"), open().await.expect("open"));
    fixture.put(&key, "new").await;

    fixture.sweep().await;
    assert_eq!(drain(&fixture, first).await.expect("within the grace period"), data);
    fixture.advance(trestle_model::read_grace::READ_GRACE + Duration::from_secs(1));
    fixture.sweep().await;
    let late = drain(&fixture, second).await;
    assert!(matches!(late, Err(BlobError::Condition(ConditionError::NotMet))));
}

async fn drain(fixture: &BlobFixture, opened: read::OpenedBlob) -> Result<Bytes, BlobError> {
    use futures::TryStreamExt as _;
    let pieces: Vec<Bytes> = fixture.blobs.clone().bytes(&opened).try_collect().await?;
    Ok(pieces.concat().into())
}

#[tokio::test]
async fn a_blob_is_read_by_conditions() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let record = fixture.put(&key, "abc").await;
    let get = |conditions: Conditions| {
        let (blobs, key) = (fixture.blobs.clone(), key.clone());
        async move {
            blobs
                .get((&key, BlobState::Current), (&conditions, None))
                .await
                .map(|found| found.freshness)
        }
    };
    let etag = record.etag.quoted();
    let known = vec![ETagPattern::parse(&etag).expect("an etag")];

    assert_eq!(get(matching(&etag)).await.expect("equal"), Freshness::Modified);
    let none = Conditions { if_none_match: known, ..Conditions::default() };
    assert_eq!(get(none).await.expect("known"), Freshness::NotModified);
    let stale = get(matching("\"0x1\"")).await;
    assert!(matches!(stale, Err(BlobError::Condition(ConditionError::Unmet(_)))));
    let absent = BlobKey { name: BlobName::stored("b".to_owned()), ..key.clone() };
    let missing =
        fixture.blobs.get((&absent, BlobState::Current), (&matching("\"0x1\""), None)).await;
    assert!(matches!(missing, Err(BlobError::BlobNotFound(_))), "before its conditions");
}

#[tokio::test]
async fn a_conditional_put_takes_place_once() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let if_none_match = vec![ETagPattern::Any];
    let conditions = Conditions { if_none_match, ..Conditions::default() };
    let create = PutCommand { conditions, ..PutCommand::default() };

    fixture.put_with(&key, "one", create.clone()).await.expect("absent");
    let again = fixture.put_with(&key, "two", create).await;

    assert!(matches!(again, Err(BlobError::Condition(ConditionError::AlreadyExists))));
    assert_eq!(fixture.read(&key).await.expect("read"), "one");
}

#[tokio::test]
async fn properties_and_metadata_are_replaced_separately_and_content_remains() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let put = fixture.put(&key, "abc").await;
    let metadata = vec![("a".to_owned(), "b".to_owned())];
    let properties =
        Some(ContentProperties { language: "en".to_owned(), ..ContentProperties::default() });
    let update = |change| fixture.blobs.change(key.clone(), change, (Conditions::default(), None));

    let first =
        BlobChange::Update { properties: None, metadata: Some(metadata.clone()), versions: false };
    let first = update(first).await.expect("changed").record;
    let second =
        BlobChange::Update { properties: properties.clone(), metadata: None, versions: false };
    let second = update(second).await.expect("changed").record;

    assert_eq!((first.metadata.clone(), first.properties), (metadata, put.properties));
    assert_eq!((second.metadata, Some(second.properties)), (first.metadata, properties));
    assert!(put.etag != first.etag && first.etag != second.etag);
    assert_eq!(fixture.read(&key).await.expect("read"), "abc");
}

#[tokio::test]
async fn a_lease_protects_a_blob_until_it_expires_and_leaves_its_etag() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let put = fixture.put(&key, "abc").await;
    let id = Uuid::from_u128(7);
    let duration = Some(Duration::from_secs(15));
    let acquire = LeaseAction::Acquire { duration, proposed: Some(id), generated: Uuid::nil() };
    let lease = BlobChange::Lease(acquire);
    let leased = fixture.blobs.change(key.clone(), lease, (Conditions::default(), None)).await;
    assert_eq!(leased.expect("leased").record.etag, put.etag);

    let missing = fixture.put_with(&key, "x", PutCommand::default()).await;
    assert!(matches!(missing, Err(BlobError::BlobLease(LeaseError::IdMissing))));
    let deleted = fixture.delete(&key).await;
    assert!(matches!(deleted, Err(BlobError::BlobLease(LeaseError::IdMissing))));
    let own = || PutCommand { lease_id: Some(id), ..PutCommand::default() };
    fixture.put_with(&key, "own", own()).await.expect("the holder writes");
    fixture.advance(Duration::from_secs(16));
    let lost = fixture.put_with(&key, "x", own()).await;
    assert!(matches!(lost, Err(BlobError::BlobLease(LeaseError::Lost))));
    fixture.put_with(&key, "free", PutCommand::default()).await.expect("it has expired");
    let not_present = fixture.put_with(&key, "x", own()).await;
    assert!(matches!(not_present, Err(BlobError::BlobLease(LeaseError::NotPresent))));
}

#[tokio::test]
async fn a_deleted_blob_is_absent() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    for data in [sample(10), sample(100_000)] {
        fixture.put(&key, data).await;
        fixture.delete(&key).await.expect("deleted");
        assert!(matches!(fixture.read(&key).await, Err(BlobError::BlobNotFound(_))));
        assert!(matches!(fixture.delete(&key).await, Err(BlobError::BlobNotFound(_))));
    }
}

async fn list(
    fixture: &BlobFixture,
    key: &BlobKey,
    (prefix, delimiter): (&str, &str),
    page_size: usize,
) -> Vec<String> {
    let (prefix, delimiter) = (prefix.to_owned(), delimiter.to_owned());
    let request = ListBlobs { prefix, delimiter, page_size, ..ListBlobs::default() };
    list_all(fixture, key, request).await
}

async fn list_all(fixture: &BlobFixture, key: &BlobKey, request: ListBlobs) -> Vec<String> {
    let mut request = ListBlobs { with_uncommitted: true, ..request };
    let (mut names, page_size) = (Vec::new(), request.page_size);
    loop {
        let page = fixture.blobs.list(key.container, &request).await.expect("listed");
        assert!(page.items.len() <= page_size);
        names.extend(page.items.into_iter().map(|item| match item {
            ListedItem::Group(group) => format!("[{group}]"),
            ListedItem::Blob(name, Some(_)) => name.to_string(),
            ListedItem::Blob(name, None) => format!("({name})"),
            ListedItem::Past(name, ..) => format!("@{name}"),
        }));
        match page.next_page_token {
            Some(token) => request.page_token = token,
            None => return names,
        }
    }
}

#[tokio::test]
async fn blobs_are_listed_between_bounds_whatever_the_page_size() {
    let fixture = BlobFixture::new();
    let key = fixture.key("unused").await;
    let named = |name: &str| BlobKey { name: BlobName::stored(name.to_owned()), ..key.clone() };
    let names = ["B", "a", "a/1", "a/2", "a/3", "ab", "b", "é"];
    for name in names {
        fixture.put(&named(name), "x").await;
    }
    fixture.stage(&named("a/1s"), "1", "x").await.expect("staged");

    let bounds = ["", "A", "B", "a", "a/", "a/1s", "a/2", "a0", "b", "é", "\u{10ffff}"];
    let committed = names.into_iter().map(|name| (name, name.to_owned()));
    let mut all: Vec<_> = committed.chain([("a/1s", "(a/1s)".to_owned())]).collect();
    all.sort_unstable();
    for (start, end) in bounds.iter().flat_map(|start| bounds.map(|end| (*start, end))) {
        for (prefix, page_size) in [("", 1), ("", 1000), ("a/", 1), ("a/", 1000)] {
            let request = ListBlobs {
                prefix: prefix.to_owned(),
                start_from: start.to_owned(),
                end_before: end.to_owned(),
                page_size,
                ..ListBlobs::default()
            };
            let is_in = |name: &str| {
                name.starts_with(prefix) && name >= start && (end.is_empty() || name < end)
            };
            let expected: Vec<_> = all.iter().filter(|(name, _)| is_in(name)).collect();
            let expected: Vec<_> = expected.into_iter().map(|(_, shown)| shown.clone()).collect();
            let found = list_all(&fixture, &key, request).await;
            assert_eq!(found, expected, "{prefix} {start} {end} {page_size}");
        }
    }
    // A group is listed where a name of it is between the bounds.
    for (start, end, expected) in [
        ("a/2", "", &["[a/]", "ab", "b", "é"][..]),
        ("a/4", "b", &["ab"]),
        ("", "a/2", &["B", "a", "[a/]"]),
        ("a", "a/", &["a"]),
    ] {
        for page_size in [1, 1000] {
            let request = ListBlobs {
                start_from: start.to_owned(),
                end_before: end.to_owned(),
                delimiter: "/".to_owned(),
                page_size,
                ..ListBlobs::default()
            };
            assert_eq!(list_all(&fixture, &key, request).await, expected, "{start} {end}");
        }
    }
}

#[tokio::test]
async fn blobs_are_listed_by_name_with_groups_whatever_the_page_size() {
    let fixture = BlobFixture::new();
    let key = fixture.key("unused").await;
    let named = |name: &str| BlobKey { name: BlobName::stored(name.to_owned()), ..key.clone() };
    for name in ["a", "B", "a/b", "ab", "a/c/d", "é", "a\0", "a//", "b/"] {
        fixture.put(&named(name), "x").await;
    }
    for number in 0..100 {
        fixture.put(&named(&format!("many/{number}")), "x").await;
    }
    fixture.stage(&named("a/staged"), "1", "x").await.expect("staged");
    fixture.stage(&named("ab"), "1", "x").await.expect("staged");

    for page_size in [1, 2, 3, 1000] {
        let flat = list(&fixture, &key, ("a", ""), page_size).await;
        assert_eq!(flat, ["a", "a\0", "a//", "a/b", "a/c/d", "(a/staged)", "ab"]);
        let grouped = list(&fixture, &key, ("", "/"), page_size).await;
        assert_eq!(grouped, ["B", "a", "a\0", "[a/]", "ab", "[b/]", "[many/]", "é"]);
        let below = list(&fixture, &key, ("a/", "/"), page_size).await;
        assert_eq!(below, ["[a//]", "a/b", "[a/c/]", "(a/staged)"]);
        assert_eq!(list(&fixture, &key, ("b/", "/"), page_size).await, ["b/"]);
        assert_eq!(list(&fixture, &key, ("x", ""), page_size).await, [""; 0]);
        assert_eq!(list(&fixture, &key, ("many/", ""), page_size).await.len(), 100);
    }
}

#[tokio::test]
async fn a_page_token_belongs_to_its_listing() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    for name in ["a", "b"] {
        fixture.put(&BlobKey { name: BlobName::stored(name.to_owned()), ..key.clone() }, "x").await;
    }
    let request = |prefix: &str, page_token: String| ListBlobs {
        prefix: prefix.to_owned(),
        page_size: 1,
        page_token,
        ..ListBlobs::default()
    };
    let first = fixture.blobs.list(key.container, &request("", String::new())).await;
    let token = first.expect("listed").next_page_token.expect("there is more");

    fixture.blobs.list(key.container, &request("", token.clone())).await.expect("its own");
    for bound in ["a", "b"] {
        let (start_from, end_before) = (bound.to_owned(), bound.to_owned());
        let own = || request("", token.clone());
        for bounded in [ListBlobs { start_from, ..own() }, ListBlobs { end_before, ..own() }] {
            let foreign = fixture.blobs.list(key.container, &bounded).await;
            assert!(matches!(foreign, Err(BlobError::Invalid(_))));
        }
    }
    let foreign = fixture.blobs.list(key.container, &request("a", token)).await;
    assert!(matches!(foreign, Err(BlobError::Invalid(_))));
}
