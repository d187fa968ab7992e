//! Reads of a day of records: a short window, a trace, a search that no index helps, and summaries of all.
//!
//! `BENCH_RECORDS` is the number of records, default 4,000,000.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use trestle_proto::log::v1::{LogReadCost, ReadRecordsRequest, SummarizeRecordsRequest};

use super::{
    BATCH, CLIENTS, LoadEnd, LogBench,
    records::{EXPORT, LoadTimes, LogLoad, mix, trace_of},
};
use crate::{Plan, report};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Records, unless the environment names another number.
const RECORDS: u64 = 4_000_000;
const WINDOW: Duration = Duration::from_secs(5 * 60);
/// Reads of which the middle is reported.
const READS: u64 = 9;
const WINDOW_FIRST_MS: f64 = 15.0;
const WINDOW_ALL_MS: f64 = 60.0;
const TRACE_MS: f64 = 25.0;
const SCAN_ROW_US: f64 = 0.8;
const COUNT_ROW_US: f64 = 0.1;
const SUMMARY_ROW_US: f64 = 1.5;

/// What a read took.
struct ReadTimes {
    first_ms: f64,
    all_ms: f64,
    records: u64,
    cost: LogReadCost,
}

/// Fills a stream with the records of yesterday, and reads it.
pub(crate) async fn reads(_: Plan) {
    let records = std::env::var("BENCH_RECORDS").ok().and_then(|text| text.parse().ok());
    let records: u64 = records.unwrap_or(RECORDS);
    let bench = LogBench::start().await;
    bench.create_default("bench").await;
    let (load, filled) = (fill(&bench, records).await, Instant::now());
    let stats = bench.flush("bench").await;
    assert_eq!(stats.segment_records, records);
    println!("{records} log records in {} segments for the reads", stats.segments);
    println!("  waited for the last segments {:>28.1} s", filled.elapsed().as_secs_f64());

    windows(&bench, &load, records).await;
    traces(&bench, records).await;
    scan(&bench, records).await;
    counts(&bench, records).await;
    quantiles(&bench, records).await;
}

async fn fill(bench: &LogBench, records: u64) -> Arc<LogLoad> {
    let now = time::OffsetDateTime::now_utc().replace_time(time::Time::MIDNIGHT);
    let begin = now - DAY;
    let begin = u64::try_from(begin.unix_timestamp_nanos()).unwrap();
    let step = u64::try_from(DAY.as_nanos()).unwrap() / records;
    let load = Arc::new(LogLoad::new(EXPORT, "bench", BATCH, LoadTimes { begin, step }));
    let end = LoadEnd { time: Duration::MAX, batches: records / BATCH };
    bench.send(&load, CLIENTS, 0, end).await;
    load
}

fn timestamp(nanos: u64) -> prost_types::Timestamp {
    let seconds = i64::try_from(nanos / 1_000_000_000).unwrap();
    prost_types::Timestamp { seconds, nanos: i32::try_from(nanos % 1_000_000_000).unwrap() }
}

async fn read(bench: &LogBench, request: ReadRecordsRequest) -> ReadTimes {
    let request = ReadRecordsRequest { stream: "bench".to_owned(), ..request };
    let (began, mut first_ms) = (Instant::now(), f64::NAN);
    let ms = || began.elapsed().as_secs_f64() * 1000.0;
    let mut responses = bench.client().read_records(request).await.unwrap().into_inner();
    let (mut records, mut cost) = (0, LogReadCost::default());
    while let Some(response) = responses.message().await.unwrap() {
        if first_ms.is_nan() {
            first_ms = ms();
        }
        records += response.records.len() as u64;
        cost = response.cost.unwrap_or(cost);
    }
    ReadTimes { first_ms, all_ms: ms(), records, cost }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    super::percentile(&values, 50)
}

/// Five minutes, each time of another hour.
async fn windows(bench: &LogBench, load: &LogLoad, records: u64) {
    let (mut first, mut all, mut returned, mut bytes) = (Vec::new(), Vec::new(), 0, 0);
    let before = bench.server.cpu_us();
    for number in 0..READS {
        let start = load.time(records * (2 * number + 1) / (2 * READS));
        let window = u64::try_from(WINDOW.as_nanos()).unwrap();
        let request = ReadRecordsRequest {
            start_time: Some(timestamp(start)),
            end_time: Some(timestamp(start + window)),
            ..Default::default()
        };
        let times = read(bench, request).await;
        assert!(times.records > 0, "the window has records");
        first.push(times.first_ms);
        all.push(times.all_ms);
        returned += times.records;
        bytes += times.cost.bytes;
    }
    let cpu = (bench.server.cpu_us() - before) / returned as f64;
    let name = "log records of 5 minutes of a day";
    report::figure(&format!("{name}, first"), middle(first), WINDOW_FIRST_MS, true, "ms");
    report::figure(&format!("{name}, all"), middle(all), WINDOW_ALL_MS, true, "ms");
    let (rows, mib) = (returned / READS, bytes as f64 / READS as f64 / 1024.0 / 1024.0);
    println!("  {rows} records, {mib:.1} MiB of segments, server CPU a record {cpu:.2} us");
}

