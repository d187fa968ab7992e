//! How many changes a second the engine takes when nothing is above it: the ceiling for every
//! benchmark of a service.
//!
//! `cargo bench -p trestle-kv`; `BENCH_SECONDS=5` measures longer, `BENCH_DIR` chooses the disk. On a
//! busy machine count instructions: `BENCH_CHANGES=20000 BENCH_LOAD=update valgrind --tool=callgrind`
//! and the binary, with the loads `put`, `update`, `hot` and `batch`.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark prints its numbers"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;
use trestle_kv::{Change, ChangeSpec, Domain, DomainRef, Engine, Keyspace, ScanLimit, Span, Write};
use trestle_kv_fjall::{EngineStats, FjallEngine, FjallOptions};

const VALUE_BYTES: usize = 1024;
const KEYS: u64 = 20_000;

/// What each task repeats.
#[derive(Clone, Copy)]
enum Load {
    /// One put of a row of its own.
    Put,
    /// A read of one of many rows, and a put that depends on it.
    Update,
    /// The same on one row for all callers.
    HotUpdate,
    /// A hundred puts at once.
    Batch,
}

impl Load {
    fn rows(self) -> u64 {
        if matches!(self, Self::Batch) { 100 } else { 1 }
    }

    fn change(self, number: u64, value: &Bytes) -> Change {
        let value = value.clone();
        match self {
            Self::Put => write(Vec::new(), vec![Write::Put { key: key(number), value }]),
            Self::Update => {
                let key = key(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % KEYS);
                write(vec![key.clone()], vec![Write::Put { key, value }])
            }
            Self::HotUpdate => write(vec![key(0)], vec![Write::Put { key: key(0), value }]),
            Self::Batch => {
                let keys = (0..self.rows()).map(|row| key(number * self.rows() + row));
                let puts = keys.map(|key| Write::Put { key, value: value.clone() });
                write(Vec::new(), puts.collect())
            }
        }
    }
}

fn write(reads: Vec<Bytes>, writes: Vec<Write>) -> Change {
    let mut spec = ChangeSpec::new(Domain::new(1, &b""[..]));
    for key in reads {
        spec.read(key);
    }
    let mut writes = Some(writes);
    Change::new(spec, move |_, _| writes.take().unwrap_or_default().into())
}

/// All rows are one domain: what a batch in a table pays.
fn domain_of(_: &[u8]) -> DomainRef<'_> {
    DomainRef { group: 1, part: &[] }
}

/// 32 bytes, spread over the keyspace as partitions are.
fn key(number: u64) -> Bytes {
    let mut key = vec![1_u8; 32];
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    key.splice(1..9, spread);
    key.splice(9..17, number.to_be_bytes());
    key.into()
}

/// About half of it compresses.
fn value() -> Bytes {
    let mut state = 88_172_645_463_325_252_u64;
    let mut value = vec![0_u8; VALUE_BYTES];
    for byte in value.iter_mut().take(VALUE_BYTES / 2) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = state.to_le_bytes()[0];
    }
    value.into()
}

struct Measured {
    changes_per_second: f64,
    /// Processor time of the commit thread, in microseconds a change: of all numbers the one that
    /// a busy machine disturbs least.
    commit_micros: f64,
    group: f64,
    group_micros: f64,
    p50: Duration,
    p99: Duration,
}

async fn measure(engine: &Arc<FjallEngine>, load: Load, tasks: u64, time: Duration) -> Measured {
    let (stop, value) = (Arc::new(AtomicBool::new(false)), value());
    let (before, commit_before) = (engine.stats(), commit_thread_nanos());
    let started = Instant::now();
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let (engine, stop, value) = (Arc::clone(engine), Arc::clone(&stop), value.clone());
        running.spawn(async move {
            let mut took = Vec::new();
            let mut number = task;
            while !stop.load(Ordering::Relaxed) {
                let began = Instant::now();
                engine.commit(load.change(number, &value)).await.unwrap();
                took.push(began.elapsed());
                number += tasks;
            }
            took
        });
    }
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let mut took = running.join_all().await.concat();
    let elapsed = started.elapsed().as_secs_f64();
    let commit_nanos = commit_thread_nanos().saturating_sub(commit_before);
    took.sort_unstable();
    let part = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
    let (group, group_micros) = groups(before, engine.stats());
    Measured {
        changes_per_second: took.len() as f64 / elapsed,
        commit_micros: commit_nanos as f64 / 1e3 / took.len().max(1) as f64,
        group,
        group_micros,
        p50: part(50),
        p99: part(99),
    }
}

