//! Finding blobs by their tags, in one container or in all of an account: by container, then by the value of the first
//! tag of the filter and by name.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use trestle_kv::{ScanLimit, Snapshot, Span, after_key, turns::Pace};
use trestle_model::fault::{Fault, Reason, Violations};
use trestle_model::name::AccountName;
use trestle_model::page;

use crate::{
    blobs::{BlobState, Blobs},
    containers::{LIST_BYTES_MAX, position},
    error::BlobError,
    keys,
    names::{BlobName, ContainerName},
    record::{ContainerId, ContainerRecord},
    stored::Stored as _,
    tags::{
        Tags,
        expression::{Comparator, TagComparison, TagFilter},
    },
};

/// Most rows of the index that a page examines.
const EXAMINED_MAX: usize = 5000;
/// Most containers that a page examines.
const CONTAINERS_MAX: usize = 1000;

/// What a tag or a name takes in an answer beside its text, at most.
const TAG_BYTES: usize = 16;

/// A request for a page of found blobs.
#[derive(Debug, Clone)]
pub(crate) struct FindBlobs {
    /// Which blobs.
    pub(crate) filter: TagFilter,
    /// The text of the filter.
    pub(crate) text: String,
    /// Only those in this container: that of the call, or of the filter.
    pub(crate) container: Option<ContainerName>,
    /// At most this many blobs.
    pub(crate) page_size: usize,
    /// Where to continue; empty at the start.
    pub(crate) page_token: String,
}

/// A found blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundBlobTags {
    /// The name of its container.
    pub(crate) container: String,
    /// Its name.
    pub(crate) name: BlobName,
    /// Its tags.
    pub(crate) tags: Tags,
}

impl FoundBlobTags {
    /// About how many bytes it takes in an answer.
    fn bytes(&self) -> usize {
        let tags = self.tags.iter().map(|(key, value)| key.len() + value.len() + TAG_BYTES);
        self.container.len() + self.name.as_str().len() + tags.sum::<usize>() + TAG_BYTES
    }
}

/// A page of found blobs.
#[derive(Debug, Default)]
pub(crate) struct FoundPage {
    /// The blobs.
    pub(crate) blobs: Vec<FoundBlobTags>,
    /// Where the next page starts, if there may be one.
    pub(crate) next_page_token: Option<String>,
}

/// A page that is being filled.
struct FindRun<'a> {
    snapshot: &'a dyn Snapshot,
    request: &'a FindBlobs,
    identity: u64,
    page: FoundPage,
    bytes: usize,
    examined: usize,
    pace: Pace,
}

impl Blobs {
    /// One page of the blobs of an account that a filter finds.
    ///
    /// # Errors
    /// A token of another call, or a failed read.
    pub(crate) async fn find(
        &self,
        account: &AccountName,
        request: &FindBlobs,
    ) -> Result<FoundPage, BlobError> {
        let named = request.container.as_ref().map_or("", ContainerName::as_str).as_bytes();
        let owner = account.as_str().as_bytes();
        let parts: [&[u8]; 4] = [b"find", owner, named, request.text.as_bytes()];
        let identity = page::request_identity(&parts);
        let (first, row) = match request.page_token.as_str() {
            "" => (String::new(), Bytes::new()),
            token => start_of(&position(token, identity)?)?,
        };
        let snapshot = self.engine.snapshot().await?;
        let (page, pace) = (FoundPage::default(), Pace::default());
        let (snapshot, bytes, examined) = (&*snapshot, 0, 0);
        let mut run = FindRun { snapshot, request, identity, page, bytes, examined, pace };
        let mut span = keys::containers(account, "");
        if let Some(only) = &request.container {
            let key = keys::container(account, only);
            span = Span::new(key.clone(), after_key(&key));
        } else if let Some(first) = container_of(&first) {
            span.start = keys::container(account, &first);
        }
        let limit = ScanLimit { rows: CONTAINERS_MAX, bytes: 1024 * 1024 };
        let containers = snapshot.scan(&span, limit).await?;
        for entry in &containers.entries {
            let container = keys::container_name_of(&entry.key)?;
            let id = ContainerRecord::decode(&entry.value)?.id;
            let start = if container == first { row.clone() } else { Bytes::new() };
            if run.in_container(&container, id, start).await? {
                return Ok(run.page);
            }
        }
        if let Some(last) = containers.entries.last().filter(|_| containers.more) {
            // Behind every row of it.
            run.end(&keys::container_name_of(&last.key)?, &[u8::MAX]);
        }
        Ok(run.page)
    }
}

