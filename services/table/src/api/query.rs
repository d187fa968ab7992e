//! The read calls: get, query, stream, explain.

use tonic::Status;
use trestle_model::fault::{Fault, Reason, Violations};
use trestle_model::limits::{PAGE_BYTES_MAX, PAGE_ENTITIES_MAX, QUOTA_WAIT_MAX};
use trestle_model::name::TableName;
use trestle_proto::table::v1 as proto;
use trestle_rpc::call_statistics::StatisticsRecorder;
use trestle_rpc::response_stream::{self, ResponseSender, ResponseStream};

use super::{access_log::record_cost, parse, rejected};
use crate::{
    authorize::EntityAccess,
    entity::EntityKey,
    error::TableError,
    query::{Filter, KeyBound, MatchTrial, QueryScope},
    read::{EntityPage, EntityReader, PageLimit, PlannedQuery, QueryRequest, ReadCost},
    stored::Projection,
};

/// A message of a stream: large enough to be cheap for each entity, small enough to hold a few in memory.
const STREAM_MESSAGE: PageLimit = PageLimit { entities: PAGE_ENTITIES_MAX, bytes: 256 * 1024 };

/// GetEntity.
pub(super) async fn get(
    reader: &EntityReader,
    access: &EntityAccess,
    request: proto::GetEntityRequest,
) -> Result<proto::GetEntityResponse, Fault> {
    let mut violations = Violations::default();
    let table = TableName::parse(request.table, "table", &mut violations);
    let key = EntityKey::parse(request.partition_key, request.row_key, "", &mut violations);
    let select = Projection::parse(request.select, "select", &mut violations);
    let (table, key) = parse::finish(violations, table.zip(key))?;
    let (entity, cost) = reader.get(access, &table, key, select.as_ref()).await?;
    Ok(proto::GetEntityResponse { entity, cost: Some(render_cost(QueryScope::Point, cost)) })
}

/// QueryEntities.
pub(super) async fn page(
    reader: &EntityReader,
    access: EntityAccess,
    request: proto::QueryEntitiesRequest,
) -> Result<proto::QueryEntitiesResponse, Fault> {
    let mut violations = Violations::default();
    let entities = parse::page_size(request.page_size, &mut violations);
    let query = parse_query(request.table, request.filter, request.select, &mut violations);
    let query = PlannedQuery::new(access, parse::finish(violations, query)?);
    let limit = PageLimit { entities, bytes: PAGE_BYTES_MAX };
    let page = reader.page(&query, &request.page_token, limit).await?;
    Ok(proto::QueryEntitiesResponse {
        entities: page.entities,
        next_page_token: page.next.unwrap_or_default(),
        cost: Some(render_cost(query.plan().scope, page.cost)),
    })
}

/// StreamEntities: a page a message, each on a snapshot of its own, so that a slow client pins no old versions.
pub(super) async fn stream(
    reader: &EntityReader,
    access: EntityAccess,
    request: proto::StreamEntitiesRequest,
    recorder: StatisticsRecorder,
) -> Result<ResponseStream<proto::StreamEntitiesResponse>, Fault> {
    let mut violations = Violations::default();
    let query = parse_query(request.table, request.filter, request.select, &mut violations);
    let limit = parse_limit(request.limit, &mut violations);
    let query = QueryRequest { token_field: "resume_token", ..parse::finish(violations, query)? };
    let mut stream = EntityStream {
        reader: reader.clone(),
        query: PlannedQuery::new(access, query),
        remaining: limit,
        token: request.resume_token,
        recorder,
    };
    // The first message is read before the response, so that an error of the request fails the call itself.
    let first = stream.next().await?;
    Ok(response_stream::spawn(|sender| async move {
        let mut message = first;
        loop {
            let last = message.resume_token.is_empty();
            sender.send(message).await?;
            if last {
                return Ok(());
            }
            message = stream.next_within_quota(&sender).await?;
        }
    }))
}

/// A running stream.
struct EntityStream {
    reader: EntityReader,
    query: PlannedQuery,
    /// Entities that may still be sent.
    remaining: u64,
    token: String,
    recorder: StatisticsRecorder,
}

