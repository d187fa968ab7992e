//! `explain`: the reads of a query plan.

use serde_json::json;
use trestle_command::{errors::CliError, output};
use trestle_proto::table::v1::{ExplainQueryRequest, KeyBound};

use super::args::ExplainQueryArgs;
use super::{Context, entities::mask};

/// Prints the plan of a query, and with `analyze` the cost of its first page.
pub(super) async fn run(context: &mut Context, args: ExplainQueryArgs) -> Result<(), CliError> {
    let ExplainQueryArgs { table, filter, select, analyze } = args;
    let request = ExplainQueryRequest { table, filter, select: mask(select), analyze };
    let plan = context.session.table().explain_query(request).await?.into_inner();
    let bound = |bound: Option<KeyBound>| {
        bound.map(|bound| {
            json!({
                "partition_key": bound.partition_key, "row_key": bound.row_key,
                "inclusive": bound.inclusive,
            })
        })
    };
    let record = json!({
        "scope": output::scope_name(plan.scope),
        "start": bound(plan.start),
        "end": bound(plan.end),
        "residual_filter": plan.residual_filter,
        "filter_properties": plan.filter_properties,
        "advice": plan.advice,
        "no_match_reasons": plan.no_match_reasons,
        "cost": plan.cost.as_ref().map(output::cost_json),
    });
    context.output.record(["Query", ""], &record)
}
