//! Appends: to the acknowledgement, where nothing is sealed meanwhile, and with their share of sealing.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    BATCH, CLIENTS, LoadEnd, LogBench, MIB,
    records::{APPEND, EXPORT, LoadTimes, LogLoad},
};
use crate::{
    Plan, paths,
    report::{self, Side},
};

/// Bytes that a stream takes in before it is sealed, and a record of the load, more or less.
const UNSEALED_BYTES: u64 = 240 * MIB;
const RECORD_BYTES: u64 = 400;
/// How much longer than a turn the load with sealing is: some segments must be sealed.
const SEALED_TURNS: u32 = 10;
/// Processor time of the server for a record to the acknowledgement, and with sealing, in microseconds.
const ACKNOWLEDGED_US: f64 = 1.5;
const SEALED_US: f64 = 6.0;
/// Records a second in bursts, and with sealing.
const BURST_RATE: f64 = 800_000.0;
const SEALED_RATE: f64 = 200_000.0;

/// Times from an hour ago on, so many nanoseconds apart: none is after the time of the server.
pub(super) fn since_an_hour(step: u64) -> LoadTimes {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap() - Duration::from_secs(3600);
    LoadTimes { begin: u64::try_from(since.as_nanos()).unwrap(), step }
}

/// Batches of three sizes, by OTLP and by the service, to the acknowledgement.
pub(crate) async fn acknowledged(plan: Plan) {
    for (name, path, batch, clients, rate) in [
        ("log records exported by 1,000", EXPORT, BATCH, CLIENTS, BURST_RATE),
        ("log records appended by 1,000", APPEND, BATCH, CLIENTS, BURST_RATE),
        ("log records exported by 10", EXPORT, 10, paths::CLIENTS, 120_000.0),
        ("log records exported one by one", EXPORT, 1, paths::CLIENTS, 15_000.0),
    ] {
        let bench = LogBench::start().await;
        let mut side = Side::default();
        for round in 0..plan.rounds {
            let stream = format!("bench-{round}");
            bench.create_unsealed(&stream).await;
            let load = Arc::new(LogLoad::new(path, &stream, batch, since_an_hour(4_000)));
            let batches = UNSEALED_BYTES / (RECORD_BYTES * batch);
            let before = bench.server.cpu_us();
            let end = LoadEnd { time: plan.turn, batches };
            let done = bench.send(&load, clients, 0, end).await;
            side.add(done, bench.server.cpu_us() - before);
        }
        report::figure(name, side.rate(), rate, false, "/s");
        let cpu = side.cpu_us_per_operation();
        if batch == BATCH {
            report::figure("  server CPU a record", cpu, ACKNOWLEDGED_US, true, "us");
        } else {
            println!("  server CPU a record {cpu:>37.2} us");
        }
    }
}

/// Batches of a thousand records as fast as they are accepted, until the last one is sealed.
pub(crate) async fn sealed(plan: Plan) {
    for (name, path) in [("exported", EXPORT), ("appended", APPEND)] {
        let bench = LogBench::start().await;
        bench.create_default("bench").await;
        let load = Arc::new(LogLoad::new(path, "bench", BATCH, since_an_hour(4_000)));
        let (before, began) = (bench.server.cpu_us(), Instant::now());
        let end = LoadEnd { time: plan.turn * SEALED_TURNS, batches: u64::MAX };
        let done = bench.send(&load, CLIENTS, 0, end).await;
        let stats = bench.flush("bench").await;
        let (seconds, cpu) = (began.elapsed().as_secs_f64(), bench.server.cpu_us() - before);
        assert_eq!(stats.segment_records, done.operations, "every acknowledged record is sealed");
        let records = stats.segment_records as f64;
        let name = format!("log records {name} and sealed, {seconds:.0} s");
        report::figure(&name, records / seconds, SEALED_RATE, false, "/s");
        report::figure("  server CPU a record", cpu / records, SEALED_US, true, "us");
        println!("  segments {:>48}", stats.segments);
        println!("  resident memory {:>41.0} MiB", bench.server.resident_mib());
    }
}
