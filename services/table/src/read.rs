//! Carries out reads: one entity, or one bounded page of a query, each on one consistent snapshot.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;
use trestle_kv::{Engine, Entry, ScanLimit, Snapshot, Span, after_key};
use trestle_service::{
    clock::WriteClock,
    limits::{PAGE_SCANNED_MAX, PAGE_TIME_MAX},
    name::TableName,
    page, quota,
};

use crate::{
    authorize::{Access, Action},
    entity::EntityKey,
    error::TableError,
    keys::{self, TableId},
    query::{Filter, KeyEdge, KeyRange, Plan},
    stored::{self, Projection},
    tables,
    target::Target,
    throttle::{Throttle, Toll},
};

/// Rows read at once while a filter looks for matches: enough to amortise the seek, little enough to notice that the
/// page is full, out of time, or wanted by nobody any more.
const FILTER_CHUNK: ScanLimit = ScanLimit { rows: 1000, bytes: 1024 * 1024 };

/// The same where a limit may end the page at any row, and make the rest of what was read useless.
const LIMITED_CHUNK_ROWS: usize = 100;

/// Reads entities.
#[derive(Clone)]
pub(crate) struct Reader {
    engine: Arc<dyn Engine>,
    clock: Arc<WriteClock>,
    throttle: Arc<Throttle>,
}

/// What a query asks for.
#[derive(Debug)]
pub(crate) struct Ask {
    /// The table it reads.
    pub(crate) table: TableName,
    /// The filter as the client wrote it; page tokens belong to it.
    pub(crate) filter_text: String,
    /// The same, parsed; none for every entity.
    pub(crate) filter: Option<Filter>,
    /// What to return of each entity; everything where none.
    pub(crate) select: Option<Projection>,
    /// The field of the request that carries the token, for violations.
    pub(crate) token_field: &'static str,
}

/// A query of a caller, planned: reads no key that the caller is not given.
#[derive(Debug)]
pub(crate) struct Query {
    access: Access,
    ask: Ask,
    plan: Plan,
}

impl Query {
    /// Plans a query.
    pub(crate) fn new(access: Access, ask: Ask) -> Self {
        let plan = match access.range() {
            None => Plan::new(ask.filter.as_ref()),
            Some(range) => Plan::within(ask.filter.as_ref(), range),
        };
        Self { access, ask, plan }
    }

    /// What to read, and what to check on each entity.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether it names the properties that it wants returned.
    pub(crate) fn selects(&self) -> bool {
        self.ask.select.is_some()
    }
}

/// How large a page may become.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageLimit {
    /// At most this many entities.
    pub(crate) entities: usize,
    /// Ends before the entity that would take it past this many bytes, unless it is the first.
    pub(crate) bytes: usize,
}

/// What a read cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cost {
    /// Entities examined.
    pub(crate) scanned: u64,
    /// Entities returned.
    pub(crate) returned: u64,
    /// Bytes of stored entities examined.
    pub(crate) bytes: u64,
}

/// A page of a query.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// The encoded entities, in key order.
    pub(crate) entities: Vec<Bytes>,
    /// Where the next page starts, if there may be one.
    pub(crate) next: Option<String>,
    /// What it cost.
    pub(crate) cost: Cost,
}

impl Reader {
    /// Works on `engine`, within the limits of `throttle`.
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<WriteClock>,
        throttle: Arc<Throttle>,
    ) -> Self {
        Self { engine, clock, throttle }
    }

    /// One encoded entity, and the bytes that were read for it.
    ///
    /// # Errors
    /// A caller who may not or asks for too much, [`TableError::TableNotFound`],
    /// [`TableError::EntityNotFound`], or a failed read.
    pub(crate) async fn get(
        &self,
        access: &Access,
        table: &TableName,
        key: EntityKey,
        select: Option<&Projection>,
    ) -> Result<(Bytes, Cost), TableError> {
        let snapshot = self.engine.snapshot().await?;
        let target = Target::find(&*snapshot, access, table, &self.clock).await?;
        let id = target.one(Action::Read, &key)?;
        let stored = keys::entity(id, &key);
        let mut toll = Toll::of_writes(&self.throttle, target.place());
        toll.pay(&stored, 1)?;
        let Some(value) = snapshot.get(&stored).await? else {
            return Err(TableError::EntityNotFound(key));
        };
        toll.owe(&stored, quota::weight(value.len()) - 1);
        let entity = project(stored::wire(&value)?, select)?;
        Ok((entity, Cost { scanned: 1, returned: 1, bytes: value.len() as u64 }))
    }

    /// One page of a query, from `token` on if it is not empty.
    ///
    /// # Errors
    /// A caller who may not or asks for too much, a token of another query,
    /// [`TableError::TableNotFound`], or a failed read.
    pub(crate) async fn page(
        &self,
        query: &Query,
        token: &str,
        limit: PageLimit,
    ) -> Result<Page, TableError> {
        let snapshot = self.engine.snapshot().await?;
        let Query { access, ask, plan } = query;
        let target = Target::find(&*snapshot, access, &ask.table, &self.clock).await?;
        // Of every entity that the plan has, which are those in the range of the caller.
        let id = target.any(Action::Read)?;
        let identity = page::request_identity(&[&id.0.to_be_bytes(), ask.filter_text.as_bytes()]);
        let refused = |error| tables::refused_token(error, ask.token_field);
        let start = match token {
            "" => None,
            token => Some(page::decode(token, identity).map_err(refused)?),
        };
        let Some(range) = plan.range.as_ref().filter(|_| limit.entities > 0) else {
            return Ok(Page::default());
        };
        let mut span = range.span(id);
        // Only ever moves forward: whoever made the token, the span is that of this caller.
        span.start = span.start.max(start.map(Bytes::from).unwrap_or_default());

        let wanted = if plan.residual.is_none() { limit.entities } else { PAGE_SCANNED_MAX };
        let mut toll = Toll::of_scan(&self.throttle, target.place(), wanted);
        toll.begin(&span.start)?;
        let mut filling = Filling { query, limit, toll, page: Page::default(), bytes: 0 };
        let next = filling.fill(&*snapshot, span).await?;
        Ok(Page { next: next.map(|start| page::encode(identity, &start)), ..filling.page })
    }
}

