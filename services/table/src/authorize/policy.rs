//! Stored access policies: what a signature that names one leaves to the table.

use trestle_identity::{
    access_policy::{self, Reference},
    caller::{Letters, TableGrant},
};
use trestle_proto::service::v1::AccessPolicy;
use trestle_service::{clock::Ticks, fault::Fault};

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
    access_policy::permissions(reference, policies, now)
}
