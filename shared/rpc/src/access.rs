//! The access log: one line for each call, on a target of its own.
//!
//! Keys of entities are data. Unless the configuration allows clear text, a line carries a keyed
//! hash of them: equal keys can be matched, and without the salt guessed keys cannot be verified.
//! No line carries a credential, only its kind.

use std::{net::SocketAddr, time::Duration};

use http::HeaderValue;
use ring::hmac;
use tonic::Status;
use tonic_types::StatusExt as _;
use tracing::info;

use crate::{
    call_statistics::{CallStatistics, RecordedStatistics},
    semconv,
};

/// Bytes of a hash in a line: enough to distinguish keys, and short.
const HASH_BYTES: usize = 8;

/// Writes a line for each call, or none.
#[derive(Debug, Clone, Default)]
pub struct AccessLog {
    keys: Option<LoggedKeys>,
}

/// The representation of keys in a line.
#[derive(Debug, Clone)]
enum LoggedKeys {
    Clear,
    Hashed(hmac::Key),
}

impl AccessLog {
    /// Writes no lines.
    #[must_use]
    pub fn off() -> Self {
        Self { keys: None }
    }

    /// Writes keys in clear text.
    #[must_use]
    pub fn clear() -> Self {
        Self { keys: Some(LoggedKeys::Clear) }
    }

    /// Writes keys as hashes under a salt. Processes with the same salt write the same hashes.
    #[must_use]
    pub fn hashed(salt: &[u8]) -> Self {
        Self { keys: Some(LoggedKeys::Hashed(hmac::Key::new(hmac::HMAC_SHA256, salt))) }
    }

    /// Whether the log is disabled.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.keys.is_none()
    }

    /// Writes the line of a call.
    pub(crate) fn write(&self, line: &AccessLogLine<'_>) {
        let Some(keys) = &self.keys else { return };
        let caller = line.statistics.caller.as_ref();
        let statistics = &line.statistics.statistics;
        let [partition_key, row_key] = keys.clear(statistics);
        let [partition_key_hash, row_key_hash] = keys.hashed(statistics);
        info!(
            target: semconv::ACCESS_TARGET,
            request_id = line.request_id,
            account = caller.map(|caller| caller.account.as_str()),
            credential = caller.map(|caller| &*caller.credential),
            policy = caller.and_then(|caller| caller.policy.as_deref()),
            peer = line.peer.map(tracing::field::display),
            method = line.method,
            table = statistics.table,
            queue = statistics.queue,
            container = statistics.container,
            partition_key,
            row_key,
            partition_key_hash,
            row_key_hash,
            status = line.status,
            reason = line.reason(),
            written = statistics.written,
            scanned = statistics.scanned,
            returned = statistics.returned,
            bytes = statistics.bytes,
            response_bytes = line.response_bytes,
            duration_us = u64::try_from(line.took.as_micros()).unwrap_or(u64::MAX),
        );
    }
}

impl LoggedKeys {
    fn clear<'a>(&self, statistics: &'a CallStatistics) -> [Option<&'a str>; 2] {
        match self {
            Self::Clear => [statistics.partition_key.as_deref(), statistics.row_key.as_deref()],
            Self::Hashed(_) => [None, None],
        }
    }

    fn hashed(&self, statistics: &CallStatistics) -> [Option<String>; 2] {
        match self {
            Self::Clear => [None, None],
            Self::Hashed(salt) => [&statistics.partition_key, &statistics.row_key]
                .map(|key| key.as_ref().map(|key| hash(salt, key))),
        }
    }
}

fn hash(salt: &hmac::Key, key: &str) -> String {
    let tag = hmac::sign(salt, key.as_bytes());
    tag.as_ref().iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// The fields of a line.
pub(crate) struct AccessLogLine<'a> {
    pub(crate) request_id: &'a str,
    /// The method as a label.
    pub(crate) method: &'a str,
    /// The gRPC code.
    pub(crate) status: &'static str,
    /// The details of a failure, as the answer carries them.
    pub(crate) details: Option<&'a HeaderValue>,
    pub(crate) took: Duration,
    pub(crate) response_bytes: u64,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) statistics: RecordedStatistics,
}

impl AccessLogLine<'_> {
    /// The reason of a failed call, if its error has one.
    fn reason(&self) -> Option<String> {
        reason_of(self.details?)
    }
}

/// The reason in the details of a failure.
pub(crate) fn reason_of(details: &HeaderValue) -> Option<String> {
    let mut headers = http::HeaderMap::new();
    headers.insert(Status::GRPC_STATUS, HeaderValue::from_static("2"));
    headers.insert(Status::GRPC_STATUS_DETAILS, details.clone());
    let details = Status::from_header_map(&headers)?.get_error_details();
    details.error_info().map(|info| info.reason.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics() -> CallStatistics {
        let mut statistics = CallStatistics::default();
        statistics.set_key("customer-4711", "r");
        statistics
    }

    #[test]
    fn keys_are_hashed_under_a_salt_unless_they_are_allowed_in_clear() {
        let shown = |log: &AccessLog| {
            let keys = log.keys.clone().expect("lines");
            (
                keys.clear(&statistics()).map(|key| key.map(str::to_owned)),
                keys.hashed(&statistics()),
            )
        };

        let (clear, hashed) = shown(&AccessLog::hashed(b"salt"));
        assert_eq!(clear, [None, None]);
        let [Some(partition), Some(row)] = &hashed else { panic!("{hashed:?}") };
        assert_eq!((partition.len(), row.len()), (16, 16));
        assert_ne!(partition, row);
        assert_eq!(shown(&AccessLog::hashed(b"salt")).1, hashed);
        assert_ne!(shown(&AccessLog::hashed(b"pepper")).1, hashed);

        let (clear, hashed) = shown(&AccessLog::clear());
        assert_eq!(clear, [Some("customer-4711".to_owned()), Some("r".to_owned())]);
        assert_eq!(hashed, [None, None]);
    }

    #[test]
    fn the_salt_is_never_printed() {
        let shown = format!("{:?}", AccessLog::hashed(b"very secret salt"));

        assert!(!shown.contains("secret"), "{shown}");
    }
}
