//! The statistics of a call for the access log that only the service has: the caller, the resource,
//! the cost.
//!
//! Recorded only for calls that request them. Within a process the statistics are a cell in the
//! extensions of the request, which each layer fills. A gateway requests them from another process
//! with a header, and removes them from the response before it is sent to a client. They name only
//! what the request itself names, so they disclose nothing to the client.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use prost::Message;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};

use trestle_model::name::AccountName;

/// The header with which a gateway requests the statistics.
const REQUEST_HEADER: HeaderName = HeaderName::from_static("trestle-statistics");
/// The header, or trailer, that carries them.
const RESPONSE_HEADER: HeaderName = HeaderName::from_static("trestle-statistics-bin");
/// Longest name that is reported, in bytes; longer ones are truncated. Headers are bounded.
const NAME_BYTES_MAX: usize = 2048;

/// What a service did for a call. Field numbers never change: processes of different versions
/// communicate.
#[derive(Clone, PartialEq, Message)]
pub struct CallStatistics {
    /// The table, as the request names it.
    #[prost(string, optional, tag = "1")]
    pub table: Option<String>,
    /// The partition key, where the request names one.
    #[prost(string, optional, tag = "2")]
    pub partition_key: Option<String>,
    /// The row key, where the request names one.
    #[prost(string, optional, tag = "3")]
    pub row_key: Option<String>,
    /// How many entities or messages the call wrote, changed or removed, or tried to.
    #[prost(uint64, tag = "4")]
    pub written: u64,
    /// How many entities were read to answer it.
    #[prost(uint64, tag = "5")]
    pub scanned: u64,
    /// How many entities or messages it returned.
    #[prost(uint64, tag = "6")]
    pub returned: u64,
    /// Bytes of the entities or messages that it returned.
    #[prost(uint64, tag = "7")]
    pub bytes: u64,
    /// The queue, as the request names it.
    #[prost(string, optional, tag = "8")]
    pub queue: Option<String>,
    /// The container, as the request names it.
    #[prost(string, optional, tag = "9")]
    pub container: Option<String>,
}

impl CallStatistics {
    /// Records the table of the call.
    pub fn set_table(&mut self, table: &str) {
        self.table = Some(cut(table).to_owned());
    }

    /// Records the queue of the call.
    pub fn set_queue(&mut self, queue: &str) {
        self.queue = Some(cut(queue).to_owned());
    }

    /// Records the container of the call.
    pub fn set_container(&mut self, container: &str) {
        self.container = Some(cut(container).to_owned());
    }

    /// Records the partition of the call.
    pub fn set_partition(&mut self, partition_key: &str) {
        self.partition_key = Some(cut(partition_key).to_owned());
    }

    /// Records the key of the single entity of the call.
    pub fn set_key(&mut self, partition_key: &str, row_key: &str) {
        self.set_partition(partition_key);
        self.row_key = Some(cut(row_key).to_owned());
    }
}

fn cut(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default()
}

/// The statistics of one call; a handle without a cell discards what is recorded. Clones share the
/// statistics.
#[derive(Clone, Default)]
pub struct StatisticsRecorder(Option<Arc<Mutex<RecordedStatistics>>>);

/// The caller as the access log reports it: no credential, only its kind.
#[derive(Debug, Clone)]
pub struct LoggedCaller {
    /// The account.
    pub account: AccountName,
    /// The kind of the credential.
    pub credential: Cow<'static, str>,
    /// The stored access policy that the credential refers to.
    pub policy: Option<String>,
}

/// See [`StatisticsRecorder`].
#[derive(Clone, Default)]
pub(crate) struct RecordedStatistics {
    pub(crate) caller: Option<LoggedCaller>,
    pub(crate) statistics: CallStatistics,
}

impl StatisticsRecorder {
    /// A recorder with a cell.
    pub(crate) fn enabled() -> Self {
        Self(Some(Arc::default()))
    }

    /// The recorder of a request.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// Whether statistics are requested.
    pub(crate) fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Records statistics, if they are requested.
    pub fn record(&self, record: impl FnOnce(&mut CallStatistics)) {
        self.with(|recorded| record(&mut recorded.statistics));
    }

    /// Records the caller, if the statistics are requested.
    pub fn record_caller(&self, caller: impl FnOnce() -> LoggedCaller) {
        self.with(|recorded| recorded.caller = Some(caller()));
    }

