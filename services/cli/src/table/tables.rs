//! `create`, `list` and `delete` of tables.

use serde_json::json;
use tonic::Code;
use trestle_proto::table::v1::{CreateTableRequest, DeleteTableRequest, ListTablesRequest, Table};

use super::TableContext;
use crate::{confirm::confirm, datetime, errors::CliError};

/// Creates a table.
pub(super) async fn create(
    context: &mut TableContext,
    table: String,
    if_not_exists: bool,
) -> Result<(), CliError> {
    let request = context.session.request(CreateTableRequest {
        table: Some(Table { name: table.clone(), ..Table::default() }),
    });
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
pub(super) async fn list(context: &mut TableContext, prefix: Option<&str>) -> Result<(), CliError> {
    let filter = prefix.map(prefix_filter).transpose()?.unwrap_or_default();
    let mut page_token = String::new();
    let mut printed = 0_u64;
    loop {
        let request = context.session.request(ListTablesRequest {
            filter: filter.clone(),
            page_size: None,
            page_token,
        });
        let page = context.session.table().list_tables(request).await?.into_inner();
        print(context, &page.tables, printed == 0)?;
        printed = printed.saturating_add(u64::try_from(page.tables.len()).unwrap_or_default());
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    if printed == 0 && !context.output.is_json() {
        context.output.line("no tables")?;
    }
    Ok(())
}

fn print(context: &mut TableContext, tables: &[Table], first: bool) -> Result<(), CliError> {
    let created = |table: &Table| table.create_time.as_ref().and_then(datetime::format);
    if context.output.is_json() {
        for table in tables {
            let object = json!({ "table": table.name, "create_time": created(table) });
            context.output.line(&object.to_string())?;
        }
        return Ok(());
    }
    if tables.is_empty() && first {
        return Ok(());
    }
    let rows: Vec<_> = tables
        .iter()
        .map(|table| vec![table.name.clone(), created(table).unwrap_or_default()])
        .collect();
    context.output.table(&["Table", "Created"], &rows)
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
    context: &mut TableContext,
    table: String,
    yes: bool,
) -> Result<(), CliError> {
    if !yes {
        let question = format!("Delete table {table} and everything in it");
        confirm("deleting a table", &question, "table", &table)?;
    }
    let request = context.session.request(DeleteTableRequest { table: table.clone() });
    context.session.table().delete_table(request).await?;
    context
        .output
        .either(&format!("deleted table {table}"), &json!({ "table": table, "deleted": true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_becomes_a_range_of_lower_case_names() {
        assert_eq!(prefix_filter("Log").unwrap(), "TableName ge 'log' and TableName lt 'loh'");
        assert_eq!(prefix_filter("z").unwrap(), "TableName ge 'z' and TableName lt '{'");
        assert_eq!(prefix_filter("a9").unwrap(), "TableName ge 'a9' and TableName lt 'a:'");
    }

    #[test]
    fn rejects_a_prefix_that_no_name_can_have() {
        for prefix in ["", "a'b", "é", "a b"] {
            assert!(matches!(prefix_filter(prefix), Err(CliError::Usage(_))), "{prefix}");
        }
    }
}
