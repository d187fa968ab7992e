//! Listing containers, and deleted ones that can be restored.

use bytes::Bytes;
use trestle_kv::{Entry, ScanLimit, Span, after_key};
use trestle_model::fault::{Fault, Reason};
use trestle_model::name::AccountName;
use trestle_model::page;

use super::Containers;
use crate::{error::BlobError, keys, record::ContainerRecord, stored::Stored as _};

/// A page ends with the item that takes its records to this many bytes: clients of gRPC accept 4 MiB by default.
pub(crate) const LIST_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Containers that only the service writes to.
const SYSTEM: &[&str] = &["$logs"];

/// A request for a page of containers.
#[derive(Debug, Default)]
pub(crate) struct ListContainers {
    /// Prefix of the names.
    pub(crate) prefix: String,
    /// At most this many containers.
    pub(crate) page_size: usize,
    /// Where to continue; empty at the start.
    pub(crate) page_token: String,
    /// Whether deleted ones that can be restored are listed.
    pub(crate) with_deleted: bool,
    /// Whether those that only the service writes to are listed.
    pub(crate) with_system: bool,
}

/// A page of containers.
#[derive(Debug)]
pub(crate) struct ContainerPage {
    /// Their names and records, by name; deleted ones follow the container with their name.
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
        let ListContainers { prefix, page_size, page_token, with_deleted, with_system } = request;
        let parts = [&[u8::from(with_deleted)][..], account.as_str().as_bytes(), prefix.as_bytes()];
        let identity = page::request_identity(&[&[&b"containers"[..]], &parts[..]].concat());
        let start = match page_token.as_str() {
            "" => Vec::new(),
            token => position(token, identity)?,
        };
        let mut page = ContainerPage { containers: Vec::new(), next_page_token: None };
        if page_size == 0 {
            return Ok(page);
        }
        let deleted = with_deleted.then(|| keys::soft_deleted_containers(account, &prefix));
        let spans = [keys::containers(account, &prefix)].into_iter().chain(deleted);
        let (mut entries, mut end): (Vec<Entry>, Option<Bytes>) = (Vec::new(), None);
        let snapshot = self.engine.snapshot().await?;
        for span in spans {
            let Some(span) = from_position(span, &start) else { continue };
            let limit = ScanLimit { rows: page_size + 1, bytes: LIST_BYTES_MAX };
            let scan = snapshot.scan(&span, limit).await?;
            // What follows the last row of a scan that has more belongs to a later page.
            if let Some(last) = scan.entries.last().filter(|_| scan.more) {
                let last = Bytes::copy_from_slice(suffix(&last.key));
                end = Some(end.map_or(last.clone(), |end| end.min(last)));
            }
            entries.extend(scan.entries);
        }
        entries.sort_unstable_by(|one, other| suffix(&one.key).cmp(suffix(&other.key)));
        entries.retain(|entry| end.as_ref().is_none_or(|end| suffix(&entry.key) <= &end[..]));
        let rest = (entries.len() > page_size).then(|| entries.split_off(page_size));
        if let Some(last) = entries.last().filter(|_| rest.is_some() || end.is_some()) {
            page.next_page_token = Some(page::encode(identity, &after_key(suffix(&last.key))));
        }
        for entry in &entries {
            let name = keys::container_name_of(&entry.key)?;
            if with_system || !SYSTEM.contains(&name.as_str()) {
                page.containers.push((name, ContainerRecord::decode(&entry.value)?));
            }
        }
        Ok(page)
    }
}

/// A key without its kind: by it, a deleted container follows the one with its name.
fn suffix(key: &[u8]) -> &[u8] {
    key.get(1..).unwrap_or_default()
}

/// The rest of a span from a position on, which is a key without its kind; none where nothing is left.
fn from_position(span: Span, position: &[u8]) -> Option<Span> {
    let kind = span.start.get(..1)?;
    let start = Bytes::from([kind, position].concat()).max(span.start.clone());
    Some(Span::new(start, span.end)).filter(|span| !span.is_empty())
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
