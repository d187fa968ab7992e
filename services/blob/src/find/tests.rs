use std::collections::BTreeSet;
use trestle_model::read_grace::READ_GRACE;

use proptest::prelude::*;
use trestle_kv::{ChangeSpec, Writes, transact};

use super::*;
use crate::{
    blobs::{BlobChange, BlobKey, DeleteScope, PutCommand},
    conditions::{Conditions, StatedTagCondition},
    fixture::{BlobFixture, account},
    keys::BlobRow,
    record::Retention,
    sweep::CONTAINER_GRACE,
};

fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn request(text: &str) -> FindBlobs {
    let filter = TagFilter::parse(text).expect(text);
    let container = filter.container.as_deref().and_then(container_of);
    let (text, page_token) = (text.to_owned(), String::new());
    FindBlobs { filter, text, container, page_size: 1000, page_token }
}

/// The found blobs as `container/name`, in pages of this size.
async fn found(fixture: &BlobFixture, text: &str, page_size: usize) -> Vec<String> {
    let (mut all, mut request) = (Vec::new(), FindBlobs { page_size, ..request(text) });
    loop {
        let page = fixture.blobs.find(&account(), &request).await.expect("found");
        assert!(page.blobs.len() <= page_size);
        all.extend(page.blobs.iter().map(|it| format!("{}/{}", it.container, it.name.as_str())));
        match page.next_page_token {
            Some(token) => request.page_token = token,
            None => return all,
        }
    }
}

async fn put(fixture: &BlobFixture, key: &BlobKey, pairs: &[(&str, &str)]) {
    let command = PutCommand { tags: tags(pairs), ..PutCommand::default() };
    fixture.put_with(key, "x", command).await.expect("written");
}

async fn set(fixture: &BlobFixture, key: &BlobKey, pairs: &[(&str, &str)]) {
    let required = (Conditions::default(), None);
    let change = BlobChange::Tags(tags(pairs));
    fixture.blobs.change(key.clone(), change, required).await.expect("set");
}

fn key(container: ContainerId, name: &str) -> BlobKey {
    BlobKey { container, name: BlobName::stored(name.to_owned()) }
}

#[tokio::test]
async fn blobs_are_found_by_container_value_and_name() {
    let fixture = BlobFixture::new();
    for container in ["bbb", "aaa"] {
        let id = fixture.container(container).await.id;
        put(&fixture, &key(id, "z"), &[("day", "01"), ("state", "new")]).await;
        put(&fixture, &key(id, "a\0b"), &[("day", "02"), ("state", "new")]).await;
        put(&fixture, &key(id, "b"), &[("day", "02"), ("state", "old")]).await;
        put(&fixture, &key(id, "c"), &[("day", "")]).await;
        put(&fixture, &key(id, "d"), &[("days", "02")]).await;
    }
    for (text, expected) in [
        ("state = 'new'", vec!["aaa/a\0b", "aaa/z", "bbb/a\0b", "bbb/z"]),
        ("state='new' AND day > '01'", vec!["aaa/a\0b", "bbb/a\0b"]),
        ("@container = 'aaa' AND day = '02'", vec!["aaa/a\0b", "aaa/b"]),
        ("@container = 'aaa' AND day >= '01'", vec!["aaa/z", "aaa/a\0b", "aaa/b"]),
        ("@container = 'aaa' AND day < '02'", vec!["aaa/c", "aaa/z"]),
        ("@container = 'aaa' AND day <= '02' AND day > ''", vec!["aaa/z", "aaa/a\0b", "aaa/b"]),
        ("@container = 'bbb' AND day = ''", vec!["bbb/c"]),
        ("@container = 'none' AND day = ''", vec![]),
        ("day > '02' AND day < '01'", vec![]),
        ("day = '01' AND day = '02'", vec![]),
        ("absent = ''", vec![]),
    ] {
        for page_size in [1, 2, 1000] {
            assert_eq!(found(&fixture, text, page_size).await, expected, "{text} {page_size}");
        }
    }
    let other = FindBlobs { page_size: 1, ..request("day = '02'") };
    let token = fixture.blobs.find(&account(), &other).await.expect("found").next_page_token;
    let token = token.expect("there is more");
    let other = FindBlobs { page_token: token, ..request("day = '01'") };
    assert!(fixture.blobs.find(&account(), &other).await.is_err(), "a token of another filter");
}

