//! Listing blobs by name, with groups of names that share a start up to a delimiter.

mod cursor;

use trestle_service::page;

use self::cursor::NameCursor;
use super::Blobs;
use crate::{
    containers::position,
    error::BlobError,
    keys::BlobRow,
    names::BlobName,
    record::{BlobRecord, ContainerId},
    stored::Stored as _,
};

/// A request for a page of blobs.
#[derive(Debug)]
pub(crate) struct ListBlobs {
    /// Prefix of the names.
    pub(crate) prefix: String,
    /// Ends the common start of a group; empty: there are no groups.
    pub(crate) delimiter: String,
    /// At most this many items.
    pub(crate) page_size: usize,
    /// Where to continue; empty at the start.
    pub(crate) page_token: String,
    /// Whether blobs that have staged blocks only are listed.
    pub(crate) with_uncommitted: bool,
}

/// An item of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListedItem {
    /// A blob; without a record it has staged blocks only.
    Blob(BlobName, Option<Box<BlobRecord>>),
    /// The common start of the names of a group, with the delimiter.
    Group(String),
}

/// A page of blobs.
#[derive(Debug)]
pub(crate) struct BlobPage {
    /// Blobs and groups, by name.
    pub(crate) items: Vec<ListedItem>,
    /// Where the next page starts, if there may be one.
    pub(crate) next_page_token: Option<String>,
}

impl Blobs {
    /// One page of the blobs of a container.
    ///
    /// # Errors
    /// A token of another listing, or a failed read.
    pub(crate) async fn list(
        &self,
        container: ContainerId,
        request: &ListBlobs,
    ) -> Result<BlobPage, BlobError> {
        let ListBlobs { prefix, delimiter, .. } = request;
        let number = container.0.to_be_bytes();
        let parts: [&[u8]; 4] = [b"blobs", &number, prefix.as_bytes(), delimiter.as_bytes()];
        let identity = page::request_identity(&parts);
        let start = match request.page_token.as_str() {
            "" => Vec::new(),
            token => position(token, identity)?,
        };
        let snapshot = self.engine.snapshot().await?;
        let cursor = |row| NameCursor::new(&*snapshot, row, container, (prefix, &start));
        let mut records = cursor(BlobRow::Record);
        let mut stagings = request.with_uncommitted.then(|| cursor(BlobRow::Staging));
        let mut page = BlobPage { items: Vec::new(), next_page_token: None };
        loop {
            let record = records.peek().await?;
            let staged = match &mut stagings {
                Some(stagings) => stagings.peek().await?,
                None => None,
            };
            let names = [&record, &staged].map(|row| row.as_ref().map(|(name, _)| name.as_str()));
            let Some(name) = names.into_iter().flatten().min() else { return Ok(page) };
            if page.items.len() == request.page_size {
                page.next_page_token = Some(page::encode(identity, name.as_bytes()));
                return Ok(page);
            }
            if let Some(group) = group_of(name, prefix, delimiter) {
                records.skip(&group);
                if let Some(stagings) = &mut stagings {
                    stagings.skip(&group);
                }
                page.items.push(ListedItem::Group(group));
                continue;
            }
            let is = |other: Option<&str>| other == Some(name);
            let (is_record, is_staged) = (is(names[0]), is(names[1]));
            let value = record.as_ref().filter(|_| is_record).map(|(_, value)| value);
            let found = value.map(|value| BlobRecord::decode(value).map(Box::new)).transpose()?;
            page.items.push(ListedItem::Blob(BlobName::stored(name.to_owned()), found));
            if is_record {
                records.advance();
            }
            if let Some(stagings) = stagings.as_mut().filter(|_| is_staged) {
                stagings.advance();
            }
        }
    }
}

/// The common start of the group that a name is in, if it has the delimiter after the prefix.
fn group_of(name: &str, prefix: &str, delimiter: &str) -> Option<String> {
    if delimiter.is_empty() {
        return None;
    }
    let rest = name.strip_prefix(prefix)?;
    let end = prefix.len() + rest.find(delimiter)? + delimiter.len();
    name.get(..end).map(str::to_owned)
}
