//! Listing containers.

use bytes::Bytes;
use trestle_kv::{ScanLimit, after_key};
use trestle_service::{
    fault::{Fault, Reason},
    name::AccountName,
    page,
};

use super::Containers;
use crate::{error::BlobError, keys, record::ContainerRecord, stored::Stored as _};

/// Most bytes of records read at once.
const LIST_BYTES_MAX: usize = 3 * 1024 * 1024;

/// A request for a page of containers.
#[derive(Debug)]
pub(crate) struct ListContainers {
    /// Prefix of the names.
    pub(crate) prefix: String,
    /// At most this many containers.
    pub(crate) page_size: usize,
    /// Where to continue; empty at the start.
    pub(crate) page_token: String,
}

/// A page of containers.
#[derive(Debug)]
pub(crate) struct ContainerPage {
    /// Their names and records, by name.
    pub(crate) containers: Vec<(String, ContainerRecord)>,
    /// Where the next page starts, if there may be one.
    pub(crate) next_page_token: Option<String>,
}

impl Containers {
    /// One page of the containers of an account.
    ///
    /// # Errors
    /// A token of another listing, or a failed read.
    pub(crate) async fn list(
        &self,
        account: &AccountName,
        request: ListContainers,
    ) -> Result<ContainerPage, BlobError> {
        let owner = account.as_str().as_bytes();
        let identity = page::request_identity(&[b"containers", owner, request.prefix.as_bytes()]);
        let mut span = keys::containers(account, &request.prefix);
        if !request.page_token.is_empty() {
            let start = position(&request.page_token, identity)?;
            span.start = Bytes::from(start).max(span.start);
        }
        let mut page = ContainerPage { containers: Vec::new(), next_page_token: None };
        if request.page_size == 0 || span.is_empty() {
            return Ok(page);
        }
        let limit = ScanLimit { rows: request.page_size, bytes: LIST_BYTES_MAX };
        let scan = self.engine.scan(&span, limit).await?;
        for entry in &scan.entries {
            let record = ContainerRecord::decode(&entry.value)?;
            page.containers.push((keys::container_name_of(&entry.key)?, record));
        }
        let last = scan.entries.last().filter(|_| scan.more);
        page.next_page_token = last.map(|last| page::encode(identity, &after_key(&last.key)));
        Ok(page)
    }
}

/// The position in a page token.
///
/// # Errors
/// A token of another listing.
pub(crate) fn position(token: &str, identity: u64) -> Result<Vec<u8>, BlobError> {
    page::decode(token, identity).map_err(|error| {
        let reason = Reason::InvalidQueryParameterValue;
        Fault::violation(reason, "page_token", error.to_string()).into()
    })
}