impl FindRun<'_> {
    /// Adds the found blobs of a container. Returns whether the page is full.
    async fn in_container(
        &mut self,
        container: &str,
        id: ContainerId,
        start: Bytes,
    ) -> Result<bool, BlobError> {
        let filter = &self.request.filter;
        if filter.container.as_deref().is_some_and(|only| only != container) {
            return Ok(false);
        }
        let Some(span) = span_of(filter, id) else { return Ok(false) };
        let mut span = Span::new(span.start.max(start), span.end);
        while !span.is_empty() {
            let rows = (EXAMINED_MAX - self.examined).min(512);
            let limit = ScanLimit { rows, bytes: 1024 * 1024 };
            let scan = self.snapshot.scan(&span, limit).await?;
            for entry in &scan.entries {
                let is_full = self.page.blobs.len() == self.request.page_size;
                if is_full || self.bytes >= LIST_BYTES_MAX {
                    self.end(container, &entry.key);
                    return Ok(true);
                }
                self.examined += 1;
                let blob = keys::tagged_blob_of(&entry.key)?;
                let record = BlobState::Current.record(self.snapshot, &blob).await;
                let record = record.map_err(of_index)?;
                if filter.holds(&record.tags) {
                    let container = container.to_owned();
                    let found = FoundBlobTags { container, name: blob.name, tags: record.tags };
                    self.bytes += found.bytes();
                    self.page.blobs.push(found);
                }
                self.pace.step().await;
            }
            let Some(last) = scan.entries.last().filter(|_| scan.more) else { return Ok(false) };
            let next: Bytes = after_key(&last.key).into();
            if self.examined == EXAMINED_MAX {
                self.end(container, &next);
                return Ok(true);
            }
            span = Span::new(next, span.end);
        }
        Ok(false)
    }

    /// Ends the page: the next one begins in this container, at this row.
    fn end(&mut self, container: &str, row: &[u8]) {
        let position = [container.as_bytes(), &[0], row].concat();
        self.page.next_page_token = Some(page::encode(self.identity, &position));
    }
}

/// One change writes a record and its rows in the index, and a snapshot has both: no race leaves a row alone.
fn of_index(error: BlobError) -> BlobError {
    match error {
        BlobError::BlobNotFound(name) => BlobError::corrupt(format!(
            "the index of tags has a blob without a record: blob=`{name}`"
        )),
        error => error,
    }
}

/// The rows of the first tag of the filter whose values it does not exclude; none where no value is left.
fn span_of(filter: &TagFilter, container: ContainerId) -> Option<Span> {
    let is_equal = |it: &&TagComparison| it.comparator == Comparator::Equal;
    let first = filter.comparisons.iter().find(is_equal).or(filter.comparisons.first())?;
    let mut span = keys::tag_values(container, &first.key);
    for comparison in filter.comparisons.iter().filter(|other| other.key == first.key) {
        let (from, behind) = keys::tag_value_end(container, &first.key, &comparison.value);
        let (start, end) = match comparison.comparator {
            Comparator::Equal => (Some(from), Some(behind)),
            Comparator::Greater => (Some(behind), None),
            Comparator::GreaterOrEqual => (Some(from), None),
            Comparator::Less => (None, Some(from)),
            Comparator::LessOrEqual => (None, Some(behind)),
            Comparator::NotEqual => (None, None),
        };
        span.start = start.map_or(span.start.clone(), |start| start.max(span.start));
        span.end = end.map_or(span.end.clone(), |end| end.min(span.end));
    }
    Some(span).filter(|span| !span.is_empty())
}

/// The name of a container in a position.
fn container_of(name: &str) -> Option<ContainerName> {
    ContainerName::parse(name.to_owned(), "", &mut Violations::default())
}

/// The container and the row in a position.
fn start_of(position: &[u8]) -> Result<(String, Bytes), BlobError> {
    let parts = || {
        let at = position.iter().position(|byte| *byte == 0)?;
        let container = std::str::from_utf8(position.get(..at)?).ok()?;
        Some((container.to_owned(), Bytes::copy_from_slice(position.get(at + 1..)?)))
    };
    parts().ok_or_else(|| {
        let rule = "the token is not one of this call";
        Fault::violation(Reason::InvalidQueryParameterValue, "page_token", rule).into()
    })
}
