//! `insert`, `upsert`, `get` and `delete` of one entity.

use std::path::Path;

use prost::Message as _;
use prost_types::Timestamp;
use serde_json::json;
use trestle_command::{entity_json, errors::CliError, files, output::OutputFormat, type_names};
use trestle_proto::table::v1::{
    DeleteEntityRequest, Entity, GetEntityRequest, InsertEntityRequest, Property, PropertyMask,
    UpdateEntityRequest, UpsertEntityRequest, Value, WriteMode,
};

use super::Context;
use super::args::{
    DeleteEntityArgs, EntityArgs, EntityKeyArgs, GetEntityArgs, InsertEntityArgs, UpsertMode,
    WriteEntityArgs,
};
use crate::{
    datetime,
    edm::{self, EdmType},
};

/// Largest entity that is read from standard input, in bytes of JSON.
const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Inserts an entity.
pub(super) async fn insert(context: &mut Context, args: InsertEntityArgs) -> Result<(), CliError> {
    let request = InsertEntityRequest { table: args.table, entity: Some(entity(args.entity)?) };
    let answer = context.session.table().insert_entity(request).await?.into_inner();
    written(context, "inserted", &answer.etag, answer.timestamp.as_ref())
}

/// Inserts an entity, or changes the existing one.
pub(super) async fn upsert(context: &mut Context, args: WriteEntityArgs) -> Result<(), CliError> {
    let (mode, entity) = (mode(args.mode).into(), Some(entity(args.entity)?));
    let request = UpsertEntityRequest { table: args.table, entity, mode };
    let answer = context.session.table().upsert_entity(request).await?.into_inner();
    written(context, "written", &answer.etag, answer.timestamp.as_ref())
}

/// Changes an existing entity.
pub(super) async fn update(
    context: &mut Context,
    args: WriteEntityArgs,
    if_match: Option<String>,
) -> Result<(), CliError> {
    let (mode, entity) = (mode(args.mode).into(), Some(entity(args.entity)?));
    let request = UpdateEntityRequest { table: args.table, entity, mode, if_match };
    let answer = context.session.table().update_entity(request).await?.into_inner();
    written(context, "updated", &answer.etag, answer.timestamp.as_ref())
}

fn mode(mode: UpsertMode) -> WriteMode {
    match mode {
        UpsertMode::Merge => WriteMode::Merge,
        UpsertMode::Replace => WriteMode::Replace,
    }
}

fn key(key: EntityKeyArgs) -> Result<(String, String), CliError> {
    let rule = "the partition key and the row key are required, in this order or as \
                --partition-key and --row-key";
    key.given().ok_or_else(|| CliError::Usage(rule.to_owned()))
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
pub(super) async fn get(context: &mut Context, args: GetEntityArgs) -> Result<(), CliError> {
    let GetEntityArgs { table, key: keys, select, cost } = args;
    let (partition_key, row_key) = key(keys)?;
    let request = GetEntityRequest { table, partition_key, row_key, select: mask(select.clone()) };
    let answer = context.session.table().get_entity(request).await?.into_inner();
    let entity =
        Entity::decode(answer.entity).map_err(|error| CliError::Protocol(error.to_string()))?;
    match context.output.format() {
        OutputFormat::Table => {
            let row = |(name, edm, value)| json!({ "property": name, "type": edm, "value": value });
            let rows: Vec<_> = fields(&entity)?.into_iter().map(row).collect();
            context.output.whole(&rows)?;
        }
        OutputFormat::Plain => {
            let fields = fields(&entity)?.into_iter();
            context.output.fields(fields.map(|(name, _, value)| (name.to_owned(), value)))?;
        }
        OutputFormat::Json | OutputFormat::Jsonl | OutputFormat::Csv => {
            context.output.entity(&entity, &select)?;
        }
    }
    if let Some(found) = &answer.cost {
        context.output.cost(cost, found);
    }
    Ok(())
}

/// The name, type and value of each field of an entity, which is printed vertically.
fn fields(entity: &Entity) -> Result<Vec<(&str, &'static str, String)>, CliError> {
    let at = entity.timestamp.as_ref().and_then(datetime::format).unwrap_or_default();
    let mut fields = vec![
        ("PartitionKey", "Edm.String", entity.partition_key.clone()),
        ("RowKey", "Edm.String", entity.row_key.clone()),
        ("Timestamp", "Edm.DateTime", at),
        ("etag", "", entity.etag.clone()),
    ];
    for property in &entity.properties {
        if let Some(kind) = property.value.as_ref().and_then(|value| value.kind.as_ref()) {
            let value = edm::format_value(kind).map_err(CliError::Protocol)?;
            fields.push((&property.name, EdmType::of(kind).name(), value.into_owned()));
        }
    }
    Ok(fields)
}

/// Deletes an entity.
pub(super) async fn delete(context: &mut Context, args: DeleteEntityArgs) -> Result<(), CliError> {
    let DeleteEntityArgs { table, key: keys, if_match } = args;
    let (partition_key, row_key) = key(keys)?;
    let request = DeleteEntityRequest { table, partition_key, row_key, if_match };
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
    let (partition_key, row_key) = key(args.key)?;
    let properties =
        args.set.iter().map(|text| property("--set", text)).collect::<Result<_, _>>()?;
    Ok(Entity { partition_key, row_key, properties, ..Entity::default() })
}

/// Reads `name=text` and `name:Type=value` of a flag.
pub(super) fn property(flag: &str, text: &str) -> Result<Property, CliError> {
    let fail = |rule: &str| CliError::Usage(format!("{flag} is malformed: `{text}`: {rule}"));
    let (left, value) = text.split_once('=').ok_or_else(|| fail("must be NAME[:TYPE]=VALUE"))?;
    let (name, edm) = match left.rsplit_once(':') {
        Some((name, edm)) => (name, type_names::parse(edm, |_| true).map_err(|rule| fail(&rule))?),
        None => (left, EdmType::String),
    };
    let kind = edm::parse_value(edm, value).map_err(|rule| fail(&rule))?;
    Ok(Property { name: name.to_owned(), value: Some(Value { kind: Some(kind) }) })
}

#[cfg(test)]
mod tests;
