//! Authorization that is the same for every service: pure checks of a grant against what an operation needs.

use crate::{
    caller::{AccountGrant, Letters, ResourceGrant},
    spec::ServiceSpec,
};
use trestle_model::fault::{Fault, Reason};

/// What an operation needs of an account SAS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountNeed {
    /// One of these resource types.
    pub resource_types: &'static str,
    /// One letter of each.
    pub permissions: &'static [&'static str],
}

impl AccountNeed {
    /// Whether a grant has it. Without a need no account SAS suffices.
    ///
    /// # Errors
    /// The first of service, resource type and permission that is missing.
    pub fn check(
        need: Option<Self>,
        grant: &AccountGrant,
        service: &ServiceSpec,
    ) -> Result<(), Fault> {
        check_service(grant, service)?;
        let need = need.ok_or_else(never)?;
        check_resource_type(grant, need.resource_types)?;
        need.permissions.iter().try_for_each(|one_of| check_one_of(grant.permissions, one_of))
    }
}

/// Whether an account SAS is for a service.
///
/// # Errors
/// The error that names the service.
pub fn check_service(grant: &AccountGrant, service: &ServiceSpec) -> Result<(), Fault> {
    if grant.services.has(service.letter) { Ok(()) } else { Err(wrong_service(service)) }
}

/// Whether an account SAS has one of these resource types.
///
/// # Errors
/// The error that names the types.
pub fn check_resource_type(grant: &AccountGrant, one_of: &str) -> Result<(), Fault> {
    if has_one_of(grant.resource_types, one_of) {
        return Ok(());
    }
    let message =
        format!("the signature is not for this type of resource: required one of=`{one_of}`");
    Err(Fault::new(Reason::AuthorizationResourceTypeMismatch, message))
}

/// Whether a grant is for this resource of a service, or for one above it.
///
/// # Errors
/// Another service or resource.
pub fn check_resource(
    grant: &ResourceGrant,
    service: &ServiceSpec,
    name: &str,
) -> Result<(), Fault> {
    if !grant.is_of(service) {
        return Err(wrong_service(service));
    }
    if grant.covers(service, name) {
        return Ok(());
    }
    Err(not_authorized(&format!("the signature is for another {}", service.container)))
}

/// Whether one of these permissions is granted.
///
/// # Errors
/// The error that names them.
pub fn check_one_of(granted: Letters, one_of: &str) -> Result<(), Fault> {
    if has_one_of(granted, one_of) {
        return Ok(());
    }
    Err(no_permission(&format!("required one of=`{one_of}`")))
}

/// Whether all of these permissions are granted.
///
/// # Errors
/// The error that names them.
pub fn check_all_of(granted: Letters, all_of: &str) -> Result<(), Fault> {
    if all_of.chars().all(|letter| granted.has(letter)) {
        return Ok(());
    }
    Err(no_permission(&format!("required all of=`{all_of}`")))
}

/// The error of a grant for another service.
#[must_use]
pub fn wrong_service(service: &ServiceSpec) -> Fault {
    let letter = service.letter;
    let message = format!("the signature is not for this service: required=`{letter}`");
    Fault::new(Reason::AuthorizationServiceMismatch, message)
}

/// The error of a call that no signature of its kind permits.
#[must_use]
pub fn never() -> Fault {
    not_authorized("a shared access signature of this kind never allows it")
}

/// The message of a call without credentials: the same for an account that there is, and one that there is not.
pub const NO_CREDENTIALS: &str =
    "the call has no credentials: `authorization` or a shared access signature is required";

/// The error of a call that needs credentials, and has none.
#[must_use]
pub fn anonymous() -> Fault {
    Fault::new(Reason::NoAuthenticationInformation, NO_CREDENTIALS)
}

/// The error of a call that is not authorized.
#[must_use]
pub fn not_authorized(why: &str) -> Fault {
    let message = format!("this request is not authorized to perform this operation: {why}");
    Fault::new(Reason::AuthorizationFailure, message)
}

fn has_one_of(letters: Letters, one_of: &str) -> bool {
    one_of.chars().any(|letter| letters.has(letter))
}

fn no_permission(required: &str) -> Fault {
    let message = format!("the signature lacks a permission: {required}");
    Fault::new(Reason::AuthorizationPermissionMismatch, message)
}
