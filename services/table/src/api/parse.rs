//! From requests to our own types: every violation of a request is collected before it is rejected.

use trestle_filter::FilterError;
use trestle_model::etag::Condition;
use trestle_model::fault::{Fault, Reason, Violations, quoted};
use trestle_model::limits::PAGE_ENTITIES_MAX;
use trestle_model::name::TableName;
use trestle_proto::table::v1 as proto;

use crate::{
    entity::{Entity, EntityKey},
    operation::{EncodedEntity, EntityOperation, WriteMode},
    write::check_batch_count,
};

/// The name of a table to create.
pub(super) fn new_table(table: Option<proto::Table>) -> Result<TableName, Fault> {
    let mut violations = Violations::default();
    let Some(table) = table else {
        let rule = "required: the new table";
        return Err(Fault::violation(Reason::PropertiesNeedValue, "table", rule));
    };
    let name = TableName::parse(table.name, "table.name", &mut violations);
    finish(violations, name)
}

/// A table name alone.
pub(super) fn table(name: String) -> Result<TableName, Fault> {
    let mut violations = Violations::default();
    let table = TableName::parse(name, "table", &mut violations);
    finish(violations, table)
}

/// What was parsed, unless a rule was broken.
pub(super) fn finish<T>(violations: Violations, parsed: Option<T>) -> Result<T, Fault> {
    violations.check(())?;
    parsed.ok_or_else(|| Fault::new(Reason::InternalError, "a rejected value has no violation"))
}

/// A table and an insert into it.
pub(super) fn insert(
    request: proto::InsertEntityRequest,
) -> Result<(TableName, EntityOperation), Fault> {
    let mut violations = Violations::default();
    let table = TableName::parse(request.table, "table", &mut violations);
    let entity = prepared(request.entity, "entity", &mut violations);
    finish(violations, table.zip(entity.map(EntityOperation::Insert)))
}

/// A table and an update in it.
pub(super) fn update(
    request: proto::UpdateEntityRequest,
) -> Result<(TableName, EntityOperation), Fault> {
    let mut violations = Violations::default();
    let table = TableName::parse(request.table, "table", &mut violations);
    let update = proto::BatchUpdate {
        entity: request.entity,
        mode: request.mode,
        if_match: request.if_match,
    };
    let operation = update_operation(update, "", &mut violations);
    finish(violations, table.zip(operation))
}

/// A table and an upsert in it.
pub(super) fn upsert(
    request: proto::UpsertEntityRequest,
) -> Result<(TableName, EntityOperation), Fault> {
    let mut violations = Violations::default();
    let table = TableName::parse(request.table, "table", &mut violations);
    let upsert = proto::BatchUpsert { entity: request.entity, mode: request.mode };
    let operation = upsert_operation(upsert, "", &mut violations);
    finish(violations, table.zip(operation))
}

/// A table and a delete in it.
pub(super) fn delete(
    request: proto::DeleteEntityRequest,
) -> Result<(TableName, EntityOperation), Fault> {
    let mut violations = Violations::default();
    let table = TableName::parse(request.table, "table", &mut violations);
    let delete = proto::BatchDelete {
        partition_key: request.partition_key,
        row_key: request.row_key,
        if_match: request.if_match,
    };
    let operation = delete_operation(delete, "", &mut violations);
    finish(violations, table.zip(operation))
}

/// A table and the operations of a batch on it.
pub(super) fn batch(
    request: proto::ExecuteBatchRequest,
) -> Result<(TableName, Vec<EntityOperation>), Fault> {
    check_batch_count(request.operations.len())?;
    let mut violations = Violations::default();
    let table = TableName::parse(request.table, "table", &mut violations);
    let mut operations = Vec::with_capacity(request.operations.len());
    let mut failed = None;
    for (index, operation) in request.operations.into_iter().enumerate() {
        let prefix = format!("operations[{index}].");
        match batch_operation(operation, &prefix, &mut violations) {
            Some(operation) => operations.push(operation),
            None => failed = failed.or(Some(index)),
        }
    }
    let outcome = finish(violations, table);
    let table = outcome.map_err(|fault| failed.map_or(fault.clone(), |index| fault.at(index)))?;
    Ok((table, operations))
}

