//! `query`: the entities that match a filter, by one stream or page by page.

use trestle_proto::table::v1::{
    QueryCost, QueryEntitiesRequest, StreamEntitiesRequest, stored::decode_entities,
};

use super::{TableContext, entities::mask};
use crate::{args::QueryArgs, errors::CliError, output, scan::TableScan};

/// Prints the matching entities as they arrive.
pub(super) async fn run(context: &mut TableContext, args: QueryArgs) -> Result<(), CliError> {
    let with_cost = args.cost;
    let total = match args.page_size {
        Some(size) => by_pages(context, args, size).await?,
        None => by_stream(context, args).await?,
    };
    context.output.flush()?;
    if !context.output.is_json() {
        output::report_line(&output::counted(total.returned, "entity"));
    }
    if with_cost {
        context.output.cost(&total);
    }
    Ok(())
}

async fn by_stream(context: &mut TableContext, args: QueryArgs) -> Result<QueryCost, CliError> {
    let mut scan = TableScan::new(
        &context.session,
        StreamEntitiesRequest {
            table: args.table,
            filter: args.filter,
            select: mask(args.select),
            limit: args.top.map(i64::from),
            resume_token: String::new(),
        },
    );
    let mut total = QueryCost::default();
    while let Some(message) = scan.next().await? {
        print(context, &message.entities)?;
        add(&mut total, message.cost.as_ref(), message.entities.len());
    }
    Ok(total)
}

async fn by_pages(
    context: &mut TableContext,
    args: QueryArgs,
    size: u32,
) -> Result<QueryCost, CliError> {
    let mut total = QueryCost::default();
    let mut left = args.top;
    let select = mask(args.select);
    let mut page_token = String::new();
    loop {
        let page_size = left.map_or(size, |left| left.min(size));
        let request = context.session.request(QueryEntitiesRequest {
            table: args.table.clone(),
            filter: args.filter.clone(),
            select: select.clone(),
            page_size: i32::try_from(page_size).ok(),
            page_token,
        });
        let page = context.session.table().query_entities(request).await?.into_inner();
        print(context, &page.entities)?;
        add(&mut total, page.cost.as_ref(), page.entities.len());
        let returned = u32::try_from(page.entities.len()).unwrap_or(u32::MAX);
        left = left.map(|left| left.saturating_sub(returned));
        if page.next_page_token.is_empty() || left == Some(0) {
            return Ok(total);
        }
        page_token = page.next_page_token;
    }
}

fn print(context: &mut TableContext, encoded: &[bytes::Bytes]) -> Result<(), CliError> {
    let entities =
        decode_entities(encoded).map_err(|error| CliError::Protocol(error.to_string()))?;
    context.output.entities(&entities)?;
    context.output.flush()
}

fn add(total: &mut QueryCost, cost: Option<&QueryCost>, returned: usize) {
    total.returned = total.returned.saturating_add(u64::try_from(returned).unwrap_or_default());
    if let Some(cost) = cost {
        total.scope = cost.scope;
        total.scanned = total.scanned.saturating_add(cost.scanned);
        total.bytes = total.bytes.saturating_add(cost.bytes);
    }
}
