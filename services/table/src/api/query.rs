//! The read calls: get, query, stream, explain.

use tonic::Status;
use trestle_proto::table::v1 as proto;
use trestle_service::{
    facts::Facts,
    fault::{Fault, Reason, Violations},
    limits::{PAGE_BYTES_MAX, PAGE_ENTITIES_MAX, QUOTA_WAIT_MAX},
    name::TableName,
};

use super::{
    Responses,
    facts::tell_cost,
    outbox::{self, Outbox},
    parse,
};
use crate::{
    authorize::Access,
    entity::EntityKey,
    error::TableError,
    query::{Filter, KeyEdge, Scope},
    read::{Ask, Cost, Page, PageLimit, Query, Reader},
    stored::Projection,
};

/// A message of a stream: large enough to be cheap for each entity, small enough to hold a few in memory.
const STREAM_MESSAGE: PageLimit = PageLimit { entities: PAGE_ENTITIES_MAX, bytes: 256 * 1024 };

/// GetEntity.
pub(super) async fn get(
    reader: &Reader,
    access: &Access,
    request: proto::GetEntityRequest,
) -> Result<proto::GetEntityResponse, Fault> {
    let mut violations = Violations::default();
    let table = TableName::parse(request.table, "table", &mut violations);
    let key = EntityKey::parse(request.partition_key, request.row_key, "", &mut violations);
    let select = Projection::parse(request.select, "select", &mut violations);
    let (table, key) = parse::finish(violations, table.zip(key))?;
    let (entity, cost) = reader.get(access, &table, key, select.as_ref()).await?;
    Ok(proto::GetEntityResponse { entity, cost: Some(render_cost(Scope::Point, cost)) })
}

/// QueryEntities.
pub(super) async fn page(
    reader: &Reader,
    access: Access,
    request: proto::QueryEntitiesRequest,
) -> Result<proto::QueryEntitiesResponse, Fault> {
    let mut violations = Violations::default();
    let entities = parse::page_size(request.page_size, &mut violations);
    let ask = parse_query(request.table, request.filter, request.select, &mut violations);
    let query = Query::new(access, parse::finish(violations, ask)?);
    let limit = PageLimit { entities, bytes: PAGE_BYTES_MAX };
    let page = reader.page(&query, &request.page_token, limit).await?;
    Ok(proto::QueryEntitiesResponse {
        entities: page.entities,
        next_page_token: page.next.unwrap_or_default(),
        cost: Some(render_cost(query.plan().scope, page.cost)),
    })
}

/// StreamEntities: a page a message, each on a snapshot of its own, so that a slow client holds nothing back.
pub(super) async fn stream(
    reader: &Reader,
    access: Access,
    request: proto::StreamEntitiesRequest,
    facts: Facts,
) -> Result<Responses<proto::StreamEntitiesResponse>, Fault> {
    let mut violations = Violations::default();
    let ask = parse_query(request.table, request.filter, request.select, &mut violations);
    let limit = parse_limit(request.limit, &mut violations);
    let ask = Ask { token_field: "resume_token", ..parse::finish(violations, ask)? };
    let mut streaming = Streaming {
        reader: reader.clone(),
        query: Query::new(access, ask),
        left: limit,
        token: request.resume_token,
        facts,
    };
    // The first message is read here, so that what is wrong with the request fails the call itself.
    let first = streaming.next().await?;
    Ok(outbox::responses(|outbox| async move {
        let mut message = first;
        loop {
            let last = message.resume_token.is_empty();
            outbox.send(message).await?;
            if last {
                return Ok(());
            }
            message = streaming.next_in_time(&outbox).await?;
        }
    }))
}

/// A stream under way.
struct Streaming {
    reader: Reader,
    query: Query,
    /// Entities that may still be sent.
    left: u64,
    token: String,
    facts: Facts,
}

