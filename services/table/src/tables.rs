//! Creating, finding, listing and deleting tables.

use std::sync::Arc;

use bytes::Bytes;
use trestle_identity::caller::{Authority, Caller, QueueGrant};
use trestle_kv::{Engine, ScanLimit, Snapshot, Span, Write, after_key, transact};
use trestle_service::{
    clock::{Ticks, WriteClock},
    fault::{Fault, Reason, Violations},
    limits::PAGE_ENTITIES_MAX,
    name::{AccountName, TableName},
    page,
};

use crate::{
    authorize::{self, Access},
    error::TableError,
    keys::{self, DeadTable, TableId, TableRecord},
    query::{NameEdge, NameFilter, NameRange},
    settings,
    target::Target,
};

/// Most bytes of table records read at once.
const LIST_BYTES_MAX: usize = 1024 * 1024;
/// Most records examined for one page of a filtered listing.
const LIST_SCANNED_MAX: usize = 50_000;

/// The tables of every account.
#[derive(Clone)]
pub(crate) struct Tables {
    engine: Arc<dyn Engine>,
    clock: Arc<WriteClock>,
}

/// A page of tables.
#[derive(Debug)]
pub(crate) struct TablePage {
    /// The tables, ordered by lower-cased name.
    pub(crate) tables: Vec<TableRecord>,
    /// Where the next page starts, if there may be one.
    pub(crate) next_page_token: Option<String>,
}

/// What a listing asks for.
#[derive(Debug)]
pub(crate) struct ListTables {
    /// The text of the filter, which the token must belong to.
    pub(crate) filter_text: String,
    /// The same, parsed; none for every table.
    pub(crate) filter: Option<NameFilter>,
    /// At most this many tables.
    pub(crate) page_size: usize,
    /// Where to go on; empty at the start.
    pub(crate) page_token: String,
}

impl Tables {
    /// Works on `engine`.
    pub(crate) fn new(engine: Arc<dyn Engine>, clock: Arc<WriteClock>) -> Self {
        Self { engine, clock }
    }

    /// Creates a table.
    ///
    /// # Errors
    /// [`TableError::TableExists`], or a failed commit.
    pub(crate) async fn create(
        &self,
        account: &AccountName,
        name: TableName,
    ) -> Result<TableRecord, TableError> {
        let key = keys::table(account, &name.folded());
        let reads = vec![key.clone(), keys::next_table_id()];
        let created_at = self.clock.next();
        transact(&*self.engine, reads, move |current| {
            let [existing, next_id] = current else {
                return Err(TableError::corrupt("two keys were read"));
            };
            if existing.is_some() {
                return Err(TableError::TableExists(name.clone()));
            }
            decide_create(&key, next_id.as_ref(), created_at, &name)
        })
        .await?
    }

    /// The record of a table.
    ///
    /// # Errors
    /// [`TableError::TableAbsent`], or a failed read.
    pub(crate) async fn get(
        &self,
        account: &AccountName,
        name: TableName,
    ) -> Result<TableRecord, TableError> {
        let snapshot = self.engine.snapshot().await?;
        find(&*snapshot, account, &name).await?.ok_or(TableError::TableAbsent(name))
    }

    /// Lets in every caller but one whose stored access policy does not hold now, or who is denied
    /// for something else that comes next: before anything is said about the call.
    ///
    /// # Errors
    /// What the policy or the check after it says; or a failed read.
    pub(crate) async fn admit(&self, caller: &Caller) -> Result<(), TableError> {
        let grant = match &caller.authority {
            Authority::Table(grant) if grant.policy.is_some() => grant,
            // The queue service has its policy, and hears of no call to this one.
            Authority::Queue(QueueGrant { policy: Some(policy), .. }) => {
                return Ok(policy.passed()?);
            }
            _ => return Ok(()),
        };
        let name = TableName::parse(grant.table.clone(), "", &mut Violations::default());
        let snapshot = self.engine.snapshot().await?;
        let table = match &name {
            Some(name) => find(&*snapshot, &caller.account, name).await?,
            None => None,
        };
        let policies = match table {
            Some(table) => settings::stored_policies(&*snapshot, table.id).await?,
            None => Vec::new(),
        };
        authorize::permissions(grant, &policies, self.clock.now())?;
        Ok(())
    }