#[tokio::test]
async fn the_index_follows_every_change() {
    let fixture = BlobFixture::new();
    let id = fixture.container("logs").await.id;
    let blob = key(id, "a");
    let is_found = async |value: &str| {
        let text = format!("k = '{value}'");
        !found(&fixture, &text, 10).await.is_empty()
    };
    put(&fixture, &blob, &[("k", "1")]).await;
    assert!(is_found("1").await);
    set(&fixture, &blob, &[("k", "2"), ("l", "x")]).await;
    assert!(!is_found("1").await && is_found("2").await);
    fixture.snapshot(&blob).await.expect("a snapshot");
    fixture.append(&blob, "x").await.expect_err("of another type");
    fixture.set_metadata(&blob, "1").await.expect("changed");
    assert_eq!(found(&fixture, "k = '2'", 10).await.len(), 1, "the blob, and not its snapshot");
    put(&fixture, &blob, &[]).await;
    assert!(!is_found("2").await, "a write replaces the tags");
    let none = Conditions::default();
    let get = fixture.blobs.get((&blob, BlobState::Current), (&none, None));
    assert_eq!(get.await.expect("it exists").record.tags, Tags::new());
    set(&fixture, &blob, &[("k", "3")]).await;
    fixture.delete_scope(&blob, DeleteScope::WithSnapshots).await.expect("deleted");
    assert!(!is_found("3").await);

    let deleted_for = Some(READ_GRACE);
    fixture.keep(Retention { deleted_for, ..Retention::default() });
    put(&fixture, &blob, &[("k", "4")]).await;
    fixture.delete(&blob).await.expect("deleted");
    assert!(!is_found("4").await, "a deleted blob is not found");
    fixture.undelete(&blob).await.expect("restored");
    assert!(is_found("4").await);
    fixture.stage(&blob, "A", "x").await.expect("staged");
    fixture.commit(&blob, &["A"]).await.expect("committed");
    assert!(!is_found("4").await, "a commit replaces the tags");
}

#[tokio::test]
async fn blobs_of_deleted_containers_are_not_found_and_leave_no_rows() {
    let fixture = BlobFixture::new();
    let id = fixture.container("logs").await.id;
    for name in ["a", "b"] {
        put(&fixture, &key(id, name), &[("k", "1"), ("l", "2")]).await;
    }
    fixture.drop_container("logs").await;
    assert_eq!(found(&fixture, "k = '1'", 10).await, [""; 0]);
    fixture.container("logs").await;
    assert_eq!(found(&fixture, "k = '1'", 10).await, [""; 0]);
    fixture.advance(CONTAINER_GRACE + READ_GRACE);
    fixture.sweep().await;
    let rows = fixture
        .blobs
        .engine
        .scan(&keys::tag_values(id, "k"), ScanLimit { rows: 10, bytes: 1024 })
        .await;
    assert_eq!(rows.expect("scanned").entries.len(), 0);
}

#[tokio::test]
async fn a_page_examines_a_bounded_part_of_the_index() {
    let fixture = BlobFixture::new();
    let id = fixture.container("logs").await.id;
    for number in 0..EXAMINED_MAX + 10 {
        let pairs = [("k", "1"), ("l", if number == EXAMINED_MAX + 5 { "2" } else { "1" })];
        put(&fixture, &key(id, &format!("{number:05}")), &pairs).await;
    }
    let mut request = request("k = '1' AND l > '1'");
    let first = fixture.blobs.find(&account(), &request).await.expect("found");
    assert_eq!(first.blobs.len(), 0);
    request.page_token = first.next_page_token.expect("there is more");
    let second = fixture.blobs.find(&account(), &request).await.expect("found");
    assert_eq!((second.blobs.len(), second.next_page_token), (1, None));
}

