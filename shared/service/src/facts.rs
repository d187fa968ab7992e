//! What the access log tells about a call and only the inner parts know: who called, on what, at
//! what cost.
//!
//! Kept only for calls that somebody asks about. In a process the facts are a cell in the
//! extensions of the request, which each part fills. A gateway asks another process for them with a
//! header, and takes them out of the answer before a client sees it. They name nothing but what the
//! request itself names, so whoever asks learns nothing that he does not know.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use prost::Message;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};

use crate::name::AccountName;

/// The header with which a gateway asks for facts.
const ASK_HEADER: HeaderName = HeaderName::from_static("trestle-facts");
/// The header, or trailer, that brings them.
const ANSWER_HEADER: HeaderName = HeaderName::from_static("trestle-facts-bin");
/// Longest name that is told, in bytes; longer ones are cut. Headers are bounded.
const NAME_BYTES_MAX: usize = 2048;

/// What a service did for a call. Fields keep their numbers for ever: processes of different
/// versions talk to each other.
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
    /// Notes the table that the call is about.
    pub fn names(&mut self, table: &str) {
        self.table = Some(cut(table).to_owned());
    }

    /// Notes the queue that the call is about.
    pub fn names_queue(&mut self, queue: &str) {
        self.queue = Some(cut(queue).to_owned());
    }

    /// Notes the partition that the call is about.
    pub fn partition(&mut self, partition_key: &str) {
        self.partition_key = Some(cut(partition_key).to_owned());
    }

    /// Notes the key of the one entity that the call is about.
    pub fn key(&mut self, partition_key: &str, row_key: &str) {
        self.partition(partition_key);
        self.row_key = Some(cut(row_key).to_owned());
    }
}

fn cut(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default()
}

/// The facts about one call; empty handles take notes and forget them. Clones share the facts.
#[derive(Clone, Default)]
pub struct Facts(Option<Arc<Mutex<Noted>>>);

/// Who made a call, as the access log shows it: no credential, only its kind.
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
    /// Facts that are kept.
    pub(crate) fn kept() -> Self {
        Self(Some(Arc::default()))
    }

    /// The facts of a request.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// Whether anybody asks.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Takes a note, if anybody asks.
    pub fn note(&self, note: impl FnOnce(&mut Work)) {
        self.with(|noted| note(&mut noted.work));
    }

    /// Notes who calls, if anybody asks.
    pub fn caller(&self, caller: impl FnOnce() -> LoggedCaller) {
        self.with(|noted| noted.caller = Some(caller()));
    }

    /// What was noted so far.
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

    /// Asks the next process for its facts, if anybody asks here. What a client asks for itself is
    /// removed.
    pub(crate) fn ask(&self, headers: &mut HeaderMap) {
        headers.remove(ASK_HEADER);
        if self.is_kept() {
            headers.insert(ASK_HEADER, HeaderValue::from_static("1"));
        }
    }

    /// Whether a request asks for facts.
    pub(crate) fn asked(headers: &HeaderMap) -> bool {
        headers.contains_key(ASK_HEADER)
    }

    /// Writes the work into the headers or trailers of an answer.
    pub(crate) fn answer(work: &Work, headers: &mut HeaderMap) {
        let value = BinaryMetadataValue::from_bytes(&work.encode_to_vec());
        let value = HeaderValue::from_bytes(value.as_encoded_bytes());
        headers.insert(ANSWER_HEADER, value.expect("base64 is fit for a header"));
    }

    /// Takes the work out of the headers or trailers of an answer.
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

/// Shows no fact: they are for the access log alone.
impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts").field("is_kept", &self.is_kept()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_arrive_as_they_were_answered_and_leave_no_header() {
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
    fn nobody_asks_in_the_name_of_a_client() {
        let mut headers = HeaderMap::from_iter([(ASK_HEADER, HeaderValue::from_static("1"))]);

        Facts::default().ask(&mut headers);

        assert!(!Facts::asked(&headers));
    }

    #[test]
    fn facts_that_cannot_be_read_are_dropped() {
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
    fn long_keys_are_cut_between_characters() {
        let mut work = Work::default();

        work.key(&"é".repeat(NAME_BYTES_MAX), "r");

        assert_eq!(work.partition_key.expect("a key").len(), NAME_BYTES_MAX);
    }

    #[test]
    fn facts_that_nobody_asks_for_are_not_kept() {
        let facts = Facts::default();

        facts.note(|_| panic!("no note is taken"));

        assert_eq!(facts.noted().work, Work::default());
    }
}
