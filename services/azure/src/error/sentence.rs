//! The sentences of Azure for its error codes, which clients compare.

/// The sentence of a code in Azure, which clients compare; `field` is the invalid part.
pub(super) fn of(code: &str, field: Option<&str>) -> Option<&'static str> {
    Some(match code {
        "ResourceNotFound" => "The specified resource does not exist.",
        "TableNotFound" => "The table specified does not exist.",
        "TableAlreadyExists" => "The table specified already exists.",
        "EntityAlreadyExists" => "The specified entity already exists.",
        "UpdateConditionNotSatisfied" => {
            "The update condition specified in the request was not satisfied."
        }
        // The misspelling is what clients compare with.
        "InvalidResourceName" => "The specifed resource name contains invalid characters.",
        "OutOfRangeInput" if field.is_some_and(is_resource_name) => {
            "The specified resource name length is not within the permissible limits."
        }
        "InvalidInput" if field.is_some_and(|field| field.ends_with("if_match")) => {
            "The etag value specified in one of the request headers is not valid. Please make sure \
             only one etag value is specified and is valid."
        }
        "PropertiesNeedValue" => "The values are not specified for all properties in the entity.",
        "CommandsInBatchActOnDifferentPartitions" => {
            "All commands in a batch must operate on same entity group."
        }
        "InvalidDuplicateRow" => {
            "The batch request contains multiple changes with same row key. An entity can appear \
             only once in a batch request."
        }
        "InvalidQueryParameterValue" => {
            "Value for one of the query parameters specified in the request URI is invalid."
        }
        "AuthenticationFailed" => {
            "Server failed to authenticate the request. Make sure the value of the Authorization \
             header is formed correctly including the signature."
        }
        "AuthorizationFailure" => "This request is not authorized to perform this operation.",
        "AuthorizationPermissionMismatch" => {
            "This request is not authorized to perform this operation using this permission."
        }
        "RequestBodyTooLarge" => {
            "The request body is too large and exceeds the maximum permissible limit."
        }
        "QueueNotFound" => "The specified queue does not exist.",
        "QueueAlreadyExists" => "The specified queue already exists.",
        "MessageNotFound" => "The specified message does not exist.",
        "ServerBusy" => "The server is busy.",
        "OperationTimedOut" => "Operation could not be completed within the permitted time.",
        "InternalError" => "The server encountered an internal error. Please retry the request.",
        _ => return None,
    })
}

/// Whether a field of a request names a table or a queue, also where it is created.
fn is_resource_name(field: &str) -> bool {
    matches!(field, "table" | "table.name" | "queue" | "queue.name")
}
