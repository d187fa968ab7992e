//! The bytes of segments beside those of the same records as lines of JSON.

use std::{io::Write as _, sync::Arc, time::Duration};

use super::{
    BATCH, CLIENTS, LoadEnd, LogBench,
    appends::since_an_hour,
    records::{EXPORT, LogLoad},
};
use crate::{Plan, report};

/// Batches that are stored.
const BATCHES: u64 = 400;
/// The level of zstd that the lines are compressed with.
const LEVEL: i32 = 3;
const SHARE_OF_LINES: f64 = 0.13;
const SHARE_OF_COMPRESSED: f64 = 1.0;

/// Bytes of segments as a share of lines of JSON, plain and compressed.
pub(crate) async fn size(_: Plan) {
    let bench = LogBench::start().await;
    bench.create_default("bench").await;
    let load = Arc::new(LogLoad::new(EXPORT, "bench", BATCH, since_an_hour(1_000_000)));
    let end = LoadEnd { time: Duration::MAX, batches: BATCHES };
    bench.send(&load, CLIENTS, 0, end).await;
    let stats = bench.flush("bench").await;
    let (mut plain, mut sent) = (0, 0);
    let mut compressor = zstd::Encoder::new(Vec::new(), LEVEL).unwrap();
    for number in 0..BATCHES {
        let lines = load.json_lines("bench", number);
        sent += load.message(number).len();
        plain += lines.len();
        compressor.write_all(lines.as_bytes()).unwrap();
    }
    let compressed = compressor.finish().unwrap().len();
    let records = (BATCHES * BATCH) as f64;
    assert_eq!(stats.segment_records, BATCHES * BATCH);
    let stored = stats.segment_bytes as f64;
    for (name, bytes) in [
        ("as OTLP", sent as f64),
        ("as lines of JSON", plain as f64),
        ("as lines of JSON, zstd -3", compressed as f64),
        ("in segments", stored),
    ] {
        println!("bytes of a log record {name:<28} {:>7.1} B", bytes / records);
    }
    let percent = |share: f64| 100.0 * share;
    let name = "bytes of segments / lines of JSON";
    let share = stored / plain as f64;
    report::figure(name, percent(share), percent(SHARE_OF_LINES), true, "%");
    let name = "bytes of segments / lines of JSON, zstd -3";
    let share = stored / compressed as f64;
    report::figure(name, percent(share), percent(SHARE_OF_COMPRESSED), true, "%");
}