#[tokio::test]
async fn a_condition_on_tags_decides() {
    let fixture = BlobFixture::new();
    let blob = fixture.key("a").await;
    let conditions = |text: &str| {
        let condition = crate::tags::expression::TagCondition::parse(text).expect(text);
        let if_tags = Some(StatedTagCondition { text: text.to_owned(), condition });
        Conditions { if_tags, ..Conditions::default() }
    };
    let absent = PutCommand { conditions: conditions("k = '1'"), ..PutCommand::default() };
    let absent = fixture.put_with(&blob, "x", absent).await;
    assert!(matches!(absent, Err(BlobError::Condition(_))), "there are no tags");
    put(&fixture, &blob, &[("k", "1")]).await;
    let get = async |text: &str| {
        fixture.blobs.get((&blob, BlobState::Current), (&conditions(text), None)).await
    };
    assert!(get("k = '1' AND k <> '2'").await.is_ok());
    assert!(matches!(get("k = '2'").await, Err(BlobError::Condition(_))));
    for (text, is_met) in [("k = '2'", false), ("k = '1'", true)] {
        let command = PutCommand {
            conditions: conditions(text),
            tags: tags(&[("k", "1")]),
            ..PutCommand::default()
        };
        assert_eq!(fixture.put_with(&blob, "y", command).await.is_ok(), is_met, "{text}");
        let required = (conditions(text), None);
        let change = BlobChange::Tags(tags(&[("k", "1")]));
        let changed = fixture.blobs.change(blob.clone(), change, required).await;
        assert_eq!(changed.is_ok(), is_met, "{text}");
    }
}

fn comparator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["=", ">", ">=", "<", "<="])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]
    #[test]
    fn the_same_blobs_are_found_as_by_a_scan(
        blobs in prop::collection::vec(prop::collection::btree_map("[ab]", "[0-3 ]{0,2}", 0..3), 1..12),
        comparisons in prop::collection::vec(("[ab]", comparator(), "[0-3 ]{0,2}"), 1..3),
        page_size in 1_usize..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let fixture = BlobFixture::new();
            let id = fixture.container("logs").await.id;
            let text = comparisons.iter().map(|(key, with, value)| format!("{key} {with} '{value}'"));
            let text = text.collect::<Vec<_>>().join(" AND ");
            let filter = TagFilter::parse(&text).expect("a filter");
            let mut expected = BTreeSet::new();
            for (number, pairs) in blobs.iter().enumerate() {
                let pairs = pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()));
                let pairs: Vec<_> = pairs.collect();
                put(&fixture, &key(id, &number.to_string()), &pairs).await;
                if filter.holds(&tags(&pairs)) {
                    expected.insert(format!("logs/{number}"));
                }
            }
            let all = found(&fixture, &text, page_size).await;
            assert_eq!(all.len(), expected.len(), "{text}");
            assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), expected, "{text}");
        });
    }
}

#[tokio::test]
async fn a_page_of_found_blobs_has_a_bound_in_bytes() {
    let fixture = BlobFixture::new();
    let id = fixture.container("logs").await.id;
    let names: Vec<String> = (0..1000).map(|number| format!("{number:04}")).collect();
    let value = "v".repeat(256);
    let pairs: Vec<_> = (0..10).map(|tag| format!("{tag}").repeat(128)).collect();
    let pairs: Vec<_> = pairs.iter().map(|key| (key.as_str(), value.as_str())).collect();
    for name in &names {
        put(&fixture, &key(id, name), &pairs).await;
    }
    let filter = format!("\"{}\" = '{value}'", pairs[0].0);
    let mut request = FindBlobs { page_size: 5000, ..request(&filter) };

    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let page = fixture.blobs.find(&account(), &request).await.expect("found");
        let bytes: usize = page.blobs.iter().map(FoundBlobTags::bytes).sum();
        assert!(bytes < LIST_BYTES_MAX + 8 * 1024, "{bytes}");
        found.extend(page.blobs.into_iter().map(|blob| blob.name.to_string()));
        pages += 1;
        match page.next_page_token {
            Some(token) => request.page_token = token,
            None => break,
        }
    }
    assert_eq!((found, pages), (names, 2));
}

#[tokio::test]
async fn a_row_of_the_index_without_a_blob_is_damage_and_no_absent_blob() {
    let fixture = BlobFixture::new();
    let id = fixture.container("logs").await.id;
    let damaged = key(id, "a");
    put(&fixture, &damaged, &[("state", "new")]).await;
    let mut spec = ChangeSpec::new(damaged.domain());
    let record = spec.read(damaged.row(BlobRow::Record, &[]));
    let deleted = transact(&*fixture.blobs.engine, spec, move |reads, _| {
        let mut writes = Writes::new();
        writes.delete(reads.key(record).clone());
        Ok::<_, BlobError>((writes, ()))
    });
    deleted.await.expect("committed").expect("decided");

    let found = fixture.blobs.find(&account(), &request("\"state\" = 'new'")).await;

    let fault = Fault::from(found.expect_err("the record is lost"));
    assert_eq!(fault.reason, Reason::CorruptRecord);
    assert!(fault.message.ends_with("blob=`a`"), "{}", fault.message);
}
