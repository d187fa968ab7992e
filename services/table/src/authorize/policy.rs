//! Stored access policies: what a signature that names one leaves to the table.

use trestle_identity::{
    access_policy::{self, Reference, Stated},
    caller::{Letters, TableGrant},
};
use trestle_proto::service::v1::AccessPolicy;
use trestle_service::{clock::Ticks, fault::Fault};

/// A policy as the rules that every service shares take it.
pub(crate) fn stated(policy: &AccessPolicy) -> Stated<'_> {
    Stated {
        id: &policy.id,
        start_time: policy.start_time,
        expiry_time: policy.expiry_time,
        permissions: policy.permissions.as_deref(),
    }
}

/// The permissions of a grant on a table with these policies, now.
///
/// # Errors
/// See [`access_policy::permissions`].
pub(crate) fn permissions(
    grant: &TableGrant,
    policies: &[AccessPolicy],
    now: Ticks,
) -> Result<Letters, Fault> {
    let reference = Reference { permissions: grant.permissions, policy: grant.policy.as_ref() };
    let stated: Vec<_> = policies.iter().map(stated).collect();
    access_policy::permissions(reference, &stated, now)
}