/// Linux reports it for each thread; on other systems it is 0.
fn commit_thread_nanos() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    tasks
        .filter(|task| read(task.path().join("comm")).trim() == "kv-commit")
        .filter_map(|task| {
            read(task.path().join("schedstat")).split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum()
}

/// Changes a group, and time a group, between two readings.
fn groups(before: EngineStats, after: EngineStats) -> (f64, f64) {
    let groups = (after.groups - before.groups).max(1) as f64;
    let changes = (after.changes - before.changes) as f64;
    let time = after.write_time - before.write_time;
    (changes / groups, time.as_secs_f64() * 1e6 / groups)
}

/// Point reads and pages over rows that have settled on disk: right after a load, a page merges
/// dozens of runs, and the numbers would depend on how far compaction got.
async fn reads(directory: PathBuf, time: Duration) {
    const ROWS: u64 = 200_000;
    let engine = open(directory);
    let value = value();
    for batch in 0..ROWS / 100 {
        engine.commit(Load::Batch.change(batch, &value)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let limit = ScanLimit { rows: 100, bytes: usize::MAX };
    let per_second = |count: u64, started: Instant| count as f64 / started.elapsed().as_secs_f64();

    let (mut gets, started) = (0, Instant::now());
    while started.elapsed() < time {
        let view = engine.snapshot().await.unwrap();
        view.get(&key(gets * 7_919 % ROWS)).await.unwrap();
        gets += 1;
    }
    println!("get, 1 task:           {:>9.0} /s", per_second(gets, started));
    let (mut pages, mut rows, started) = (0, 0, Instant::now());
    while started.elapsed() < time {
        let view = engine.snapshot().await.unwrap();
        let span = Span::new(key(pages * 7_919 % ROWS), vec![2]);
        rows += view.scan(&span, limit).await.unwrap().entries.len() as u64;
        pages += 1;
    }
    println!("rows in pages, 1 task: {:>9.0} /s", per_second(rows, started));
}

fn open(directory: PathBuf) -> Arc<FjallEngine> {
    let keyspaces = vec![Keyspace { name: "rows", kinds: 1..=1, domain: domain_of }];
    let started = Instant::now();
    let engine = FjallEngine::open(FjallOptions::new(directory, keyspaces)).unwrap();
    println!("open empty: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    Arc::new(engine)
}

async fn writes(directory: PathBuf, time: Duration) {
    let engine = open(directory);
    let loads = [
        ("put", Load::Put),
        ("update", Load::Update),
        ("hot update", Load::HotUpdate),
        ("batch of 100", Load::Batch),
    ];
    println!(
        "load          tasks   changes/s      rows/s  group  us/group  cpu us  p50 us  p99 us"
    );
    for (name, load) in loads {
        for tasks in [1, 16, 64, 256] {
            let seen = measure(&engine, load, tasks, time).await;
            print!("{name:<13} {tasks:>5}  {:>10.0}", seen.changes_per_second);
            print!("  {:>10.0}", seen.changes_per_second * load.rows() as f64);
            print!("  {:>5.1}  {:>8.0}", seen.group, seen.group_micros);
            print!("  {:>6.1}  {:>6}", seen.commit_micros, seen.p50.as_micros());
            println!("  {:>6}", seen.p99.as_micros());
        }
    }
}

/// A fixed number of changes of one load from 64 tasks on one thread, for tools that count instructions.
async fn counted(directory: PathBuf, changes: u64, load: Load) {
    let engine = open(directory);
    let mut running = JoinSet::new();
    for task in 0..64 {
        let (engine, value) = (Arc::clone(&engine), value());
        running.spawn(async move {
            for number in (task..changes).step_by(64) {
                engine.commit(load.change(number, &value)).await.unwrap();
            }
        });
    }
    running.join_all().await;
}

fn main() {
    let seconds = std::env::var("BENCH_SECONDS").ok().and_then(|text| text.parse().ok());
    let time = Duration::from_secs(seconds.unwrap_or(2));
    let parent = std::env::var_os("BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = tempfile::tempdir_in(parent).unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Some(changes) = std::env::var("BENCH_CHANGES").ok().and_then(|text| text.parse().ok()) {
        let load = match std::env::var("BENCH_LOAD").as_deref() {
            Ok("update") => Load::Update,
            Ok("hot") => Load::HotUpdate,
            Ok("batch") => Load::Batch,
            _ => Load::Put,
        };
        return runtime.block_on(counted(directory.path().join("counted"), changes, load));
    }
    runtime.block_on(reads(directory.path().join("reads"), time));
    runtime.block_on(writes(directory.path().join("writes"), time));
}
