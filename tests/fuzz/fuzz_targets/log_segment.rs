//! Segments whose bytes changed, were cut off or are more than they were: a read returns what was written, or an error,
//! and no record that was not written.
#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use prost::Message as _;
use trestle_log::fuzzing::{RECEIVED, batches_of_logs, sealed_records, segments};
use trestle_proto::opentelemetry::proto::{
    common::v1::{AnyValue, any_value::Value},
    logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
};

#[derive(Debug, Arbitrary)]
struct Input {
    /// At a position, some bytes are replaced by others.
    damage: Vec<(u32, u8, Vec<u8>)>,
    /// The size in the manifest differs by this.
    size: i16,
    /// Bytes of the checksums that are replaced.
    checksums: Vec<(u16, u8)>,
}

/// A segment of several frames, with its checksums.
static SEGMENT: LazyLock<(Bytes, Bytes)> = LazyLock::new(|| {
    let record = |at: u64| {
        // Text that does not compress, so that there are several frames.
        let text = (0..40).fold((at, String::new()), |(state, text), _| {
            let state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1 + at);
            (state, text + &format!("{:08x}", state >> 32))
        });
        let body = AnyValue { value: Some(Value::StringValue(text.1)) };
        let time_unix_nano = RECEIVED - at;
        LogRecord { time_unix_nano, body: Some(body), ..LogRecord::default() }
    };
    let log_records = (0..1_000).map(record).collect();
    let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
    let logs = ResourceLogs { scope_logs, ..ResourceLogs::default() };
    let batches = batches_of_logs(&[logs.encode_to_vec()]).expect("accepted");
    let segment = segments(&batches[0].0).expect("sealed").remove(0);
    assert!(segment.0.len() > 2 * 65_536, "{} bytes", segment.0.len());
    segment
});

fuzz_target!(|input: Input| {
    let (object, checksums) = &*SEGMENT;
    let mut damaged = object.to_vec();
    for (position, length, bytes) in &input.damage {
        let from = usize::try_from(*position).expect("a position") % (damaged.len() + 1);
        let to = (from + usize::from(*length)).min(damaged.len());
        damaged.splice(from..to, bytes.iter().copied());
    }
    let mut sums = checksums.to_vec();
    for (position, byte) in &input.checksums {
        let at = usize::from(*position) % sums.len();
        sums[at] = *byte;
    }
    let whole = u64::try_from(object.len()).expect("a size");
    let size = whole.saturating_add_signed(input.size.into());
    let is_intact = size == whole && damaged.starts_with(object) && sums == **checksums;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let read = sealed_records(damaged.into(), size, sums.into());
    let read = runtime.expect("a runtime starts").block_on(read);
    match read {
        Ok(records) => assert!(is_intact && records.len() == 1_000),
        Err(error) => assert!(!is_intact && !error.is_empty(), "{error}"),
    }
});
