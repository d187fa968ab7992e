//! Listing blobs by name, with groups of names that share a start up to a delimiter. Past states precede their blob,
//! oldest first.

mod cursor;

use trestle_kv::turns::Pace;
use trestle_model::fault::{Fault, Reason};
use trestle_model::page;
use trestle_model::time::Ticks;

use self::cursor::{NameCursor, NamedRow};
use super::Blobs;
use crate::{
    containers::{LIST_BYTES_MAX, position},
    error::BlobError,
    keys::BlobRow,
    names::BlobName,
    record::{BlobRecord, ContainerId},
    stored::Stored as _,
};

/// What an item takes in an answer beside its name and what is stored, at most about.
const ITEM_BYTES: usize = 512;
/// In a position, the blob itself: behind its past states.
const CURRENT: u64 = u64::MAX;

/// A request for a page of blobs.
#[derive(Debug, Default)]
pub(crate) struct ListBlobs {
    /// Prefix of the names.
    pub(crate) prefix: String,
    /// The least name; empty: there is no bound.
    pub(crate) start_from: String,
    /// The names are less; empty: there is no bound.
    pub(crate) end_before: String,
    /// Ends the common start of a group; empty: there are no groups.
    pub(crate) delimiter: String,
    /// At most this many items.
    pub(crate) page_size: usize,
    /// Where to continue; empty at the start.
    pub(crate) page_token: String,
    /// Whether blobs that have staged blocks only are listed.
    pub(crate) with_uncommitted: bool,
    /// Which past states are listed.
    pub(crate) past: PastStates,
}

/// Which past states a listing has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PastStates {
    /// Snapshots.
    pub(crate) snapshots: bool,
    /// Deleted states that can be restored, of those above and the blob itself.
    pub(crate) deleted: bool,
    /// Versions.
    pub(crate) versions: bool,
}

impl PastStates {
    /// Whether there are any beside the blob itself.
    fn any(self) -> bool {
        self.snapshots || self.versions
    }

    /// Whether a state with this record is listed; `is_past` where it is not the blob itself.
    fn has(self, record: &BlobRecord, is_past: bool) -> bool {
        let kind = if record.version.is_some() { self.versions } else { self.snapshots };
        (!is_past || kind) && (self.deleted || record.deletion.is_none())
    }
}

/// An item of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListedItem {
    /// A blob; without a record it has staged blocks only.
    Blob(BlobName, Option<Box<BlobRecord>>),
    /// A past state of a blob.
    Past(BlobName, Ticks, Box<BlobRecord>),
    /// The common start of the names of a group, with the delimiter.
    Group(String),
}

/// A page of blobs.
#[derive(Debug, Default)]
pub(crate) struct BlobPage {
    /// Blobs and groups, by name.
    pub(crate) items: Vec<ListedItem>,
    /// Where the next page starts, if there may be one.
    pub(crate) next_page_token: Option<String>,
}

/// The rows that a listing is made of.
struct ListCursors<'a> {
    past: Option<NameCursor<'a>>,
    records: NameCursor<'a>,
    stagings: Option<NameCursor<'a>>,
}

/// The next rows of the cursors, of any names.
struct NextRows {
    past: Option<NamedRow>,
    record: Option<NamedRow>,
    staging: Option<NamedRow>,
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
        let ListBlobs { prefix, start_from, end_before, delimiter, past, .. } = request;
        let number = container.0.to_be_bytes();
        let has_past = [past.snapshots, past.deleted, past.versions].map(u8::from);
        let [prefix_bytes, start, end, delimiter_bytes] =
            [prefix, start_from, end_before, delimiter].map(String::as_bytes);
        let parts: [&[u8]; 7] =
            [b"blobs", &number, prefix_bytes, start, end, delimiter_bytes, &has_past];
        let identity = page::request_identity(&parts);
        let (name, number) = match request.page_token.as_str() {
            "" => (start_from.clone(), 0),
            token => start_of(&position(token, identity)?)?,
        };
        let snapshot = self.engine.snapshot().await?;
        let cursor =
            |row| NameCursor::new(&*snapshot, row, container, (prefix, name.as_str(), number));
        let mut cursors = ListCursors {
            past: past.any().then(|| cursor(BlobRow::Past)),
            records: cursor(BlobRow::Record),
            stagings: request.with_uncommitted.then(|| cursor(BlobRow::Staging)),
        };
        let (mut page, mut bytes, mut pace) = (BlobPage::default(), 0, Pace::default());
        loop {
            pace.step().await;
            let next = cursors.peek().await?;
            let is_in = |name: &str| end_before.is_empty() || name < end_before.as_str();
            let Some((name, number)) = next.position().filter(|(name, _)| is_in(name)) else {
                return Ok(page);
            };
            if page.items.len() == request.page_size || bytes >= LIST_BYTES_MAX {
                let position = [&number.to_be_bytes()[..], name.as_bytes()].concat();
                page.next_page_token = Some(page::encode(identity, &position));
                return Ok(page);
            }
            let item = next.item(*past)?;
            // What is not listed is in no group that is.
            if let Some(group) = item.as_ref().and_then(|_| group_of(name, prefix, delimiter)) {
                cursors.skip(&group);
                bytes += group.len();
                page.items.push(ListedItem::Group(group));
                continue;
            }
            // Also of what is not listed: a page reads a bounded part of the container.
            bytes += next.item_bytes();
            cursors.advance(&next);
            page.items.extend(item);
        }
    }
}

