//! The rules of stored access policies, the same for every resource that has them: which policies may be stored,
//! and what a signature with a policy permits.
//!
//! Expiry and permissions must each be set exactly once, and a start at most once, in the signature or in the
//! policy. The gateway checked the times of the signature; this module checks those of the policy, in the same way. A
//! policy is read for every use, so a change or deletion takes effect with the next one.

pub mod recheck;
mod rules;
mod stored;

use trestle_proto::service::v1::AccessPolicy;

pub use self::{
    rules::check,
    stored::{CorruptPolicies, decode, encode},
};
use crate::{
    caller::{Letters, ResourceGrant},
    sas::START_SKEW,
};
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::time::Ticks;

/// The current permissions of a signature over a resource with these policies.
///
/// # Errors
/// A policy that is unknown, not valid now, or does not complete the signature; then the result of
/// the checks after it.
pub fn permissions(
    grant: &ResourceGrant,
    policies: &[AccessPolicy],
    now: Ticks,
) -> Result<Letters, Fault> {
    // An empty field sets nothing.
    let stated = grant.permissions.filter(|letters| !letters.is_empty());
    let Some(reference) = &grant.policy else {
        return Ok(stated.unwrap_or_default());
    };
    let failed = |what: &str| {
        let id = quoted(&reference.id);
        let message = format!("the server failed to authenticate the request: {what}");
        Fault::new(Reason::AuthenticationFailed, format!("{message}: policy=`{id}`"))
    };
    let policy = policies.iter().find(|policy| policy.id == reference.id);
    let policy = policy.ok_or_else(|| failed("the stored access policy does not exist"))?;
    let stored = policy.permissions.as_deref().filter(|letters| !letters.is_empty());
    for (name, in_signature, in_policy) in [
        ("start", reference.has_start, policy.start_time.is_some()),
        ("expiry", reference.has_expiry, policy.expiry_time.is_some()),
        ("permissions", stated.is_some(), stored.is_some()),
    ] {
        match (in_signature, in_policy) {
            (true, true) => {
                let what = "stated by the signature and by the stored access policy";
                return Err(failed(&format!("{name}: {what}")));
            }
            // Without a start it is valid at once, as a signature without a policy is.
            (false, false) if name != "start" => {
                let what = "stated neither by the signature nor by the stored access policy";
                return Err(failed(&format!("{name}: {what}")));
            }
            _ => {}
        }
    }
    let skew = i64::try_from(START_SKEW.as_secs()).unwrap_or(i64::MAX);
    let now = now.to_unix();
    let early = (now.0.saturating_add(skew), now.1);
    if policy.start_time.is_some_and(|start| early < (start.seconds, start.nanos)) {
        return Err(failed("the stored access policy is not valid yet"));
    }
    if policy.expiry_time.is_some_and(|expiry| now >= (expiry.seconds, expiry.nanos)) {
        return Err(failed("the stored access policy has expired"));
    }
    reference.passed()?;
    match (stated, stored) {
        (Some(letters), _) => Ok(letters),
        (None, stored) => Letters::parse(stored.unwrap_or_default())
            .ok_or_else(|| failed("the permissions of the stored access policy are not letters")),
    }
}