/// The records of one trace among all.
async fn traces(bench: &LogBench, records: u64) {
    let (mut all, mut scanned) = (Vec::new(), 0);
    let before = bench.server.cpu_us();
    for number in 0..READS {
        let trace = trace_of(mix(number) % records);
        let hex: String = trace.iter().map(|byte| format!("{byte:02x}")).collect();
        let filter = format!("trace_id eq '{hex}'");
        let times = read(bench, ReadRecordsRequest { filter, ..Default::default() }).await;
        assert_eq!(times.records, 1, "a trace has one record");
        all.push(times.all_ms);
        scanned += times.cost.records_scanned;
    }
    let cpu = (bench.server.cpu_us() - before) / READS as f64 / 1000.0;
    report::figure("log records of a trace in a day", middle(all), TRACE_MS, true, "ms");
    println!("  {} records examined, server CPU a read {cpu:.1} ms", scanned / READS);
}

/// A search in the bodies of all records that matches none.
async fn scan(bench: &LogBench, records: u64) {
    let filter = "contains(body, 'no record has this')".to_owned();
    let before = bench.server.cpu_us();
    let times = read(bench, ReadRecordsRequest { filter, ..Default::default() }).await;
    assert_eq!((times.records, times.cost.records_scanned), (0, records));
    let cpu = (bench.server.cpu_us() - before) / records as f64;
    let row_us = times.all_ms * 1000.0 / records as f64;
    report::figure("search in the body of a log record", row_us, SCAN_ROW_US, true, "us");
    report::figure("  server CPU a record", cpu, SCAN_ROW_US, true, "us");
}

/// What a summary took, its groups and its cost.
async fn summarize(bench: &LogBench, request: SummarizeRecordsRequest) -> (f64, u64, LogReadCost) {
    let request = SummarizeRecordsRequest { stream: "bench".to_owned(), ..request };
    let began = Instant::now();
    let mut responses = bench.client().summarize_records(request).await.unwrap().into_inner();
    let (mut records, mut cost) = (0, LogReadCost::default());
    while let Some(response) = responses.message().await.unwrap() {
        records += response.groups.iter().map(|group| group.records).sum::<u64>();
        cost = response.cost.unwrap_or(cost);
    }
    (began.elapsed().as_secs_f64() * 1000.0, records, cost)
}

/// The number of records of each hour: only the times of segments that are in several are read.
async fn counts(bench: &LogBench, records: u64) {
    let interval = Some(prost_types::Duration { seconds: 3600, nanos: 0 });
    let (mut all, mut examined) = (Vec::new(), 0);
    for _ in 0..READS {
        let request = SummarizeRecordsRequest { interval, ..Default::default() };
        let (ms, counted, cost) = summarize(bench, request).await;
        assert_eq!(counted, records);
        all.push(ms * 1000.0 / records as f64);
        examined = cost.records_scanned;
    }
    report::figure("log records counted by hour", middle(all), COUNT_ROW_US, true, "us");
    println!("  {examined} of {records} records examined");
}

/// Quantiles of the duration, by route, which are two attributes without a column.
async fn quantiles(bench: &LogBench, records: u64) {
    let request = SummarizeRecordsRequest {
        group_by: vec!["attributes/http.route".to_owned()],
        value: "attributes/duration_ms".to_owned(),
        quantiles: vec![0.5, 0.99],
        ..Default::default()
    };
    let before = bench.server.cpu_us();
    let (ms, counted, cost) = summarize(bench, request).await;
    assert_eq!((counted, cost.records_scanned), (records, records));
    let cpu = (bench.server.cpu_us() - before) / records as f64;
    let name = "quantiles of an attribute by another, a log record";
    report::figure(name, ms * 1000.0 / records as f64, SUMMARY_ROW_US, true, "us");
    report::figure("  server CPU a record", cpu, SUMMARY_ROW_US, true, "us");
}