impl ListCursors<'_> {
    async fn peek(&mut self) -> Result<NextRows, BlobError> {
        let past = match &mut self.past {
            Some(past) => past.peek().await?,
            None => None,
        };
        let staging = match &mut self.stagings {
            Some(stagings) => stagings.peek().await?,
            None => None,
        };
        Ok(NextRows { past, record: self.records.peek().await?, staging })
    }

    fn skip(&mut self, group: &str) {
        self.records.skip(group);
        for cursor in [&mut self.past, &mut self.stagings].into_iter().flatten() {
            cursor.skip(group);
        }
    }

    /// Goes on behind the item of these rows.
    fn advance(&mut self, rows: &NextRows) {
        let Some((name, number)) = rows.position() else { return };
        let is = |row: &Option<NamedRow>| row.as_ref().is_some_and(|row| row.name == name);
        if number != CURRENT {
            self.past.iter_mut().for_each(NameCursor::advance);
            return;
        }
        if is(&rows.record) {
            self.records.advance();
        }
        if is(&rows.staging) {
            self.stagings.iter_mut().for_each(NameCursor::advance);
        }
    }
}

impl NextRows {
    /// The name of the next item, and which state of the blob it is.
    fn position(&self) -> Option<(&str, u64)> {
        let past = self.past.iter().map(|row| (row, row.past.map_or(CURRENT, Ticks::get)));
        let current = self.record.iter().chain(&self.staging).map(|row| (row, CURRENT));
        past.chain(current).map(|(row, number)| (row.name.as_str(), number)).min()
    }

    /// About how many bytes the next item takes in an answer.
    fn item_bytes(&self) -> usize {
        let rows = self.past.iter().chain(&self.record);
        let at = self.position();
        let own = rows
            .filter(|row| Some((row.name.as_str(), row.past.map_or(CURRENT, Ticks::get))) == at);
        own.map(|row| row.name.len() + row.value.len()).sum::<usize>() + ITEM_BYTES
    }

    /// The next item, if it is to be listed.
    fn item(&self, listed: PastStates) -> Result<Option<ListedItem>, BlobError> {
        let Some((name, number)) = self.position() else { return Ok(None) };
        let (rows, at) = match Ticks::new(number).filter(|_| number != CURRENT) {
            Some(at) => (&self.past, Some(at)),
            None => (&self.record, None),
        };
        let row = rows.as_ref().filter(|row| row.name == name);
        let record = row.map(|row| BlobRecord::decode(&row.value).map(Box::new)).transpose()?;
        let record = record.filter(|record| listed.has(record, at.is_some()));
        let has_staging = self.staging.as_ref().is_some_and(|row| row.name == name);
        let name = BlobName::stored(name.to_owned());
        Ok(match (at, record) {
            (None, None) if !has_staging => None,
            (None, record) => Some(ListedItem::Blob(name, record)),
            (Some(at), Some(record)) => Some(ListedItem::Past(name, at, record)),
            (Some(_), None) => None,
        })
    }
}

/// The name in a position, and the state of the blob.
fn start_of(position: &[u8]) -> Result<(String, u64), BlobError> {
    let invalid = || {
        let rule = "the token is not one of this listing";
        BlobError::from(Fault::violation(Reason::InvalidQueryParameterValue, "page_token", rule))
    };
    let (number, name) = position.split_first_chunk::<8>().ok_or_else(invalid)?;
    let name = String::from_utf8(name.to_vec()).map_err(|_| invalid())?;
    Ok((name, u64::from_be_bytes(*number)))
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