impl EntityStream {
    /// The next message. A started stream is throttled at a quota rather than failed.
    async fn next_within_quota(
        &mut self,
        sender: &ResponseSender<proto::StreamEntitiesResponse>,
    ) -> Result<proto::StreamEntitiesResponse, Status> {
        let mut wait_budget = QUOTA_WAIT_MAX;
        loop {
            match self.next().await {
                Err(TableError::QuotaExceeded(exceeded)) if exceeded.wait <= wait_budget => {
                    wait_budget -= exceeded.wait;
                    sender.pause(exceeded.wait).await?;
                }
                other => return other.map_err(rejected),
            }
        }
    }

    async fn next(&mut self) -> Result<proto::StreamEntitiesResponse, TableError> {
        let remaining = usize::try_from(self.remaining).unwrap_or(usize::MAX);
        let limit =
            PageLimit { entities: STREAM_MESSAGE.entities.min(remaining), ..STREAM_MESSAGE };
        let EntityPage { entities, next, cost } =
            self.reader.page(&self.query, &self.token, limit).await?;
        self.remaining = self.remaining.saturating_sub(cost.returned);
        self.token = next.filter(|_| self.remaining > 0).unwrap_or_default();
        let cost = Some(render_cost(self.query.plan().scope, cost));
        record_cost(&self.recorder, cost.as_ref());
        Ok(proto::StreamEntitiesResponse { entities, resume_token: self.token.clone(), cost })
    }
}

/// ExplainQuery.
pub(super) async fn explain(
    reader: &EntityReader,
    access: EntityAccess,
    request: proto::ExplainQueryRequest,
) -> Result<proto::ExplainQueryResponse, Fault> {
    let mut violations = Violations::default();
    let query = parse_query(request.table, request.filter, request.select, &mut violations);
    let query = PlannedQuery::new(access, parse::finish(violations, query)?);
    // Without `analyze` an empty page still checks that the table exists.
    let entities = if request.analyze { PAGE_ENTITIES_MAX } else { 0 };
    let limit = PageLimit { entities, bytes: PAGE_BYTES_MAX };
    let mut trial = query.filter().filter(|_| request.analyze).map(MatchTrial::new);
    let page = reader.observed_page(&query, "", limit, trial.as_mut()).await?;
    let plan = query.plan();
    let trial = trial.filter(|_| page.cost.returned == 0);
    let reasons = trial.map(|trial| trial.reasons(plan, page.next.is_some()));
    let range = plan.range.clone().unwrap_or_default();
    Ok(proto::ExplainQueryResponse {
        scope: render_scope(plan.scope).into(),
        start: range.start.map(render_bound),
        end: range.end.map(render_bound),
        residual_filter: plan.residual.as_ref().map(Filter::to_string).unwrap_or_default(),
        filter_properties: plan.filter_properties(),
        advice: plan.advice(query.selects()),
        cost: request.analyze.then(|| render_cost(plan.scope, page.cost)),
        no_match_reasons: reasons.unwrap_or_default(),
    })
}

fn parse_query(
    table: String,
    filter_text: String,
    select: Option<proto::PropertyMask>,
    violations: &mut Violations,
) -> Option<QueryRequest> {
    let table = TableName::parse(table, "table", violations);
    let filter = parse::filter(Filter::parse(&filter_text), violations);
    let select = Projection::parse(select, "select", violations);
    Some(QueryRequest {
        table: table?,
        filter: filter?,
        filter_text,
        select,
        token_field: "page_token",
    })
}

fn parse_limit(limit: Option<i64>, violations: &mut Violations) -> u64 {
    let Some(limit) = limit else { return u64::MAX };
    u64::try_from(limit).unwrap_or_else(|_| {
        let rule = format!("must be 0 or more: value=`{limit}`");
        violations.push(Reason::InvalidInput, "limit", rule);
        0
    })
}

fn render_cost(scope: QueryScope, cost: ReadCost) -> proto::QueryCost {
    proto::QueryCost {
        scope: render_scope(scope).into(),
        scanned: cost.scanned,
        returned: cost.returned,
        bytes: cost.bytes,
    }
}

fn render_scope(scope: QueryScope) -> proto::QueryScope {
    match scope {
        QueryScope::Point => proto::QueryScope::Point,
        QueryScope::RowRange => proto::QueryScope::RowRange,
        QueryScope::Partition => proto::QueryScope::Partition,
        QueryScope::PartitionRange => proto::QueryScope::PartitionRange,
        QueryScope::Table => proto::QueryScope::Table,
    }
}

fn render_bound(bound: KeyBound) -> proto::KeyBound {
    proto::KeyBound {
        partition_key: bound.partition_key,
        row_key: bound.row_key,
        inclusive: bound.inclusive,
    }
}
