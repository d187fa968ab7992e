//! Listing queues.

use bytes::Bytes;
use trestle_kv::{ScanLimit, after_key};
use trestle_model::fault::{Fault, Reason};
use trestle_model::name::AccountName;
use trestle_model::page;

use super::Queues;
use crate::{error::QueueError, keys, record::QueueRecord};

/// Most bytes of queue records read at once.
const LIST_BYTES_MAX: usize = 3 * 1024 * 1024;

/// A request for a page of queues.
#[derive(Debug)]
pub(crate) struct ListQueues {
    /// Prefix of the names.
    pub(crate) prefix: String,
    /// At most this many queues.
    pub(crate) page_size: usize,
    /// Where to continue; empty at the start.
    pub(crate) page_token: String,
}

/// A page of queues.
#[derive(Debug)]
pub(crate) struct QueuePage {
    /// Their names and records, by name.
    pub(crate) queues: Vec<(String, QueueRecord)>,
    /// Where the next page starts, if there may be one.
    pub(crate) next_page_token: Option<String>,
}

impl Queues {
    /// One page of the queues of an account.
    ///
    /// # Errors
    /// A token of another listing, or a failed read.
    pub(crate) async fn list(
        &self,
        account: &AccountName,
        request: ListQueues,
    ) -> Result<QueuePage, QueueError> {
        let owner = account.as_str().as_bytes();
        let identity = page::request_identity(&[b"queues", owner, request.prefix.as_bytes()]);
        let mut span = keys::queues(account, &request.prefix);
        if !request.page_token.is_empty() {
            let start = page::decode(&request.page_token, identity).map_err(|error| {
                let reason = Reason::InvalidQueryParameterValue;
                Fault::violation(reason, "page_token", error.to_string())
            })?;
            span.start = Bytes::from(start).max(span.start);
        }
        let mut page = QueuePage { queues: Vec::new(), next_page_token: None };
        if request.page_size == 0 || span.is_empty() {
            return Ok(page);
        }
        let limit = ScanLimit { rows: request.page_size, bytes: LIST_BYTES_MAX };
        let scan = self.engine.scan(&span, limit).await?;
        for entry in &scan.entries {
            let record = QueueRecord::decode(&entry.value)?;
            let (_, name) = keys::queue_of(&entry.key)?;
            page.queues.push((name, record));
        }
        let last = scan.entries.last().filter(|_| scan.more);
        page.next_page_token = last.map(|last| page::encode(identity, &after_key(&last.key)));
        Ok(page)
    }
}
