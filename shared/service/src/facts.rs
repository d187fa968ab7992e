//! The statistics of a call for the access log that only the service has: the caller, the resource,
//! the cost.
//!
//! Recorded only for calls that request them. Within a process the statistics are a cell in the
//! extensions of the request, which each layer fills. A gateway requests them from another process
//! with a header, and removes them from the response before it is sent to a client. They name only
//! what the request itself names, so they disclose nothing to the client.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use prost::Message;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};

use crate::name::AccountName;

/// The header with which a gateway requests the statistics.
const ASK_HEADER: HeaderName = HeaderName::from_static("trestle-facts");
/// The header, or trailer, that carries them.
const ANSWER_HEADER: HeaderName = HeaderName::from_static("trestle-facts-bin");
/// Longest name that is reported, in bytes; longer ones are truncated. Headers are bounded.
const NAME_BYTES_MAX: usize = 2048;

/// The work of a service for a call. Field numbers never change: processes of different versions
/// communicate.
#[derive(Clone, PartialEq, Message)]
pub struct Work {
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
}

impl Work {
    /// Records the table of the call.
    pub fn names(&mut self, table: &str) {
        self.table = Some(cut(table).to_owned());
    }

    /// Records the queue of the call.
    pub fn names_queue(&mut self, queue: &str) {
        self.queue = Some(cut(queue).to_owned());
    }

    /// Records the partition of the call.
    pub fn partition(&mut self, partition_key: &str) {
        self.partition_key = Some(cut(partition_key).to_owned());
    }

    /// Records the key of the single entity of the call.
    pub fn key(&mut self, partition_key: &str, row_key: &str) {
        self.partition(partition_key);
        self.row_key = Some(cut(row_key).to_owned());
    }
}

fn cut(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default()
}

/// The statistics of one call; a handle without a cell discards what it is given. Clones share the
/// statistics.
#[derive(Clone, Default)]
pub struct Facts(Option<Arc<Mutex<Noted>>>);

/// The caller as the access log reports it: no credential, only its kind.
#[derive(Debug, Clone)]
pub struct LoggedCaller {
    /// The account.
    pub account: AccountName,
    /// The kind of the credential.
    pub credential: &'static str,
    /// The stored access policy that the credential refers to.
    pub policy: Option<String>,
}

/// See [`Facts`].
#[derive(Clone, Default)]
pub(crate) struct Noted {
    pub(crate) caller: Option<LoggedCaller>,
    pub(crate) work: Work,
}

impl Facts {
    /// Statistics that are recorded.
    pub(crate) fn kept() -> Self {
        Self(Some(Arc::default()))
    }

    /// The statistics of a request.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// Whether the statistics are requested.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Records work, if the statistics are requested.
    pub fn note(&self, note: impl FnOnce(&mut Work)) {
        self.with(|noted| note(&mut noted.work));
    }

    /// Records the caller, if the statistics are requested.
    pub fn caller(&self, caller: impl FnOnce() -> LoggedCaller) {
        self.with(|noted| noted.caller = Some(caller()));
    }

    /// What was recorded so far.
    pub(crate) fn noted(&self) -> Noted {
        let mut copy = Noted::default();
        self.with(|noted| copy = noted.clone());
        copy
    }

    fn with(&self, work: impl FnOnce(&mut Noted)) {
        if let Some(noted) = &self.0 {
            work(&mut noted.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Requests the statistics from the next process if they are requested here. The same header
    /// from a client is removed.
    pub(crate) fn ask(&self, headers: &mut HeaderMap) {
        headers.remove(ASK_HEADER);
        if self.is_kept() {
            headers.insert(ASK_HEADER, HeaderValue::from_static("1"));
        }
    }

    /// Whether a request has the header that requests statistics.
    pub(crate) fn asked(headers: &HeaderMap) -> bool {
        headers.contains_key(ASK_HEADER)
    }

    /// Writes the work into the headers or trailers of a response.
    pub(crate) fn answer(work: &Work, headers: &mut HeaderMap) {
        let value = BinaryMetadataValue::from_bytes(&work.encode_to_vec());
        let value = HeaderValue::from_bytes(value.as_encoded_bytes());
        headers.insert(ANSWER_HEADER, value.expect("base64 is fit for a header"));
    }

    /// Removes the work from the headers or trailers of a response.
    pub(crate) fn take(&self, headers: &mut HeaderMap) {
        let Some(value) = headers.remove(ANSWER_HEADER) else { return };
        let metadata = MetadataMap::from_headers(HeaderMap::from_iter([(ANSWER_HEADER, value)]));
        let value = metadata.get_bin(ANSWER_HEADER.as_str());
        let bytes = value.and_then(|value| value.to_bytes().ok());
        if let Some(work) = bytes.and_then(|bytes| Work::decode(bytes).ok()) {
            self.note(|noted| *noted = work);
        }
    }
}

/// Prints no content: it is for the access log alone.
impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts").field("is_kept", &self.is_kept()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_survive_a_round_trip_and_leave_no_header() {
        let (here, there) = (Facts::kept(), Facts::kept());
        let mut headers = HeaderMap::new();
        here.ask(&mut headers);
        assert!(Facts::asked(&headers));
        there.note(|work| {
            work.table = Some("Orders".into());
            work.key("a\nb", "é");
            work.scanned = 7;
        });
        let mut answer = HeaderMap::new();

        Facts::answer(&there.noted().work, &mut answer);
        here.take(&mut answer);

        assert_eq!(here.noted().work, there.noted().work);
        assert!(answer.is_empty());
    }

    #[test]
    fn a_request_for_facts_from_a_client_is_removed() {
        let mut headers = HeaderMap::from_iter([(ASK_HEADER, HeaderValue::from_static("1"))]);

        Facts::default().ask(&mut headers);

        assert!(!Facts::asked(&headers));
    }

    #[test]
    fn malformed_facts_are_dropped() {
        for value in ["", "***", "AAAA"] {
            let facts = Facts::kept();
            let value = HeaderValue::from_static(value);
            let mut headers = HeaderMap::from_iter([(ANSWER_HEADER, value)]);

            facts.take(&mut headers);

            assert_eq!(facts.noted().work, Work::default());
            assert!(headers.is_empty());
        }
    }

    #[test]
    fn long_keys_are_truncated_between_characters() {
        let mut work = Work::default();

        work.key(&"é".repeat(NAME_BYTES_MAX), "r");

        assert_eq!(work.partition_key.expect("a key").len(), NAME_BYTES_MAX);
    }

    #[test]
    fn facts_that_are_not_requested_are_not_recorded() {
        let facts = Facts::default();

        facts.note(|_| panic!("no note is taken"));

        assert_eq!(facts.noted().work, Work::default());
    }
}
