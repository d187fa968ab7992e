//! Commits and reads a second of the engine, in turns of one run, and what long keys cost:
//!
//! ```sh
//! cargo bench -p trestle-kv-postgres
//! ```
//!
//! Prints a line a round and the medians. The server is started for it, with `fsync` on; without PostgreSQL it says so.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program of its own")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use trestle_kv::conformance::rows::{NO_LIMIT, commit, key, noise, put};
use trestle_kv::conformance::{KEYSPACES, reading};
use trestle_kv::{Engine, Span, Write, Writes, transact};
use trestle_kv_postgres::testing::PostgresServer;
use trestle_kv_postgres::{PostgresEngine, PostgresOptions};

/// Rounds of each.
const ROUNDS: usize = 3;
/// How long a round of one takes.
const SECONDS: u64 = 4;
/// Callers of inserts and gets.
const CALLERS: usize = 256;
/// Callers that change one row.
const HOT_CALLERS: usize = 32;
/// Bytes of a value.
const VALUE_BYTES: usize = 1_024;
/// Keys that are too long for a row, and their length.
const LONG_KEYS: usize = 3_000;
const LONG_KEY_BYTES: usize = 2_500;

#[tokio::main]
async fn main() {
    let Some(server) = PostgresServer::start(&["fsync=on", "max_connections=400"]).await else {
        return;
    };
    let database = server.database().await;
    let options = PostgresOptions::new(server.address(&database), KEYSPACES);
    let engine = Arc::new(PostgresEngine::open(options).await.unwrap());
    let mut rates: Vec<(&str, Vec<f64>)> = Vec::new();
    let mut note = |name, rate: f64| {
        println!("{name:<28} {rate:>9.0} a second");
        match rates.iter_mut().find(|(noted, _)| *noted == name) {
            Some((_, rates)) => rates.push(rate),
            None => rates.push((name, vec![rate])),
        }
    };
    for _ in 0..ROUNDS {
        note("inserts of the engine", inserts(&engine).await);
        note("changes of one row", hot_row(&engine).await);
        note("gets of the engine", gets(&engine).await);
    }
    long_keys(&engine).await;
    println!("medians:");
    for (name, mut rates) in rates {
        rates.sort_by(f64::total_cmp);
        println!("{name:<28} {:>9.0} a second", rates.get(rates.len() / 2).unwrap());
    }
}

/// Calls of `call` a second, by so many callers.
async fn rate<F>(callers: usize, call: impl Fn(u64) -> F + Clone + Send + 'static) -> f64
where
    F: Future<Output = ()> + Send,
{
    let count = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let until = began + Duration::from_secs(SECONDS);
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (count, call) = (Arc::clone(&count), call.clone());
        tasks.spawn(async move {
            while Instant::now() < until {
                call(rand::random()).await;
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    tasks.join_all().await;
    count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}

async fn inserts(engine: &Arc<PostgresEngine>) -> f64 {
    let (engine, value) = (Arc::clone(engine), bytes::Bytes::from(noise(1, VALUE_BYTES)));
    rate(CALLERS, move |number| {
        let (engine, value) = (Arc::clone(&engine), value.clone());
        async move {
            commit(&*engine, vec![put(key(number.to_be_bytes()), value)]).await.unwrap();
        }
    })
    .await
}

async fn hot_row(engine: &Arc<PostgresEngine>) -> f64 {
    let engine = Arc::clone(engine);
    rate(HOT_CALLERS, move |_| {
        let engine = Arc::clone(&engine);
        async move {
            let row = key("hot");
            let mut spec = reading([&row]);
            let read = spec.read(row);
            let changed = transact(&*engine, spec, move |reads, version| {
                let mut writes = Writes::new();
                writes.put(reads.key(read).clone(), version.ticks().get().to_be_bytes().to_vec());
                Ok::<_, ()>((writes, ()))
            });
            changed.await.unwrap().unwrap();
        }
    })
    .await
}

async fn gets(engine: &Arc<PostgresEngine>) -> f64 {
    let engine = Arc::clone(engine);
    rate(CALLERS, move |_| {
        let engine = Arc::clone(&engine);
        async move {
            assert!(engine.get(&key("hot")).await.unwrap().is_some());
        }
    })
    .await
}

/// Inserts long keys, none of which has a layer with another one, and deletes them. A scan of them, before and after.
async fn long_keys(engine: &Arc<PostgresEngine>) {
    let keys: Vec<_> = (0..LONG_KEYS as u64)
        .map(|seed| key([b"long", &noise(seed, LONG_KEY_BYTES)[..]].concat()))
        .collect();
    let long = Span::prefix(&key("long"));
    for (name, is_put) in [("inserts", true), ("deletes", false)] {
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for key in keys.iter().cloned() {
            let write = if is_put { put(key, "") } else { Write::Delete { key } };
            let engine = Arc::clone(engine);
            tasks.spawn(async move { commit(&*engine, vec![write]).await.unwrap() });
        }
        tasks.join_all().await;
        let rate = LONG_KEYS as f64 / began.elapsed().as_secs_f64();
        println!("{:<28} {rate:>9.0} a second", format!("{name} of long keys"));
        let began = Instant::now();
        let rows = engine.scan(&long, NO_LIMIT).await.unwrap().entries.len();
        println!(
            "{:<28} {:>9.1?} for {rows} rows",
            format!("a scan after these {name}"),
            began.elapsed()
        );
    }
}