/// A page while it fills.
struct Filling<'a> {
    query: &'a Query,
    limit: PageLimit,
    toll: Toll<'a>,
    page: Page,
    /// Bytes of the entities in the page.
    bytes: usize,
}

impl Filling<'_> {
    /// Reads `span` until the page is full or has cost enough; where the next one starts, unless all was read.
    async fn fill(
        &mut self,
        snapshot: &dyn Snapshot,
        mut span: Span,
    ) -> Result<Option<Bytes>, TableError> {
        let started = Instant::now();
        while !span.is_empty() {
            let scan = snapshot.scan(&span, self.chunk()).await?;
            for entry in &scan.entries {
                if self.is_full() || !self.add(entry)? {
                    return Ok(Some(entry.key.clone()));
                }
            }
            let (Some(last), true) = (scan.entries.last(), scan.more) else {
                return Ok(None);
            };
            span.start = after_key(&last.key).into();
            if self.is_full() || self.is_worked_out(started) {
                return Ok((!span.is_empty()).then_some(span.start));
            }
            tokio::task::yield_now().await;
        }
        Ok(None)
    }

    /// How much to read next.
    fn chunk(&self) -> ScanLimit {
        let mut chunk = FILTER_CHUNK;
        if self.query.plan.residual.is_none() {
            // Without a filter every row is returned: read as many as fit.
            let rows = self.limit.entities.saturating_sub(self.page.entities.len()).max(1);
            chunk = ScanLimit { rows, bytes: self.limit.bytes };
        }
        if self.toll.is_limited() {
            chunk.rows = chunk.rows.min(LIMITED_CHUNK_ROWS);
        }
        chunk
    }

    /// Adds the entity if it matches; false when it does not fit any more, or the caller has asked
    /// for too much.
    ///
    /// # Errors
    /// An unreadable entity; or a caller who asks for too much, with nothing examined yet.
    fn add(&mut self, entry: &Entry) -> Result<bool, TableError> {
        let wire = stored::wire(&entry.value)?;
        let matches = match &self.query.plan.residual {
            None => true,
            Some(filter) => filter.matches(&wire)?,
        };
        let select = self.query.ask.select.as_ref();
        let entity = matches.then(|| project(wire, select)).transpose()?;
        let bytes = self.bytes + entity.as_ref().map_or(0, Bytes::len);
        if entity.is_some() && bytes > self.limit.bytes && !self.page.entities.is_empty() {
            return Ok(false);
        }
        match self.toll.pay(&entry.key, quota::weight(entry.value.len())) {
            Err(over) if self.page.cost.scanned == 0 => return Err(over.into()),
            Err(_) => return Ok(false),
            Ok(()) => self.bytes = bytes,
        }
        if let Some(entity) = entity {
            self.page.cost.returned += 1;
            self.page.entities.push(entity);
        }
        self.page.cost.scanned += 1;
        self.page.cost.bytes += entry.value.len() as u64;
        Ok(true)
    }

    fn is_full(&self) -> bool {
        self.page.entities.len() >= self.limit.entities
    }

    /// Whether the page must end for the work done, whatever it holds.
    fn is_worked_out(&self, started: Instant) -> bool {
        let scanned = usize::try_from(self.page.cost.scanned).unwrap_or(usize::MAX);
        scanned >= PAGE_SCANNED_MAX || started.elapsed() >= PAGE_TIME_MAX
    }
}

fn project(wire: Bytes, select: Option<&Projection>) -> Result<Bytes, TableError> {
    match select {
        None => Ok(wire),
        Some(select) => Ok(select.project(&wire)?),
    }
}

impl KeyRange {
    /// The same range in the keys of a table.
    fn span(&self, id: TableId) -> Span {
        let whole = keys::entities(id);
        let start =
            self.start.as_ref().map_or(whole.start, |edge| edge.position(id, !edge.inclusive));
        let end = self.end.as_ref().map_or(whole.end, |edge| edge.position(id, edge.inclusive));
        Span::new(start, end)
    }
}

impl KeyEdge {
    /// The first key of what the edge names, or the first key after it.
    fn position(&self, id: TableId, after: bool) -> Bytes {
        match (&self.row_key, after) {
            (None, false) => keys::partition_start(id, &self.partition_key),
            (None, true) => keys::partition_end(id, &self.partition_key),
            (Some(row_key), false) => keys::row(id, &self.partition_key, row_key),
            (Some(row_key), true) => after_key(&keys::row(id, &self.partition_key, row_key)).into(),
        }
    }
}
