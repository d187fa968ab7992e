//! `query`: the entities that match a filter, as they arrive.

use trestle_command::{
    errors::CliError,
    output,
    scan::{TableScan, decoded},
};
use trestle_proto::table::v1::{QueryCost, StreamEntitiesRequest};

use super::args::QueryArgs;
use super::{Context, count, entities::mask};

/// Prints the matching entities.
pub(super) async fn run(context: &mut Context, args: QueryArgs) -> Result<(), CliError> {
    let select = args.select.clone();
    let request = StreamEntitiesRequest {
        table: args.table,
        filter: args.filter,
        select: mask(args.select),
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
    context.output.cost(args.cost, &total);
    Ok(())
}