fn batch_operation(
    operation: proto::BatchOperation,
    prefix: &str,
    violations: &mut Violations,
) -> Option<EntityOperation> {
    use proto::batch_operation::Operation as Proto;
    let field = |name: &str| format!("{prefix}{name}.");
    match operation.operation {
        Some(Proto::Insert(insert)) => {
            prepared(insert.entity, &format!("{prefix}insert.entity"), violations)
                .map(EntityOperation::Insert)
        }
        Some(Proto::Update(update)) => update_operation(update, &field("update"), violations),
        Some(Proto::Upsert(upsert)) => upsert_operation(upsert, &field("upsert"), violations),
        Some(Proto::Delete(delete)) => delete_operation(delete, &field("delete"), violations),
        None => {
            let rule = "required: one of insert, update, upsert, delete";
            violations.push(Reason::PropertiesNeedValue, format!("{prefix}operation"), rule);
            None
        }
    }
}

fn update_operation(
    update: proto::BatchUpdate,
    prefix: &str,
    violations: &mut Violations,
) -> Option<EntityOperation> {
    let entity = prepared(update.entity, &format!("{prefix}entity"), violations);
    let mode = mode(update.mode, &format!("{prefix}mode"), violations);
    let condition = condition(update.if_match.as_deref(), prefix, violations);
    Some(EntityOperation::Update { entity: entity?, mode: mode?, condition: condition? })
}

fn upsert_operation(
    upsert: proto::BatchUpsert,
    prefix: &str,
    violations: &mut Violations,
) -> Option<EntityOperation> {
    let entity = prepared(upsert.entity, &format!("{prefix}entity"), violations);
    let mode = mode(upsert.mode, &format!("{prefix}mode"), violations);
    Some(EntityOperation::Upsert { entity: entity?, mode: mode? })
}

fn delete_operation(
    delete: proto::BatchDelete,
    prefix: &str,
    violations: &mut Violations,
) -> Option<EntityOperation> {
    let key = EntityKey::parse(delete.partition_key, delete.row_key, prefix, violations);
    let condition = condition(delete.if_match.as_deref(), prefix, violations);
    Some(EntityOperation::Delete { key: key?, condition: condition? })
}

/// An entity, checked and encoded.
pub(super) fn prepared(
    entity: Option<proto::Entity>,
    field: &str,
    violations: &mut Violations,
) -> Option<EncodedEntity> {
    let Some(entity) = entity else {
        violations.push(Reason::PropertiesNeedValue, field, "required: the entity");
        return None;
    };
    Entity::parse(entity, field, violations).map(EncodedEntity::new)
}

/// A write mode.
pub(super) fn mode(mode: i32, field: &str, violations: &mut Violations) -> Option<WriteMode> {
    match proto::WriteMode::try_from(mode) {
        Ok(proto::WriteMode::Replace) => Some(WriteMode::Replace),
        Ok(proto::WriteMode::Merge) => Some(WriteMode::Merge),
        Ok(proto::WriteMode::Unspecified) | Err(_) => {
            let rule = "must be WRITE_MODE_REPLACE or WRITE_MODE_MERGE";
            violations.push(Reason::InvalidInput, field, format!("{rule}: value=`{mode}`"));
            None
        }
    }
}

fn condition(
    if_match: Option<&str>,
    prefix: &str,
    violations: &mut Violations,
) -> Option<Condition> {
    let condition = Condition::parse(if_match);
    if condition.is_none() {
        let value = quoted(if_match.unwrap_or_default()).into_owned();
        let rule = format!("must be `*` or an etag that a response carried: value=`{value}`");
        violations.push(Reason::InvalidInput, format!("{prefix}if_match"), rule);
    }
    condition
}

/// The size of a page: absent for the largest, larger ones capped.
pub(super) fn page_size(size: Option<i32>, violations: &mut Violations) -> usize {
    let Some(size) = size else {
        return PAGE_ENTITIES_MAX;
    };
    match usize::try_from(size) {
        Ok(size) => size.min(PAGE_ENTITIES_MAX),
        Err(_) => {
            let rule = format!("must be 0 or more: value=`{size}`");
            violations.push(Reason::InvalidInput, "page_size", rule);
            0
        }
    }
}

/// A parsed filter, whose absence means every entity; none when the text was rejected.
#[expect(clippy::option_option, reason = "outer: rejected, inner: no filter")]
pub(super) fn filter<F>(
    parsed: Result<Option<F>, FilterError>,
    violations: &mut Violations,
) -> Option<Option<F>> {
    parsed.map_err(|error| violations.push(Reason::InvalidInput, "filter", error.to_string())).ok()
}

#[cfg(test)]
mod tests;
