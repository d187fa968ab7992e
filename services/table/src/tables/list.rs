//! Lists the tables of an account.

use bytes::Bytes;
use trestle_kv::{ScanLimit, Span, after_key};
use trestle_model::limits::PAGE_ENTITIES_MAX;
use trestle_model::name::AccountName;
use trestle_model::page;

use super::Tables;
use crate::{
    error::TableError,
    keys::{self, TableRecord},
    page_token::invalid_token,
    query::{NameBound, NameFilter, NameRange},
};

/// Most bytes of table records read at once.
const LIST_BYTES_MAX: usize = 1024 * 1024;
/// Most records examined for one page of a filtered listing.
const LIST_SCANNED_MAX: usize = 50_000;

/// A page of tables.
#[derive(Debug)]
pub(crate) struct TablePage {
    /// The tables, ordered by lower-cased name.
    pub(crate) tables: Vec<TableRecord>,
    /// The token of the next page, if there may be one.
    pub(crate) next_page_token: Option<String>,
}

/// A request to list tables.
#[derive(Debug)]
pub(crate) struct ListTables {
    /// The text of the filter; page tokens are bound to it.
    pub(crate) filter_text: String,
    /// The same, parsed; none for every table.
    pub(crate) filter: Option<NameFilter>,
    /// At most this many tables.
    pub(crate) page_size: usize,
    /// The token of the page; empty for the first.
    pub(crate) page_token: String,
}

impl Tables {
    /// One page of the tables of an account.
    ///
    /// # Errors
    /// A token of another listing, or a failed read.
    pub(crate) async fn list(
        &self,
        account: &AccountName,
        request: ListTables,
    ) -> Result<TablePage, TableError> {
        let identity = page::request_identity(&[
            b"tables",
            account.as_str().as_bytes(),
            request.filter_text.as_bytes(),
        ]);
        let mut span = match &request.filter {
            None => keys::tables(account),
            Some(filter) => match filter.range() {
                None => {
                    return Ok(TablePage { tables: Vec::new(), next_page_token: None });
                }
                Some(range) => named_span(account, range),
            },
        };
        if !request.page_token.is_empty() {
            let start = page::decode(&request.page_token, identity)
                .map_err(|error| invalid_token(error, "page_token"))?;
            span.start = Bytes::from(start).max(span.start);
        }
        let mut page = TablePage { tables: Vec::new(), next_page_token: None };
        if request.page_size == 0 {
            return Ok(page);
        }
        let next = self.fill(&mut page.tables, span, &request).await?;
        page.next_page_token = next.map(|start| page::encode(identity, &start));
        Ok(page)
    }

    /// Adds matching tables of `span` until the page is full; returns the first key of the next page.
    async fn fill(
        &self,
        tables: &mut Vec<TableRecord>,
        mut span: Span,
        request: &ListTables,
    ) -> Result<Option<Vec<u8>>, TableError> {
        let snapshot = self.engine.snapshot().await?;
        let limit = ScanLimit { rows: PAGE_ENTITIES_MAX, bytes: LIST_BYTES_MAX };
        let mut scanned = 0;
        while !span.is_empty() {
            let scan = snapshot.scan(&span, limit).await?;
            for entry in &scan.entries {
                if tables.len() == request.page_size {
                    return Ok(Some(entry.key.to_vec()));
                }
                let record = TableRecord::decode(&entry.value)?;
                let folded = record.name.to_ascii_lowercase();
                if request.filter.as_ref().is_none_or(|filter| filter.matches(&folded)) {
                    tables.push(record);
                }
            }
            scanned += scan.entries.len();
            let (Some(last), true) = (scan.entries.last(), scan.more) else {
                return Ok(None);
            };
            span.start = after_key(&last.key).into();
            if scanned >= LIST_SCANNED_MAX {
                return Ok(Some(span.start.to_vec()));
            }
        }
        Ok(None)
    }
}

/// The tables of an account whose lower-cased names are in a range.
fn named_span(account: &AccountName, range: &NameRange) -> Span {
    let whole = keys::tables(account);
    let key = |bound: &NameBound, after: bool| -> Bytes {
        let key = keys::table(account, &bound.name);
        if after { after_key(&key).into() } else { key }
    };
    let start = range.start.as_ref().map_or(whole.start, |bound| key(bound, !bound.inclusive));
    let end = range.end.as_ref().map_or(whole.end, |bound| key(bound, bound.inclusive));
    Span::new(start, end)
}
