//! `explain`: the reads of a query plan.

use serde_json::json;
use trestle_proto::table::v1::{ExplainQueryRequest, ExplainQueryResponse, KeyBound};

use super::{TableContext, entities::mask};
use crate::{errors::CliError, output};

/// Prints the plan of a query, and with `analyze` the cost of its first page.
pub(super) async fn run(
    context: &mut TableContext,
    table: String,
    filter: String,
    select: Vec<String>,
    analyze: bool,
) -> Result<(), CliError> {
    let request = context.session.request(ExplainQueryRequest {
        table,
        filter,
        select: mask(select),
        analyze,
    });
    let plan = context.session.table().explain_query(request).await?.into_inner();
    context.output.either(&text(&plan), &object(&plan))
}

fn text(plan: &ExplainQueryResponse) -> String {
    let mut lines = vec![format!("scope:    {}", output::scope_name(plan.scope))];
    let bound = |bound: Option<&KeyBound>, edge: &str| {
        bound.map_or_else(|| format!("{edge} of the table"), bound_text)
    };
    lines.push(format!("from:     {}", bound(plan.start.as_ref(), "beginning")));
    lines.push(format!("to:       {}", bound(plan.end.as_ref(), "end")));
    let residual = &plan.residual_filter;
    lines.push(format!("filter:   {}", if residual.is_empty() { "none left" } else { residual }));
    if !plan.filter_properties.is_empty() {
        lines.push(format!("reads:    {}", plan.filter_properties.join(", ")));
    }
    lines.extend(plan.advice.iter().map(|advice| format!("advice:   {advice}")));
    lines.extend(plan.cost.iter().map(output::cost_text));
    lines.join("\n")
}

fn bound_text(bound: &KeyBound) -> String {
    let side = if bound.inclusive { "including" } else { "excluding" };
    match &bound.row_key {
        Some(row) => {
            format!("PartitionKey=`{}`, RowKey=`{row}`, {side} it", bound.partition_key)
        }
        None => format!("PartitionKey=`{}`, {side} it", bound.partition_key),
    }
}

fn object(plan: &ExplainQueryResponse) -> serde_json::Value {
    let bound = |bound: &Option<KeyBound>| {
        bound.as_ref().map(|bound| {
            json!({
                "partition_key": bound.partition_key,
                "row_key": bound.row_key,
                "inclusive": bound.inclusive,
            })
        })
    };
    json!({
        "scope": output::scope_name(plan.scope),
        "start": bound(&plan.start),
        "end": bound(&plan.end),
        "residual_filter": plan.residual_filter,
        "filter_properties": plan.filter_properties,
        "advice": plan.advice,
        "cost": plan.cost.as_ref().map(|cost| json!({
            "scope": output::scope_name(cost.scope),
            "scanned": cost.scanned,
            "returned": cost.returned,
            "bytes": cost.bytes,
        })),
    })
}
