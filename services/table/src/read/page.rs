//! One page of a query.

use bytes::Bytes;
use tokio::time::Instant;
use trestle_kv::{EngineError, Entry, ScanLimit, Snapshot, Span, after_key, turns::Pace};
use trestle_model::limits::{PAGE_SCANNED_MAX, PAGE_TIME_MAX};
use trestle_model::page;
use trestle_rpc::quota;

use super::{EntityReader, PlannedQuery, ReadCost, project, span::span};
use crate::{
    authorize::EntityAction, authorized_table::AuthorizedTable, error::TableError,
    lookup::PointReads, page_token::invalid_token, query::MatchTrial, stored,
    throttle::TokenReservation,
};

/// Rows read at once while a filter looks for matches: enough to amortise the seek, few enough to stop soon once the
/// page is full, out of time, or cancelled.
const FILTER_CHUNK: ScanLimit = ScanLimit { rows: 1000, bytes: 1024 * 1024 };

/// The same where a quota may end the page at any row, which wastes the rest of the rows read.
const LIMITED_CHUNK_ROWS: usize = 100;

/// How large a page may become.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageLimit {
    /// At most this many entities.
    pub(crate) entities: usize,
    /// Ends before the entity that would take it past this many bytes, unless it is the first.
    pub(crate) bytes: usize,
}

/// A page of a query.
#[derive(Debug, Default)]
pub(crate) struct EntityPage {
    /// The encoded entities, in key order.
    pub(crate) entities: Vec<Bytes>,
    /// The token of the next page, if there may be one.
    pub(crate) next: Option<String>,
    /// Its cost.
    pub(crate) cost: ReadCost,
}

impl EntityReader {
    /// One page of a query, from `token` on if it is not empty.
    ///
    /// # Errors
    /// A denied permission, an exceeded quota, a token of another query, [`TableError::TableNotFound`], or a failed
    /// read.
    pub(crate) async fn page(
        &self,
        query: &PlannedQuery,
        token: &str,
        limit: PageLimit,
    ) -> Result<EntityPage, TableError> {
        self.observed_page(query, token, limit, None).await
    }

    /// The same, and what is found of the filter in the entities before the first match.
    ///
    /// # Errors
    /// Those of [`Self::page`].
    pub(crate) async fn observed_page(
        &self,
        query: &PlannedQuery,
        token: &str,
        limit: PageLimit,
        trial: Option<&mut MatchTrial>,
    ) -> Result<EntityPage, TableError> {
        let snapshot = self.engine.snapshot().await?;
        let PlannedQuery { access, request, plan } = query;
        let (reads, now) = (PointReads::At(&*snapshot), self.clock.now());
        let table = AuthorizedTable::find(reads, access, &request.table, now).await?;
        // For every entity of the plan, which contains only keys in the range of the caller.
        let id = table.id_for_any(EntityAction::Read)?;
        let parts = [&id.0.to_be_bytes()[..], request.filter_text.as_bytes()];
        let identity = page::request_identity(&parts);
        let invalid = |error| invalid_token(error, request.token_field);
        let start = match token {
            "" => None,
            token => Some(page::decode(token, identity).map_err(invalid)?),
        };
        let Some(range) = plan.range.as_ref().filter(|_| limit.entities > 0) else {
            return Ok(EntityPage::default());
        };
        let mut span = span(range, id);
        // Only ever moves forward: the span remains that of this caller, even with the token of another.
        span.start = span.start.max(start.map(Bytes::from).unwrap_or_default());

        let rows_max = if plan.residual.is_none() { limit.entities } else { PAGE_SCANNED_MAX };
        let mut tokens = TokenReservation::for_scan(&self.throttle, table.table_ref(), rows_max);
        tokens.check(&span.start)?;
        let page = EntityPage::default();
        let mut builder = PageBuilder { query, limit, tokens, page, bytes: 0, trial };
        let next = builder.fill(&*snapshot, span).await?;
        Ok(EntityPage { next: next.map(|start| page::encode(identity, &start)), ..builder.page })
    }
}

/// A page while it fills.
struct PageBuilder<'a> {
    query: &'a PlannedQuery,
    limit: PageLimit,
    tokens: TokenReservation<'a>,
    page: EntityPage,
    /// Bytes of the entities in the page.
    bytes: usize,
    /// What is found of the filter, where that is requested.
    trial: Option<&'a mut MatchTrial>,
}

impl PageBuilder<'_> {
    /// Reads `span` until the page is full or has cost enough; returns the first key of the next page, unless all
    /// was read.
    async fn fill(
        &mut self,
        snapshot: &dyn Snapshot,
        mut span: Span,
    ) -> Result<Option<Bytes>, TableError> {
        let (started, mut pace) = (Instant::now(), Pace::default());
        while !span.is_empty() {
            let scan = match snapshot.scan(&span, self.chunk()).await {
                Ok(scan) => scan,
                // The rest is a page of its own, of another instant as every page.
                Err(EngineError::SnapshotEnded { .. }) if self.page.cost.scanned > 0 => {
                    return Ok(Some(span.start));
                }
                Err(error) => return Err(error.into()),
            };
            for entry in &scan.entries {
                if self.is_full() || !self.add(entry)? {
                    return Ok(Some(entry.key.clone()));
                }
                pace.step().await;
            }
            let (Some(last), true) = (scan.entries.last(), scan.more) else {
                return Ok(None);
            };
            span.start = after_key(&last.key).into();
            if self.is_full() || self.is_out_of_budget(started) {
                return Ok((!span.is_empty()).then_some(span.start));
            }
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
        if self.tokens.is_limited() {
            chunk.rows = chunk.rows.min(LIMITED_CHUNK_ROWS);
        }
        chunk
    }

    /// Adds the entity if it matches; false when it does not fit any more, or would exceed a quota.
    ///
    /// # Errors
    /// A corrupt entity; or an exceeded quota, before anything was examined.
    fn add(&mut self, entry: &Entry) -> Result<bool, TableError> {
        let wire = stored::wire(&entry.value)?;
        let matches = match &self.query.plan.residual {
            None => true,
            Some(filter) => filter.matches(&wire)?,
        };
        if !matches
            && self.page.cost.returned == 0
            && let Some(trial) = &mut self.trial
        {
            trial.observe(&wire)?;
        }
        let select = self.query.request.select.as_ref();
        let entity = matches.then(|| project(wire, select)).transpose()?;
        let bytes = self.bytes + entity.as_ref().map_or(0, Bytes::len);
        if entity.is_some() && bytes > self.limit.bytes && !self.page.entities.is_empty() {
            return Ok(false);
        }
        match self.tokens.reserve(&entry.key, quota::weight(entry.value.len())) {
            Err(exceeded) if self.page.cost.scanned == 0 => return Err(exceeded.into()),
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

    /// Whether the page must end because of the work done, with any content.
    fn is_out_of_budget(&self, started: Instant) -> bool {
        let scanned = usize::try_from(self.page.cost.scanned).unwrap_or(usize::MAX);
        scanned >= PAGE_SCANNED_MAX || started.elapsed() >= PAGE_TIME_MAX
    }
}
