//! Listing streams.

use trestle_kv::{ScanLimit, Span, after_key};
use trestle_model::fault::{Fault, Reason};
use trestle_model::name::AccountName;
use trestle_model::page;

use super::Streams;
use crate::{
    error::LogError, keys, names::StreamName, stored::StoredForm as _, stream::StreamRecord,
};

/// A page ends with the item that takes its records to this many bytes: clients of gRPC accept 4 MiB by default.
pub(crate) const LIST_BYTES_MAX: usize = 3 * 1024 * 1024;

/// A request for a page of streams.
#[derive(Debug, Default)]
pub(crate) struct ListStreams {
    /// Prefix of the names.
    pub(crate) prefix: String,
    /// At most this many streams.
    pub(crate) page_size: usize,
    /// Where to continue; empty at the start.
    pub(crate) page_token: String,
}

/// A page of streams.
#[derive(Debug)]
pub(crate) struct StreamPage {
    /// Their names and records, by name.
    pub(crate) streams: Vec<(StreamName, StreamRecord)>,
    /// Where the next page starts, if there may be one.
    pub(crate) next_page_token: Option<String>,
}

impl Streams {
    /// One page of the streams of an account.
    ///
    /// # Errors
    /// A token of another listing, or a failed read.
    pub(crate) async fn list(
        &self,
        account: &AccountName,
        request: ListStreams,
    ) -> Result<StreamPage, LogError> {
        let ListStreams { prefix, page_size, page_token } = request;
        let identity =
            page::request_identity(&[b"streams", account.as_str().as_bytes(), prefix.as_bytes()]);
        let span = from_token(keys::streams(account, &prefix), &page_token, identity)?;
        let limit = ScanLimit { rows: page_size, bytes: LIST_BYTES_MAX };
        let scan = self.engine.scan(&span, limit).await?;
        let last = scan.entries.last().filter(|_| scan.more);
        let next_page_token = last.map(|last| page::encode(identity, &after_key(&last.key)));
        let streams = scan.entries.iter().map(|entry| {
            let (_, name) = keys::stream_name_of(&entry.key)?;
            Ok::<_, LogError>((name, StreamRecord::decode(&entry.value)?))
        });
        Ok(StreamPage { streams: streams.collect::<Result<_, _>>()?, next_page_token })
    }
}

/// The rest of a span from the position in a page token on.
///
/// # Errors
/// A token of another listing.
pub(crate) fn from_token(span: Span, token: &str, identity: u64) -> Result<Span, LogError> {
    if token.is_empty() {
        return Ok(span);
    }
    let position = page::decode(token, identity)
        .map_err(|error| Fault::violation(Reason::InvalidInput, "page_token", error.to_string()))?;
    let start = span.start.max(position.into()).min(span.end.clone());
    Ok(Span::new(start, span.end))
}
