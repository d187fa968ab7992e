//! `count`: how many entities match a filter, counted as they arrive.

use serde_json::json;
use trestle_command::{
    errors::CliError,
    output::{counted, thousands},
    scan::TableScan,
};
use trestle_proto::table::v1::{
    ExplainQueryRequest, QueryCost, StreamEntitiesRequest, StreamEntitiesResponse,
};

use super::{Context, args::CountArgs, entities::mask, no_match};

/// The only property that is returned: the smallest response that has an entry for each entity.
const COUNTED: &str = "PartitionKey";

/// Prints the number of matching entities.
pub(super) async fn run(context: &mut Context, args: CountArgs) -> Result<(), CliError> {
    let CountArgs { table, filter, partition_key, cost } = args;
    let filter = match partition_key {
        Some(partition_key) => {
            check(context, &table, &filter).await?;
            in_partition(&filter, &partition_key)
        }
        None => filter,
    };
    let select = mask(vec![COUNTED.to_owned()]);
    let request = StreamEntitiesRequest {
        table: table.clone(),
        filter: filter.clone(),
        select,
        limit: None,
        resume_token: String::new(),
    };
    let mut scan = TableScan::new(&context.session, request);
    let progress = context.output.progress(None, 0);
    let mut total = QueryCost::default();
    while let Some(message) = scan.next().await? {
        add(&mut total, &message);
        progress.tick();
        let (found, scanned) = (counted(total.returned, "entity"), thousands(total.scanned));
        progress.set_message(format!("{found} of {scanned} read"));
    }
    progress.finish_and_clear();
    let text = match context.output.is_table() {
        true => counted(total.returned, "entity"),
        false => total.returned.to_string(),
    };
    context.output.either(&text, &json!({ "table": &table, "entities": total.returned }))?;
    context.output.finish()?;
    if total.returned == 0 {
        no_match::note(context, &table, &filter).await;
    }
    context.output.cost(cost, &total);
    Ok(())
}

/// Rejects a filter that is malformed on its own: joined with another condition it could become a different one.
async fn check(context: &Context, table: &str, filter: &str) -> Result<(), CliError> {
    if filter.trim().is_empty() {
        return Ok(());
    }
    let (table, filter) = (table.to_owned(), filter.to_owned());
    let request = ExplainQueryRequest { table, filter, ..ExplainQueryRequest::default() };
    context.session.table().explain_query(request).await?;
    Ok(())
}

/// The filter for entities of one partition only.
fn in_partition(filter: &str, partition_key: &str) -> String {
    let partition = format!("PartitionKey eq '{}'", partition_key.replace('\'', "''"));
    match filter.trim() {
        "" => partition,
        filter => format!("{partition} and ({filter})"),
    }
}

/// Adds the entities and the cost of a message.
pub(super) fn add(total: &mut QueryCost, message: &StreamEntitiesResponse) {
    total.returned += u64::try_from(message.entities.len()).unwrap_or_default();
    if let Some(cost) = &message.cost {
        total.scope = cost.scope;
        total.scanned += cost.scanned;
        total.bytes += cost.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_joined_with_a_partition_whose_key_has_any_text() {
        assert_eq!(in_partition(" ", "c42"), "PartitionKey eq 'c42'");
        assert_eq!(
            in_partition("a eq 1 or b eq 2", "it's"),
            "PartitionKey eq 'it''s' and (a eq 1 or b eq 2)"
        );
    }

    #[test]
    fn the_cost_of_a_count_is_that_of_all_its_messages() {
        let cost = QueryCost { scope: 3, scanned: 10, returned: 2, bytes: 100 };
        let entities = vec![Vec::new().into(); 2];
        let message = StreamEntitiesResponse { entities, cost: Some(cost), ..Default::default() };
        let mut total = QueryCost::default();

        add(&mut total, &message);
        add(&mut total, &message);

        assert_eq!(total, QueryCost { scope: 3, scanned: 20, returned: 4, bytes: 200 });
    }
}
