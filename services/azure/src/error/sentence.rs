//! The sentences of Azure for its error codes, which clients compare.

use trestle_model::fault::{Reason, reason_name};

/// One of the sentences of Azure for `InsufficientAccountPermissions`: of writes that no caller may do.
const NO_WRITES: &str = "Write operations are not allowed.";

/// The sentence for a reason whose code has several: the permissions of the caller are not the cause.
pub(super) fn of_reason(reason: &str) -> Option<&'static str> {
    let of_store =
        [Reason::StorageStopped, Reason::InsufficientStorage, Reason::StorageQuotaExceeded]
            .map(reason_name);
    of_store.contains(&reason).then_some(NO_WRITES)
}

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
        other => return of_request(other).or_else(|| of_access(other)),
    })
}

/// The sentences about the form of a request and its parts.
fn of_request(code: &str) -> Option<&'static str> {
    Some(match code {
        "InvalidInput" => "One of the request inputs is not valid.",
        "OutOfRangeInput" => "One of the request inputs is out of range.",
        "PropertyNameInvalid" => "The property name is invalid.",
        "PropertyNameTooLong" => "The property name exceeds the maximum allowed length.",
        "PropertyValueTooLarge" => {
            "The property value exceeds the maximum allowed size (64KB). If the property value is a \
             string, it is UTF-16 encoded and the maximum number of characters should be 32K or \
             less."
        }
        "TooManyProperties" => {
            "The entity contains more properties than allowed. Each entity can include up to 252 \
             properties to store data. Each entity also has 3 system properties."
        }
        "EntityTooLarge" => "The entity is larger than the maximum allowed size (1MB).",
        "DuplicatePropertiesSpecified" => "A property is specified more than one time.",
        "InvalidXmlDocument" => "XML specified is not syntactically valid.",
        "InvalidXmlNodeValue" => "The value for one of the XML nodes is not in the correct format.",
        "MissingRequiredXmlNode" => {
            "An XML node that's mandatory for this request is not specified."
        }
        "InvalidHeaderValue" => {
            "The value for one of the HTTP headers is not in the correct format."
        }
        "MissingRequiredHeader" => {
            "An HTTP header that's mandatory for this request is not specified."
        }
        "MissingContentLengthHeader" => "The Content-Length header was not specified.",
        "ConditionHeadersNotSupported" => "Condition headers are not supported.",
        "OutOfRangeQueryParameterValue" => {
            "One of the query parameters specified in the request URI is outside the permissible \
             range."
        }
        "MissingRequiredQueryParameter" => {
            "A query parameter that's mandatory for this request is not specified."
        }
        "InvalidMarker" => "The specified marker is invalid.",
        "InvalidMetadata" => {
            "The metadata specified is invalid. It has characters that are not permitted."
        }
        "EmptyMetadataKey" => "The key for one of the metadata key-value pairs is empty.",
        "MetadataTooLarge" => "The metadata specified exceeds the maximum permissible limit (8KB).",
        "InvalidUri" => "The requested URI does not represent any resource on the server.",
        "UnsupportedHttpVerb" => "The resource doesn't support specified Http Verb.",
        "XMethodNotUsingPost" => "X-HTTP-Method is used with an HTTP verb other than POST.",
        "XMethodIncorrectValue" => "The specified X-HTTP-Method is invalid.",
        "XMethodIncorrectCount" => "More than one X-HTTP-Method is specified.",
        "AtomFormatNotSupported" => "Atom format is not supported.",
        "MediaTypeNotSupported" => "None of the provided media types are supported.",
        "NotImplemented" => "The requested operation is not implemented on the specified resource.",
        _ => return None,
    })
}

/// The sentences about credentials and permissions.
fn of_access(code: &str) -> Option<&'static str> {
    Some(match code {
        "NoAuthenticationInformation" => {
            "Server failed to authenticate the request. Please refer to the information in the \
             www-authenticate header."
        }
        "InvalidAuthenticationInfo" => {
            "Authentication information is not given in the correct format. Check the value of \
             Authorization header."
        }
        "AuthorizationProtocolMismatch" => {
            "This request is not authorized to perform this operation using this protocol."
        }
        "AuthorizationResourceTypeMismatch" => {
            "This request is not authorized to perform this operation using this resource type."
        }
        "AuthorizationServiceMismatch" => {
            "This request is not authorized to perform this operation using this service."
        }
        "AuthorizationSourceIPMismatch" => {
            "This request is not authorized to perform this operation using this source IP."
        }
        "InsufficientAccountPermissions" => {
            "The account being accessed does not have sufficient permissions to execute this \
             operation."
        }
        "AccountIsDisabled" => "The specified account is disabled.",
        "CorsPreflightFailure" => "CORS not enabled or no matching rule found for this request.",
        _ => return None,
    })
}

/// Whether a text of ours begins with a sentence of Azure that is not that of its code.
pub(super) fn is_one(text: &str) -> bool {
    let starts = [
        "Syntax error at position ",
        "A required CORS header is not present.",
        NO_WRITES,
        "The number of keys specified in the URI ",
        "The batch request operation exceeds the maximum ",
    ];
    starts.iter().any(|start| text.starts_with(start))
}

/// Beginnings of texts of ours that repeat the fact of the sentence of their code.
fn repetitions(code: &str) -> &'static [&'static str] {
    match code {
        "TableAlreadyExists" => &["table exists"],
        "UnsupportedHttpVerb" => &["the resource does not support this verb"],
        "AccountIsDisabled" => &["the account is disabled"],
        "AuthenticationFailed" => &["the server failed to authenticate the request"],
        "DuplicatePropertiesSpecified" => {
            &["property is specified twice", "member is specified twice"]
        }
        "TooManyProperties" => &["entity has too many properties"],
        "EntityTooLarge" => &["entity is larger than 1 MiB"],
        "PropertyNameTooLong" => &["property name is too long"],
        "InvalidDuplicateRow" => &["an entity can appear only once"],
        "CommandsInBatchActOnDifferentPartitions" => &["all operations must be on one partition"],
        _ => &[],
    }
}

/// What a text adds to the sentence of a code.
pub(super) fn addition<'a>(code: &str, text: &'a str) -> &'a str {
    let behind = |start: &&str| {
        let rest = text.strip_prefix(start)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix(": ") }
    };
    repetitions(code).iter().find_map(behind).unwrap_or(text)
}

/// A sentence of Azure with the details of a text of ours, which often begins with the same sentence.
pub(super) fn with_details(sentence: &str, text: &str) -> String {
    match after(sentence, text) {
        _ if text.is_empty() => sentence.to_owned(),
        Some("") => sentence.to_owned(),
        Some(details) => format!("{sentence}\n{details}"),
        None => format!("{sentence}\n{text}"),
    }
}

/// What follows a sentence that a text begins with, in any case and without its final dot.
fn after<'a>(sentence: &str, text: &'a str) -> Option<&'a str> {
    let words = sentence.strip_suffix('.').unwrap_or(sentence);
    let (start, rest) = text.split_at_checked(words.len())?;
    // The sentence may end there, or be the beginning of a longer one.
    let ends = rest.is_empty() || rest.starts_with(['.', ':', ',', '\n']);
    let is_same = start.eq_ignore_ascii_case(words) && ends;
    is_same.then(|| rest.trim_start_matches(['.', ':', ',', ' ', '\n']))
}

/// Whether a field of a request names a table or a queue, also where it is created.
fn is_resource_name(field: &str) -> bool {
    matches!(field, "table" | "table.name" | "queue" | "queue.name")
}

#[cfg(test)]
mod tests;
