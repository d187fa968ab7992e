//! Errors about entities in the words of the request: a property by its name, where gRPC has its
//! position in the message.

use tonic::Status;
use trestle_proto::table::v1::{BatchOperation, Entity, batch_operation};
use trestle_service::fault::{Reason, quoted};

use crate::error::RestError;

/// The error of a call about one entity; none if the call has only its key.
pub(super) fn of_entity(status: Status, entity: Option<&Entity>) -> RestError {
    RestError::from(status).with_fields(|field| name(field, entity))
}

/// The error of a call about the entities of a batch.
pub(super) fn of_batch(status: Status, operations: &[BatchOperation]) -> RestError {
    let error = RestError::from(status);
    let key = key_of_batch(&error).map(str::to_owned);
    error.with_fields(|field| {
        let (index, rest) = field.strip_prefix("operations[")?.split_once(']')?;
        if rest.is_empty() {
            return key.clone();
        }
        let named = name(field, operations.get(index.parse::<usize>().ok()?).and_then(entity));
        // The position of the operation begins the whole text.
        let alone = || rest.trim_start_matches('.').split_once('.').map(|(_, own)| own.to_owned());
        named.or_else(alone)
    })
}

/// The key that makes an operation invalid in its batch.
fn key_of_batch(error: &RestError) -> Option<&'static str> {
    let keys = [
        (Reason::CommandsInBatchActOnDifferentPartitions, "PartitionKey"),
        (Reason::InvalidDuplicateRow, "RowKey"),
    ];
    keys.into_iter().find(|(reason, _)| error.is(*reason)).map(|(_, key)| key)
}

fn entity(operation: &BatchOperation) -> Option<&Entity> {
    use batch_operation::Operation as Proto;
    match operation.operation.as_ref()? {
        Proto::Insert(insert) => insert.entity.as_ref(),
        Proto::Update(update) => update.entity.as_ref(),
        Proto::Upsert(upsert) => upsert.entity.as_ref(),
        Proto::Delete(_) => None,
    }
}

/// The name of a member of an entity; none for other fields.
fn name(field: &str, entity: Option<&Entity>) -> Option<String> {
    if let Some((_, at)) = field.split_once("properties[") {
        let (index, _) = at.split_once(']')?;
        let property = entity?.properties.get(index.parse::<usize>().ok()?)?;
        return Some(quoted(&property.name).into_owned());
    }
    match field.rsplit('.').next()? {
        "partition_key" => Some("PartitionKey".to_owned()),
        "row_key" => Some("RowKey".to_owned()),
        // All of them are the body of a request.
        "properties" => Some("body".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use trestle_proto::table::v1::{BatchInsert, Property};
    use trestle_service::fault::{Fault, Reason};

    use super::*;

    fn entity_of(names: &[&str]) -> Entity {
        let property = |name: &&str| Property { name: (*name).to_owned(), value: None };
        Entity { properties: names.iter().map(property).collect(), ..Entity::default() }
    }

    fn rejected(field: &str) -> Status {
        Fault::violation(Reason::InvalidInput, field, "rule").at(1).into()
    }

    #[test]
    fn a_property_has_its_name_and_a_key_that_of_the_data_model() {
        let entity = entity_of(&["a", "b-c"]);
        for (field, text) in [
            ("entity.properties[1].name", "b-c: rule"),
            ("entity.partition_key", "PartitionKey: rule"),
            ("row_key", "RowKey: rule"),
            ("entity.properties", "body: rule"),
            ("entity.properties[2].name", "entity.properties[2].name: rule"),
            ("if_match", "if_match: rule"),
        ] {
            let error = of_entity(rejected(field), Some(&entity));
            assert_eq!(error.status.message(), text, "{field}");
        }
    }

    #[test]
    fn a_property_in_a_batch_is_that_of_its_operation() {
        let insert = |names: &[&str]| {
            let entity = Some(entity_of(names));
            let operation = Some(batch_operation::Operation::Insert(BatchInsert { entity }));
            BatchOperation { operation }
        };
        let operations = [insert(&["x"]), insert(&["y"])];

        let error =
            of_batch(rejected("operations[1].insert.entity.properties[0].value"), &operations);

        assert_eq!(error.status.message(), "y: rule");
        for (field, text) in [
            ("operations[1].insert.entity.properties", "body: rule"),
            ("operations[1].insert.entity", "entity: rule"),
            ("operations[0].update.if_match", "if_match: rule"),
            ("operations", "operations: rule"),
        ] {
            assert_eq!(of_batch(rejected(field), &operations).status.message(), text, "{field}");
        }
    }

    #[test]
    fn an_operation_that_is_invalid_in_its_batch_has_the_name_of_the_key() {
        let text = |reason| {
            let rejected = Fault::violation(reason, "operations[1]", "rule").at(1).into();
            of_batch(rejected, &[]).status.message().to_owned()
        };

        assert_eq!(text(Reason::InvalidDuplicateRow), "RowKey: rule");
        assert_eq!(text(Reason::CommandsInBatchActOnDifferentPartitions), "PartitionKey: rule");
        assert_eq!(text(Reason::InvalidInput), "operations[1]: rule");
    }
}
