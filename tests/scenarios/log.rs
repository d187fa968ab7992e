//! Streams of log records.

mod appends;
pub(crate) mod export;
mod export_http;
mod follow;
mod large_exports;
mod reads;
mod signatures;
mod signed_exports;
mod streams;
mod summaries;

use std::time::{SystemTime, UNIX_EPOCH};

/// A second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// The start of an hour that is over, in nanoseconds since 1970: all within one day.
#[allow(clippy::disallowed_methods, reason = "records must not be in the future of the server")]
pub(crate) fn an_hour() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    (now / 86_400 * 86_400 - 3_600) * SECOND
}
