//! Errors about entities in the words of the request: a property by its name, a key by that of the data model.

use tonic::Status;
use trestle_model::fault::{Reason, split_property_path, unescaped};

use crate::error::RestError;

/// The error of a call about one entity.
pub(super) fn of_entity(status: Status) -> RestError {
    RestError::from(status).with_fields(name)
}

/// The error of a call about the entities of a batch.
pub(super) fn of_batch(status: Status) -> RestError {
    let error = RestError::from(status);
    let key = key_of_batch(&error).map(str::to_owned);
    error.with_fields(|field| {
        let (_, rest) = field.strip_prefix("operations[")?.split_once(']')?;
        if rest.is_empty() {
            return key.clone();
        }
        // The position of the operation begins the whole text.
        let alone = || rest.trim_start_matches('.').split_once('.').map(|(_, own)| own.to_owned());
        name(field).or_else(alone)
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

/// The name of a member of an entity; none for other fields.
fn name(field: &str) -> Option<String> {
    // It is the last part, and its name may contain what a path consists of.
    let property = field.find("properties[").and_then(|at| split_property_path(field.get(at..)?));
    if let Some((escaped, "")) = property {
        return Some(unescaped(escaped));
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
    use trestle_model::fault::Fault;
    use trestle_rpc::status::{DOMAIN, IntoStatus as _};

    use super::*;

    fn rejected(field: &str) -> Status {
        Fault::violation(Reason::InvalidInput, field, "rule").at(1).into_status(DOMAIN)
    }

    #[test]
    fn a_property_has_its_name_and_a_key_that_of_the_data_model() {
        for (field, text) in [
            ("entity.properties[\"b-c\"]", "b-c: rule"),
            ("entity.partition_key", "PartitionKey: rule"),
            ("row_key", "RowKey: rule"),
            ("entity.properties", "body: rule"),
            ("entity.properties[\"a\\\"]b\"]", "a\"]b: rule"),
            ("if_match", "if_match: rule"),
        ] {
            let error = of_entity(rejected(field));
            assert_eq!(error.status.message(), text, "{field}");
        }
    }

    #[test]
    fn a_field_in_a_batch_has_no_position_of_its_operation() {
        for (field, text) in [
            ("operations[1].insert.entity.properties[\"y\"]", "y: rule"),
            ("operations[1].insert.entity.properties", "body: rule"),
            ("operations[1].insert.entity", "entity: rule"),
            ("operations[0].update.if_match", "if_match: rule"),
            ("operations", "operations: rule"),
        ] {
            assert_eq!(of_batch(rejected(field)).status.message(), text, "{field}");
        }
    }

    #[test]
    fn an_operation_that_is_invalid_in_its_batch_has_the_name_of_the_key() {
        let text = |reason| {
            let rejected =
                Fault::violation(reason, "operations[1]", "rule").at(1).into_status(DOMAIN);
            of_batch(rejected).status.message().to_owned()
        };

        assert_eq!(text(Reason::InvalidDuplicateRow), "RowKey: rule");
        assert_eq!(text(Reason::CommandsInBatchActOnDifferentPartitions), "PartitionKey: rule");
        assert_eq!(text(Reason::InvalidInput), "operations[1]: rule");
    }
}
