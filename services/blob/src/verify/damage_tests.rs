//! Damage of each kind of content, and verifications that continue or read little.

use std::{collections::BTreeMap, time::Duration};

use futures::TryStreamExt as _;

use super::*;
use crate::{
    fixture::{BlobFixture, sample},
    names::BlobName,
    record::Retention,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn named(key: &BlobKey, name: &str) -> BlobKey {
    BlobKey { name: BlobName::stored(name.to_owned()), ..key.clone() }
}

async fn verify(
    fixture: &BlobFixture,
    (key, prefix): (&BlobKey, &str),
    behind: Option<&[u8]>,
    at_once: usize,
) -> Vec<VerifiedContent> {
    let stream = fixture.blobs.verify((key.container, prefix), behind, at_once);
    stream.try_collect().await.expect("it goes on")
}

fn rows(found: &[VerifiedContent]) -> Vec<&Bytes> {
    found.iter().map(|it| &it.row).collect()
}

/// What identifies a content here: its name, and whether it is staged, past or deleted.
fn kind(it: &VerifiedContent) -> String {
    let state = match &it.state {
        None => "staged",
        Some((_, record)) if record.deletion.is_some() => "deleted",
        Some((BlobState::Past(_), _)) => "past",
        Some(_) => "current",
    };
    format!("{} {state}", it.blob.name)
}

/// The failed contents by what they are, with the bytes of them that could be read.
fn failed(found: &[VerifiedContent]) -> BTreeMap<String, u64> {
    found.iter().filter(|it| it.error.is_some()).map(|it| (kind(it), it.bytes)).collect()
}

#[tokio::test]
async fn one_absent_object_fails_the_contents_that_have_it_and_no_other() {
    let mut seen = Vec::new();
    for index in 0..7 {
        let fixture = BlobFixture::new();
        let key = fixture.key("shared").await;
        fixture.put(&key, sample(100_000)).await;
        fixture.snapshot(&key).await.expect("a snapshot");
        fixture.put(&named(&key, "snapshot"), sample(110_000)).await;
        fixture.snapshot(&named(&key, "snapshot")).await.expect("a snapshot");
        fixture.put(&named(&key, "snapshot"), sample(120_000)).await;
        fixture.keep(Retention { versions: true, ..Retention::default() });
        fixture.put(&named(&key, "version"), sample(130_000)).await;
        fixture.put(&named(&key, "version"), "small").await;
        fixture.keep(Retention { deleted_for: Some(DAY), ..Retention::default() });
        fixture.put(&named(&key, "removed"), sample(140_000)).await;
        fixture.delete(&named(&key, "removed")).await.expect("deleted");
        for (id, length) in [("A", 150_000), ("B", 160_000)] {
            fixture.stage(&named(&key, "blocks"), id, sample(length)).await.expect("staged");
        }
        let before = verify(&fixture, (&key, ""), None, 8).await;
        assert_eq!((before.len(), failed(&before).len()), (8, 0), "{before:?}");
        let mut objects: Vec<_> = fixture.blobs.objects.list().try_collect().await.expect("listed");
        assert_eq!(objects.len(), 7);
        objects.sort_by_key(|object| object.content.0);

        let absent = objects.into_iter().skip(index).take(1);
        fixture.blobs.objects.delete_each(absent).await.expect("deleted");

        let after = verify(&fixture, (&key, ""), None, 8).await;
        assert_eq!(rows(&after), rows(&before), "each content is named once, in order");
        for (before, after) in before.iter().zip(&after).filter(|(_, it)| it.error.is_none()) {
            assert_eq!(before.bytes, after.bytes, "{after:?}");
        }
        seen.push(failed(&after));
    }
    let expected: [&[(&str, u64)]; 7] = [
        // A snapshot has the object of its blob.
        &[("shared current", 0), ("shared past", 0)],
        &[("snapshot past", 0)],
        &[("snapshot current", 0)],
        &[("version past", 0)],
        &[("removed deleted", 0)],
        // The other block is read.
        &[("blocks staged", 160_000)],
        &[("blocks staged", 150_000)],
    ];
    let expected = expected.map(|it| it.iter().map(|it| (it.0.to_owned(), it.1)).collect());
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_verification_of_several_scans_continues_behind_any_row() {
    const BLOBS: usize = 300;
    let fixture = BlobFixture::new();
    let key = fixture.key("other").await;
    for number in 0..BLOBS {
        fixture.put(&named(&key, &format!("b{number:03}")), "small").await;
    }
    fixture.stage(&named(&key, "b"), "A", "x").await.expect("staged");
    fixture.put(&key, "small").await;
    fixture.snapshot(&named(&key, "b299")).await.expect("a snapshot");

    let all = verify(&fixture, (&key, "b"), None, 16).await;

    assert_eq!(all.len(), BLOBS + 2, "the staged blocks and the snapshot too");
    for at in [0, 1, 254, 255, 256, 257, 298, 299, 300, 301] {
        let rest = verify(&fixture, (&key, "b"), Some(&all[at].row), 16).await;
        assert_eq!(rows(&rest), rows(&all)[at + 1..], "behind {at}");
    }
    // A row that is not of the prefix continues where it would be.
    let other = key.row(BlobRow::Record, &[]);
    let rest = verify(&fixture, (&key, "b"), Some(&other), 16).await;
    assert_eq!(rows(&rest), rows(&all)[BLOBS..]);
}

#[tokio::test]
async fn a_container_has_only_its_own_contents_and_an_empty_one_has_none() {
    let fixture = BlobFixture::new();
    let (empty, filled) = (fixture.key("a").await, fixture.key("a").await);
    for name in ["a", "a/b", "ab", "\u{e9}"] {
        fixture.put(&named(&filled, name), "small").await;
    }
    let row = filled.row(BlobRow::Record, &[]);
    assert!(verify(&fixture, (&empty, ""), None, 1).await.is_empty());
    assert!(verify(&fixture, (&empty, ""), Some(&row), 1).await.is_empty());
    for (prefix, count) in [("", 4), ("a", 3), ("a/", 1), ("ab", 1), ("abc", 0), ("\u{e9}", 1)] {
        let found = verify(&fixture, (&filled, prefix), None, 1).await;
        assert_eq!(found.len(), count, "{prefix:?}");
    }
}

#[tokio::test]
async fn what_is_deleted_or_replaced_during_a_verification_is_left_out() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    for name in ["a", "b", "c", "d"] {
        fixture.put(&named(&key, name), sample(100_000)).await;
    }
    let stream = fixture.blobs.verify((key.container, ""), None, 1);
    let mut stream = std::pin::pin!(stream);
    let first = stream.try_next().await.expect("read").expect("a content");
    assert_eq!(kind(&first), "a current");

    fixture.delete(&named(&key, "b")).await.expect("deleted");
    fixture.put(&named(&key, "c"), "small").await;

    let rest: Vec<_> = stream.try_collect().await.expect("read");
    let rest: Vec<_> = rest.iter().map(|it| (kind(it), it.bytes, it.error.is_none())).collect();
    assert_eq!(rest, [("d current".to_owned(), 100_000, true)]);
}
