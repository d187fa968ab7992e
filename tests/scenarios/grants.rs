//! Authorization by SAS, on a service that receives the caller from a gateway.

mod accounts;
mod letters;
mod policies;
mod ranges;

use tonic::Code;
use trestle_identity::{
    caller::{AccountGrant, Authority, KeyRange, Letters, PolicyRef, ResourceGrant},
    spec::TABLE,
};

const FAILURE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_FAILURE");
const NO_PERMISSION: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");
const NO_TYPE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_RESOURCE_TYPE_MISMATCH");
const NO_SERVICE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_SERVICE_MISMATCH");
const NOT_AUTHENTIC: (Code, &str) = (Code::Unauthenticated, "AUTHENTICATION_FAILED");
const TABLE_ABSENT: (Code, &str) = (Code::NotFound, "TABLE_NOT_FOUND");
const ENTITY_ABSENT: (Code, &str) = (Code::NotFound, "RESOURCE_NOT_FOUND");

fn letters(text: &str) -> Letters {
    Letters::parse(text).unwrap()
}

/// A signature over an account.
fn over_account(services: &str, resource_types: &str, permissions: &str) -> Authority {
    Authority::Account(AccountGrant {
        services: letters(services),
        resource_types: letters(resource_types),
        permissions: letters(permissions),
    })
}

/// A signature over a table, for a range of keys.
fn over_range(table: &str, permissions: &str, range: &KeyRange) -> Authority {
    let permissions = Some(letters(permissions));
    let (grant, bounds) = (ResourceGrant::new(&TABLE, "", table), range.to_fields());
    Authority::Resource(ResourceGrant { permissions, bounds, ..grant })
}

/// A signature over a table.
fn over_table(table: &str, permissions: &str) -> Authority {
    over_range(table, permissions, &KeyRange::default())
}

/// A SAS of a table whose stored access policy sets everything.
fn by_policy(table: &str, id: &str) -> Authority {
    let policy = PolicyRef { id: id.to_owned(), has_start: false, has_expiry: false, denied: None };
    let grant = ResourceGrant::new(&TABLE, "", table);
    Authority::Resource(ResourceGrant { policy: Some(policy), ..grant })
}

/// A range of keys; row keys where they are not empty.
fn keys(start: (&str, &str), end: (&str, &str)) -> KeyRange {
    let row = |row: &str| (!row.is_empty()).then(|| row.to_owned());
    KeyRange {
        start_partition_key: Some(start.0.to_owned()),
        start_row_key: row(start.1),
        end_partition_key: Some(end.0.to_owned()),
        end_row_key: row(end.1),
    }
}
