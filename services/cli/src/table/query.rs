//! `query`: the entities that match a filter, as they arrive.

use trestle_command::{
    errors::CliError,
    output,
    scan::{TableScan, decoded},
};
use trestle_proto::table::v1::{QueryCost, StreamEntitiesRequest};

use super::args::QueryArgs;
use super::{Context, count, entities::mask, no_match};

/// Prints the matching entities.
pub(super) async fn run(context: &mut Context, args: QueryArgs) -> Result<(), CliError> {
    let (table, filter, select) = (args.table, args.filter, args.select);
    let request = StreamEntitiesRequest {
        table: table.clone(),
        filter: filter.clone(),
        select: mask(select.clone()),
        limit: args.limit.map(i64::from),
        resume_token: String::new(),
    };
    let (mut scan, mut total) = (TableScan::new(&context.session, request), QueryCost::default());
    while let Some(message) = scan.next().await? {
        context.output.entities(&decoded(&message)?, &select)?;
        context.output.flush()?;
        count::add(&mut total, &message);
    }
    if total.returned == 0 {
        context.output.no_entities(&select)?;
    }
    context.output.finish()?;
    if !context.output.is_json() {
        context.output.note(&output::counted(total.returned, "entity"));
    }
    if total.returned == 0 && args.limit != Some(0) {
        no_match::note(context, &table, &filter).await;
    }
    context.output.cost(args.cost, &total);
    Ok(())
}