impl Streaming {
    /// The next message. A stream that was begun slows down at a limit rather than fail.
    async fn next_in_time(
        &mut self,
        outbox: &Outbox<proto::StreamEntitiesResponse>,
    ) -> Result<proto::StreamEntitiesResponse, Status> {
        let mut left = QUOTA_WAIT_MAX;
        loop {
            match self.next().await {
                Err(TableError::OverQuota(over)) if over.wait <= left => {
                    left -= over.wait;
                    outbox.pause(over.wait).await?;
                }
                other => return Ok(other.map_err(Fault::from)?),
            }
        }
    }

    async fn next(&mut self) -> Result<proto::StreamEntitiesResponse, TableError> {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let limit = PageLimit { entities: STREAM_MESSAGE.entities.min(left), ..STREAM_MESSAGE };
        let Page { entities, next, cost } =
            self.reader.page(&self.query, &self.token, limit).await?;
        self.left = self.left.saturating_sub(cost.returned);
        self.token = next.filter(|_| self.left > 0).unwrap_or_default();
        let cost = Some(render_cost(self.query.plan().scope, cost));
        tell_cost(&self.facts, cost.as_ref());
        Ok(proto::StreamEntitiesResponse { entities, resume_token: self.token.clone(), cost })
    }
}

/// ExplainQuery.
pub(super) async fn explain(
    reader: &Reader,
    access: Access,
    request: proto::ExplainQueryRequest,
) -> Result<proto::ExplainQueryResponse, Fault> {
    let mut violations = Violations::default();
    let ask = parse_query(request.table, request.filter, request.select, &mut violations);
    let query = Query::new(access, parse::finish(violations, ask)?);
    // Without `analyze` a page of nothing still tells that the table is there.
    let entities = if request.analyze { PAGE_ENTITIES_MAX } else { 0 };
    let limit = PageLimit { entities, bytes: PAGE_BYTES_MAX };
    let page = reader.page(&query, "", limit).await?;
    let plan = query.plan();
    let range = plan.range.clone().unwrap_or_default();
    Ok(proto::ExplainQueryResponse {
        scope: render_scope(plan.scope).into(),
        start: range.start.map(render_edge),
        end: range.end.map(render_edge),
        residual_filter: plan.residual.as_ref().map(Filter::to_string).unwrap_or_default(),
        filter_properties: plan.filter_properties(),
        advice: plan.advice(query.selects()),
        cost: request.analyze.then(|| render_cost(plan.scope, page.cost)),
    })
}

fn parse_query(
    table: String,
    filter_text: String,
    select: Option<proto::PropertyMask>,
    violations: &mut Violations,
) -> Option<Ask> {
    let table = TableName::parse(table, "table", violations);
    let filter = parse::filter(Filter::parse(&filter_text), violations);
    let select = Projection::parse(select, "select", violations);
    Some(Ask { table: table?, filter: filter?, filter_text, select, token_field: "page_token" })
}

fn parse_limit(limit: Option<i64>, violations: &mut Violations) -> u64 {
    let Some(limit) = limit else { return u64::MAX };
    u64::try_from(limit).unwrap_or_else(|_| {
        let rule = format!("must be 0 or more: value=`{limit}`");
        violations.push(Reason::InvalidInput, "limit", rule);
        0
    })
}

fn render_cost(scope: Scope, cost: Cost) -> proto::QueryCost {
    proto::QueryCost {
        scope: render_scope(scope).into(),
        scanned: cost.scanned,
        returned: cost.returned,
        bytes: cost.bytes,
    }
}

fn render_scope(scope: Scope) -> proto::QueryScope {
    match scope {
        Scope::Point => proto::QueryScope::Point,
        Scope::RowRange => proto::QueryScope::RowRange,
        Scope::Partition => proto::QueryScope::Partition,
        Scope::PartitionRange => proto::QueryScope::PartitionRange,
        Scope::Table => proto::QueryScope::Table,
    }
}

fn render_edge(edge: KeyEdge) -> proto::KeyBound {
    proto::KeyBound {
        partition_key: edge.partition_key,
        row_key: edge.row_key,
        inclusive: edge.inclusive,
    }
}
