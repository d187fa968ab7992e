//! Kill -9 at any instant: acknowledged changes exist, and every change is whole.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use trestle_kv::{Engine, Span, after_key};

use crate::world::{NO_LIMIT, commit, open, options, put};
use crate::{child, world};

const ROUNDS: u64 = 24;
const TASKS: u64 = 4;
/// Changes that a child has acknowledged before every other kill.
const CHANGES: usize = 10;

/// Rows of one change: in two keyspaces, small and big.
fn rows(change: &str) -> Vec<trestle_kv::Write> {
    vec![
        put(world::key(format!("{change}/a")), change.to_owned()),
        put(world::key(format!("{change}/b")), vec![7; 20_000]),
        put([b"\x41", change.as_bytes(), b"/c"].concat(), change.to_owned()),
    ]
}

pub(crate) fn commit_until_killed(directory: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let engine = open(directory);
    let born = std::process::id();
    for task in 0..TASKS {
        let engine = Arc::clone(&engine);
        runtime.spawn(async move {
            for count in 0.. {
                let change = format!("{born}-{task}-{count}");
                commit(&*engine, rows(&change)).await.unwrap();
                child::report(&format!("ack {change}"));
            }
        });
    }
    // Until the parent kills it, or has ended itself.
    std::thread::sleep(2 * crate::HANG);
}

/// Names of the changes and how many of their rows there are.
async fn stored(engine: &dyn Engine) -> BTreeMap<String, usize> {
    let view = engine.snapshot().await.unwrap();
    let mut found = BTreeMap::new();
    for kind in [1, 0x41] {
        let mut span = Span::prefix(&[kind]);
        loop {
            let page = view.scan(&span, NO_LIMIT).await.unwrap();
            for entry in &page.entries {
                let name = String::from_utf8(entry.key[1..].to_vec()).unwrap();
                let (change, _) = name.rsplit_once('/').unwrap();
                *found.entry(change.to_owned()).or_insert(0) += 1;
            }
            let Some(last) = page.entries.last().filter(|_| page.more) else { break };
            span = Span::new(after_key(&last.key), span.end);
        }
    }
    found
}

#[tokio::test]
async fn acknowledged_changes_survive_kill_9_and_are_whole() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeSet::new();

    for round in 0..ROUNDS {
        let mut process = child::command("commit-until-killed", directory.path()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (received, acknowledgements) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            lines
                .filter_map(|line| Some(line.strip_prefix("ack ")?.to_owned()))
                // No process may be waiting for it any more.
                .inspect(|_| _ = received.send(()))
                .collect::<Vec<_>>()
        });
        // Even rounds hit the making of the directory, and recovery; odd ones hit commits.
        if round % 2 == 1 {
            for _ in 0..CHANGES {
                acknowledgements.recv_timeout(crate::HANG).expect("the child commits");
            }
        }
        std::thread::sleep(Duration::from_millis(2 + round * 37 % 160));
        process.kill().unwrap();
        process.wait().unwrap();
        acknowledged.extend(reader.join().unwrap());

        let engine = trestle_kv_fjall::FjallEngine::open(options(directory.path())).unwrap();
        let stored = stored(&engine).await;
        let lost: Vec<_> =
            acknowledged.iter().filter(|change| !stored.contains_key(*change)).collect();
        let torn: Vec<_> = stored.iter().filter(|(_, rows)| **rows != 3).collect();
        assert!(lost.is_empty(), "round {round}: acknowledged but lost: {lost:?}");
        assert!(torn.is_empty(), "round {round}: torn: {torn:?}");
    }

    assert!(acknowledged.len() > 100, "the children hardly wrote: {}", acknowledged.len());
}
