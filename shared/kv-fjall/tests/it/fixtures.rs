//! Stores that earlier versions of the format left behind: each is opened as long as its format is supported.
//!
//! `KV_FIXTURE=1 cargo test -p trestle-kv-fjall --test it writes_a_fixture` writes `tests/fixtures/<version>` anew, for
//! the version of the format that this program writes; do that once for each version, and never again.

use std::fs;
use std::path::{Path, PathBuf};

use trestle_kv::{Engine, Version};
use trestle_kv_fjall::{FjallEngine, FjallOptions};
use trestle_model::time::{ManualClock, Ticks};

use crate::fixture_files::{copy, copy_to_fixture};
use crate::world::{commit, everything, get, key, options, put};

/// The version of the format in the manifest.
const CURRENT: &str = "1";
const ROWS: u32 = 200;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn written_at() -> Ticks {
    Ticks::new(639_000_000_000_000_000).unwrap()
}

/// A store with rows in both keyspaces, some overwritten and some deleted, closed.
async fn write(directory: &Path) {
    let clock = std::sync::Arc::new(ManualClock::new(written_at()));
    let engine = FjallEngine::open(FjallOptions { clock, ..options(directory) }).unwrap();
    for row in 0..ROWS {
        let (first, second) = (key(row.to_be_bytes()), [&[0x41], &row.to_be_bytes()[..]].concat());
        commit(&engine, vec![put(first, format!("value {row}")), put(second, "")]).await.unwrap();
    }
    commit(&engine, vec![put(key(0_u32.to_be_bytes()), vec![7; 100_000])]).await.unwrap();
    let deleted = trestle_kv::Write::Delete { key: key(1_u32.to_be_bytes()) };
    commit(&engine, vec![deleted]).await.unwrap();
}

/// Checks what [`write`] wrote.
async fn check(directory: &Path) {
    let engine = FjallEngine::open(options(directory)).unwrap();
    let rows = everything(&engine).await;
    assert_eq!(rows.len(), ROWS as usize - 1);
    assert_eq!(get(&engine, &key(0_u32.to_be_bytes())).await, Some(vec![7; 100_000].into()));
    assert_eq!(get(&engine, &key(1_u32.to_be_bytes())).await, None);
    assert_eq!(get(&engine, &key(199_u32.to_be_bytes())).await, Some("value 199".into()));
    let second = [&[0x41], &199_u32.to_be_bytes()[..]].concat();
    assert_eq!(get(&engine, &second).await, Some("".into()));

    // The stored versions stay below new ones, even with a clock that is far behind.
    drop(engine);
    let clock = std::sync::Arc::new(ManualClock::new(Ticks::MIN));
    let engine = FjallEngine::open(FjallOptions { clock, ..options(directory) }).unwrap();
    let version = commit(&engine, vec![put(key("new"), "")]).await.unwrap();
    assert!(version > Version::new(written_at()), "{version:?}");
    assert!(engine.get(&key("new")).await.unwrap().is_some());
}

#[tokio::test]
async fn writes_a_fixture_that_opens() {
    let (directory, unused) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(directory.path()).await;
    let target = match std::env::var_os("KV_FIXTURE") {
        Some(_) => fixtures().join(CURRENT),
        None => unused.path().join(CURRENT),
    };
    copy_to_fixture(directory.path(), &target);

    let manifest = fs::read_to_string(target.join("MANIFEST")).unwrap();
    assert_eq!(manifest.lines().next(), Some(format!("trestle-kv {CURRENT}").as_str()));
    let opened = tempfile::tempdir().unwrap();
    copy(&target, opened.path());
    check(opened.path()).await;
}

#[tokio::test]
async fn opens_the_store_of_every_format_version() {
    let mut versions = Vec::new();
    for entry in fs::read_dir(fixtures()).unwrap().map(Result::unwrap) {
        let directory = tempfile::tempdir().unwrap();
        copy(&entry.path(), directory.path());
        check(directory.path()).await;
        versions.push(entry.file_name());
    }
    assert!(versions.iter().any(|version| version == CURRENT), "no fixture for {CURRENT}");
}
