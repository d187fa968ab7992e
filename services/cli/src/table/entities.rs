//! `insert`, `upsert`, `get` and `delete` of one entity.

use std::path::Path;

use prost::Message as _;
use prost_types::Timestamp;
use serde_json::json;
use trestle_proto::table::v1::{
    DeleteEntityRequest, Entity, GetEntityRequest, InsertEntityRequest, Property, PropertyMask,
    UpsertEntityRequest, Value, WriteMode,
};

use super::Context;
use crate::{
    args::{EntityArgs, UpsertMode},
    datetime,
    edm::{self, EdmType},
    entity_json,
    errors::CliError,
    files,
};

/// Largest entity that is read from standard input, in bytes of JSON.
const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The key of an entity.
pub(super) struct EntityAddress {
    pub(super) table: String,
    pub(super) partition_key: String,
    pub(super) row_key: String,
}

/// Inserts an entity.
pub(super) async fn insert(
    context: &mut Context,
    table: String,
    args: EntityArgs,
) -> Result<(), CliError> {
    let entity = Some(entity(args)?);
    let request = InsertEntityRequest { table, entity };
    let answer = context.session.table().insert_entity(request).await?.into_inner();
    written(context, "inserted", &answer.etag, answer.timestamp.as_ref())
}

/// Inserts an entity, or changes the existing one.
pub(super) async fn upsert(
    context: &mut Context,
    table: String,
    mode: UpsertMode,
    args: EntityArgs,
) -> Result<(), CliError> {
    let mode = match mode {
        UpsertMode::Merge => WriteMode::Merge,
        UpsertMode::Replace => WriteMode::Replace,
    };
    let entity = Some(entity(args)?);
    let message = UpsertEntityRequest { table, entity, mode: mode.into() };
    let request = message;
    let answer = context.session.table().upsert_entity(request).await?.into_inner();
    written(context, "written", &answer.etag, answer.timestamp.as_ref())
}

fn written(
    context: &mut Context,
    verb: &str,
    etag: &str,
    at: Option<&Timestamp>,
) -> Result<(), CliError> {
    let at = at.and_then(datetime::format);
    context
        .output
        .either(&format!("{verb}: etag={etag}"), &json!({ "etag": etag, "timestamp": at }))
}

/// Prints an entity.
pub(super) async fn get(
    context: &mut Context,
    key: EntityAddress,
    select: Vec<String>,
    cost: bool,
) -> Result<(), CliError> {
    let request = GetEntityRequest {
        table: key.table,
        partition_key: key.partition_key,
        row_key: key.row_key,
        select: mask(select),
    };
    let answer = context.session.table().get_entity(request).await?.into_inner();
    let entity =
        Entity::decode(answer.entity).map_err(|error| CliError::Protocol(error.to_string()))?;
    if context.output.is_json() {
        context.output.entities(std::slice::from_ref(&entity))?;
    } else {
        show(context, &entity)?;
    }
    if let (true, Some(cost)) = (cost, &answer.cost) {
        context.output.cost(cost);
    }
    Ok(())
}

/// One entity is printed vertically: a row for each property.
fn show(context: &mut Context, entity: &Entity) -> Result<(), CliError> {
    let row = |name: &str, edm: &str, value: &str| json!({ "property": name, "type": edm, "value": value });
    let at = entity.timestamp.as_ref().and_then(datetime::format).unwrap_or_default();
    let mut rows = vec![
        row("PartitionKey", "Edm.String", &entity.partition_key),
        row("RowKey", "Edm.String", &entity.row_key),
        row("Timestamp", "Edm.DateTime", &at),
        row("etag", "", &entity.etag),
    ];
    for property in &entity.properties {
        if let Some(kind) = property.value.as_ref().and_then(|value| value.kind.as_ref()) {
            let value = edm::format_value(kind).map_err(CliError::Protocol)?;
            rows.push(row(&property.name, EdmType::of(kind).name(), &value));
        }
    }
    context.output.records(&rows, &[])
}

/// Deletes an entity.
pub(super) async fn delete(
    context: &mut Context,
    key: EntityAddress,
    if_match: Option<String>,
) -> Result<(), CliError> {
    let request = DeleteEntityRequest {
        table: key.table,
        partition_key: key.partition_key,
        row_key: key.row_key,
        if_match,
    };
    context.session.table().delete_entity(request).await?;
    context.output.either("deleted", &json!({ "deleted": true }))
}

/// The properties to return; all when none is named.
pub(super) fn mask(select: Vec<String>) -> Option<PropertyMask> {
    (!select.is_empty()).then_some(PropertyMask { paths: select })
}

fn entity(args: EntityArgs) -> Result<Entity, CliError> {
    if let Some(json) = args.json_entity {
        let text = match json.as_str() {
            "-" => files::read_small(Path::new("-"), INPUT_BYTES_MAX)?,
            _ => json,
        };
        return entity_json::parse(text.trim().as_bytes())
            .map_err(|error| CliError::Usage(format!("entity is malformed: {error}")));
    }
    let (Some(partition_key), Some(row_key)) = (args.partition_key, args.row_key) else {
        return Err(CliError::Usage("--partition-key and --row-key are required".to_owned()));
    };
    let properties = args.set.iter().map(|text| property(text)).collect::<Result<_, _>>()?;
    Ok(Entity { partition_key, row_key, properties, ..Entity::default() })
}

/// Reads `name=text` and `name:Type=value`.
fn property(text: &str) -> Result<Property, CliError> {
    let fail = |rule: &str| CliError::Usage(format!("--set is malformed: `{text}`: {rule}"));
    let (left, value) = text.split_once('=').ok_or_else(|| fail("must be NAME[:TYPE]=VALUE"))?;
    let (name, edm) = match left.rsplit_once(':') {
        Some((name, edm)) => (name, edm::parse_type(edm).map_err(|rule| fail(&rule))?),
        None => (left, EdmType::String),
    };
    let kind = edm::parse_value(edm, value).map_err(|rule| fail(&rule))?;
    Ok(Property { name: name.to_owned(), value: Some(Value { kind: Some(kind) }) })
}

#[cfg(test)]
mod tests {
    use trestle_proto::table::v1::value::Kind;

    use super::*;

    #[test]
    fn properties_on_the_command_line_are_text_unless_a_type_is_given() {
        let kind = |text| property(text).unwrap().value.unwrap().kind.unwrap();

        assert_eq!(kind("a=5"), Kind::StringValue("5".to_owned()));
        assert_eq!(kind("a:Edm.Int64=5"), Kind::Int64Value(5));
        assert_eq!(kind("a:Int32=5"), Kind::Int32Value(5));
        assert_eq!(kind("a=x:y=z"), Kind::StringValue("x:y=z".to_owned()));
        assert_eq!(kind("a="), Kind::StringValue(String::new()));
    }

    #[test]
    fn malformed_properties_name_the_rule() {
        for (text, rule) in [
            ("a", "must be NAME[:TYPE]=VALUE"),
            ("a:Int16=1", "unknown type `Int16`"),
            ("a:Int32=x", "Edm.Int32: must be a whole number"),
        ] {
            let error = property(text).unwrap_err().to_string();
            assert!(error.contains(rule), "{error}");
        }
    }
}
