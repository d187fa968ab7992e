//! The time to the acknowledgement at a constant rate, below what the server can take.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    BATCH, LogBench, append,
    appends::since_an_hour,
    percentile,
    records::{EXPORT, LogLoad},
};
use crate::{Plan, report};

/// Batches a second: of a thousand records each.
const BATCHES_PER_SECOND: u32 = 100;
/// How much longer than a turn the load is: segments must be sealed meanwhile.
const TURNS: u32 = 5;
const P50_MS: f64 = 6.0;
const P99_MS: f64 = 40.0;

/// Batches that are sent when they are due, whether or not others were acknowledged.
pub(crate) async fn open_loop(plan: Plan) {
    let bench = LogBench::start().await;
    bench.create_default("bench").await;
    let load = Arc::new(LogLoad::new(EXPORT, "bench", BATCH, since_an_hour(10_000)));
    let (began, before) = (Instant::now(), bench.server.cpu_us());
    let batches = u64::from(BATCHES_PER_SECOND) * (plan.turn * TURNS).as_secs();
    let mut calls = Vec::new();
    for number in 0..batches {
        let due = Duration::from_millis(number * 1000 / u64::from(BATCHES_PER_SECOND));
        tokio::time::sleep_until((began + due).into()).await;
        let (connections, load) = (bench.connections.clone(), Arc::clone(&load));
        calls.push(tokio::spawn(async move {
            append(&connections, &load, number).await;
            (began.elapsed() - due).as_secs_f64() * 1000.0
        }));
    }
    let mut waits = Vec::new();
    for call in calls {
        waits.push(call.await.unwrap());
    }
    let cpu = (bench.server.cpu_us() - before) / (batches * BATCH) as f64;
    waits.sort_by(f64::total_cmp);
    let name = "acknowledgement at 100,000 records/s";
    report::figure(&format!("{name}, p50"), percentile(&waits, 50), P50_MS, true, "ms");
    report::figure(&format!("{name}, p99"), percentile(&waits, 99), P99_MS, true, "ms");
    println!("  server CPU a record, what was sealed meanwhile included {cpu:>8.2} us");
}
