//! `create`, `list` and `delete` of tables.

use serde_json::json;
use tonic::Code;
use trestle_command::{
    confirm::{confirm, require_found},
    errors::CliError,
};
use trestle_proto::table::v1::{
    CreateTableRequest, DeleteTableRequest, GetTableRequest, ListTablesRequest, Table,
};

use super::Context;
use crate::datetime;

/// Creates a table.
pub(super) async fn create(
    context: &mut Context,
    table: String,
    if_not_exists: bool,
) -> Result<(), CliError> {
    let request =
        CreateTableRequest { table: Some(Table { name: table.clone(), ..Table::default() }) };
    match context.session.table().create_table(request).await {
        Ok(_) => context
            .output
            .either(&format!("created table {table}"), &json!({ "table": table, "created": true })),
        Err(status) if if_not_exists && status.code() == Code::AlreadyExists => {
            context.output.either(
                &format!("table {table} exists already"),
                &json!({ "table": table, "created": false }),
            )
        }
        Err(status) => Err(status.into()),
    }
}

/// Prints the tables whose names begin with `prefix`, in any case.
pub(super) async fn list(context: &mut Context, prefix: Option<&str>) -> Result<(), CliError> {
    let filter = prefix.map(prefix_filter).transpose()?.unwrap_or_default();
    let mut page_token = String::new();
    let mut printed = false;
    loop {
        let request = ListTablesRequest { filter: filter.clone(), page_size: None, page_token };
        let page = context.session.table().list_tables(request).await?.into_inner();
        let records: Vec<_> = page.tables.iter().map(record).collect();
        context.output.records(&records, &["table", "create_time"])?;
        printed |= !page.tables.is_empty();
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    context.output.unless_empty(printed, "no tables")
}

/// Prints a table.
pub(super) async fn get(context: &mut Context, table: String) -> Result<(), CliError> {
    let answer = context.session.table().get_table(GetTableRequest { table }).await?;
    let record = record(&answer.into_inner().table.unwrap_or_default());
    context.output.record(["Table", ""], &record)
}

fn record(table: &Table) -> serde_json::Value {
    let created = table.create_time.as_ref().and_then(datetime::format);
    json!({ "table": table.name, "create_time": created })
}

/// The names from the prefix up to the prefix with its last character raised by one.
fn prefix_filter(prefix: &str) -> Result<String, CliError> {
    let lower = prefix.to_ascii_lowercase();
    let allowed = lower.bytes().all(|c| c.is_ascii_alphanumeric());
    let (Some(last), true) = (lower.bytes().last(), allowed) else {
        return Err(CliError::Usage(format!(
            "prefix must be letters and digits: prefix=`{prefix}`"
        )));
    };
    let stem = lower.get(..lower.len().saturating_sub(1)).unwrap_or_default();
    let after = char::from(last.saturating_add(1));
    Ok(format!("TableName ge '{lower}' and TableName lt '{stem}{after}'"))
}

/// Deletes a table; prompts on a terminal unless `yes`.
pub(super) async fn delete(
    context: &mut Context,
    table: String,
    yes: bool,
) -> Result<(), CliError> {
    if !yes {
        let request = GetTableRequest { table: table.clone() };
        require_found(context.session.table().get_table(request).await)?;
    }
    confirm(yes, "deleting a table", "table", &table)?;
    let request = DeleteTableRequest { table: table.clone() };
    context.session.table().delete_table(request).await?;
    context
        .output
        .either(&format!("deleted table {table}"), &json!({ "table": table, "deleted": true }))
}

#[cfg(test)]
mod tests;