    /// What was recorded so far.
    pub(crate) fn recorded(&self) -> RecordedStatistics {
        let mut copy = RecordedStatistics::default();
        self.with(|recorded| copy = recorded.clone());
        copy
    }

    fn with(&self, change: impl FnOnce(&mut RecordedStatistics)) {
        if let Some(recorded) = &self.0 {
            change(&mut recorded.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Requests the statistics from the next process if they are recorded. The same header
    /// from a client is removed.
    pub(crate) fn forward_request(&self, headers: &mut HeaderMap) {
        headers.remove(REQUEST_HEADER);
        if self.is_enabled() {
            headers.insert(REQUEST_HEADER, HeaderValue::from_static("1"));
        }
    }

    /// Whether a request has the header that requests statistics.
    pub(crate) fn is_requested(headers: &HeaderMap) -> bool {
        headers.contains_key(REQUEST_HEADER)
    }

    /// Writes the statistics into the headers or trailers of a response.
    pub(crate) fn write(statistics: &CallStatistics, headers: &mut HeaderMap) {
        let value = BinaryMetadataValue::from_bytes(&statistics.encode_to_vec());
        let value = HeaderValue::from_bytes(value.as_encoded_bytes());
        headers.insert(RESPONSE_HEADER, value.expect("base64 is fit for a header"));
    }

    /// Moves the statistics out of the headers or trailers of a response into the recorder.
    pub(crate) fn take(&self, headers: &mut HeaderMap) {
        let Some(value) = headers.remove(RESPONSE_HEADER) else { return };
        let metadata = MetadataMap::from_headers(HeaderMap::from_iter([(RESPONSE_HEADER, value)]));
        let value = metadata.get_bin(RESPONSE_HEADER.as_str());
        let bytes = value.and_then(|value| value.to_bytes().ok());
        if let Some(statistics) = bytes.and_then(|bytes| CallStatistics::decode(bytes).ok()) {
            self.record(|recorded| *recorded = statistics);
        }
    }
}

/// Prints no content: it is for the access log alone.
impl fmt::Debug for StatisticsRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatisticsRecorder").field("is_enabled", &self.is_enabled()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_survive_a_round_trip_and_their_header_is_removed() {
        let (gateway, service) = (StatisticsRecorder::enabled(), StatisticsRecorder::enabled());
        let mut headers = HeaderMap::new();
        gateway.forward_request(&mut headers);
        assert!(StatisticsRecorder::is_requested(&headers));
        service.record(|statistics| {
            statistics.table = Some("Orders".into());
            statistics.set_key("a\nb", "é");
            statistics.scanned = 7;
        });
        let mut answer = HeaderMap::new();

        StatisticsRecorder::write(&service.recorded().statistics, &mut answer);
        gateway.take(&mut answer);

        assert_eq!(gateway.recorded().statistics, service.recorded().statistics);
        assert!(answer.is_empty());
    }

    #[test]
    fn a_request_for_statistics_from_a_client_is_removed() {
        let mut headers = HeaderMap::from_iter([(REQUEST_HEADER, HeaderValue::from_static("1"))]);

        StatisticsRecorder::default().forward_request(&mut headers);

        assert!(!StatisticsRecorder::is_requested(&headers));
    }

    #[test]
    fn malformed_statistics_are_dropped() {
        for value in ["", "***", "AAAA"] {
            let recorder = StatisticsRecorder::enabled();
            let value = HeaderValue::from_static(value);
            let mut headers = HeaderMap::from_iter([(RESPONSE_HEADER, value)]);

            recorder.take(&mut headers);

            assert_eq!(recorder.recorded().statistics, CallStatistics::default());
            assert!(headers.is_empty());
        }
    }

    #[test]
    fn long_keys_are_truncated_between_characters() {
        let mut statistics = CallStatistics::default();

        statistics.set_key(&"é".repeat(NAME_BYTES_MAX), "r");

        assert_eq!(statistics.partition_key.expect("a key").len(), NAME_BYTES_MAX);
    }

    #[test]
    fn statistics_that_are_not_requested_are_not_recorded() {
        let recorder = StatisticsRecorder::default();

        recorder.record(|_| panic!("nothing is recorded"));

        assert_eq!(recorder.recorded().statistics, CallStatistics::default());
    }
}