    /// The table that writes to entities work in, and what their caller may do there.
    ///
    /// # Errors
    /// See [`Target::find`].
    pub(crate) async fn target<'a>(
        &self,
        access: &'a Access,
        name: &'a TableName,
    ) -> Result<Target<'a>, TableError> {
        Target::find(&*self.engine.snapshot().await?, access, name, &self.clock).await
    }

    /// Deletes a table: its name is free at once, its entities are removed by the sweeper.
    ///
    /// # Errors
    /// [`TableError::TableAbsent`], or a failed commit.
    pub(crate) async fn delete(
        &self,
        account: &AccountName,
        name: TableName,
    ) -> Result<(), TableError> {
        let key = keys::table(account, &name.folded());
        let deleted_at = self.clock.next();
        transact(&*self.engine, vec![key.clone()], move |current| {
            let Some(Some(value)) = current.first() else {
                return Err(TableError::TableAbsent(name.clone()));
            };
            Ok((decide_delete(&key, TableRecord::decode(value)?.id, deleted_at), ()))
        })
        .await?
    }

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
                .map_err(|error| refused_token(error, "page_token"))?;
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

    /// Adds matching tables of `span` until the page is full; returns where the next page starts.
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

/// The record of a table in a snapshot.
///
/// # Errors
/// A failed read.
pub(crate) async fn find(
    snapshot: &dyn Snapshot,
    account: &AccountName,
    name: &TableName,
) -> Result<Option<TableRecord>, TableError> {
    let value = snapshot.get(&keys::table(account, &name.folded())).await?;
    value.map(|value| TableRecord::decode(&value)).transpose()
}

/// The number of a table in a snapshot.
///
/// # Errors
/// [`TableError::TableNotFound`], or a failed read.
pub(crate) async fn resolve(
    snapshot: &dyn Snapshot,
    account: &AccountName,
    name: &TableName,
) -> Result<TableId, TableError> {
    let found = find(snapshot, account, name).await?;
    found.map(|table| table.id).ok_or_else(|| TableError::TableNotFound(name.clone()))
}

/// The failure for a token, in this field, that does not fit its request.
pub(crate) fn refused_token(error: page::TokenError, field: &str) -> TableError {
    Fault::violation(Reason::InvalidQueryParameterValue, field, error.to_string()).into()
}

/// The tables of an account whose lower-cased names are in a range.
fn named_span(account: &AccountName, range: &NameRange) -> Span {
    let whole = keys::tables(account);
    let position = |edge: &NameEdge, after: bool| -> Bytes {
        let key = keys::table(account, &edge.name);
        if after { after_key(&key).into() } else { key }
    };
    let start = range.start.as_ref().map_or(whole.start, |edge| position(edge, !edge.inclusive));
    let end = range.end.as_ref().map_or(whole.end, |edge| position(edge, edge.inclusive));
    Span::new(start, end)
}

fn decide_create(
    key: &Bytes,
    next_id: Option<&Bytes>,
    created_at: Ticks,
    name: &TableName,
) -> Result<(Vec<Write>, TableRecord), TableError> {
    let id = keys::decode_next_id(next_id)?;
    let record = TableRecord::new(id, created_at, name);
    let writes = vec![
        Write::Put { key: keys::next_table_id(), value: keys::encode_next_id(TableId(id.0 + 1)) },
        Write::Put { key: key.clone(), value: record.encode() },
    ];
    Ok((writes, record))
}

fn decide_delete(key: &Bytes, id: TableId, deleted_at: Ticks) -> Vec<Write> {
    let dead = DeadTable { deleted_at, resume: keys::entities(id).start };
    vec![
        Write::Delete { key: key.clone() },
        Write::Delete { key: keys::access_policies(id) },
        Write::Put { key: keys::dead_table(id), value: dead.encode() },
    ]
}
