//! The rules of stored access policies, the same for every resource that has them: which policies may be stored,
//! and what a signature with a policy permits.
//!
//! Expiry and permissions must each be set exactly once, and a start at most once, in the signature or in the
//! policy. The gateway checked the times of the signature; those of the policy are checked here, in the same way. A
//! policy is read for every use, so a change or deletion takes effect with the next one.

mod stored;

use trestle_proto::service::v1::AccessPolicy;

pub use self::stored::{CorruptPolicies, decode, encode};
use crate::{
    caller::{Letters, PolicyRef},
    sas::START_SKEW,
};
use trestle_service::{
    clock::Ticks,
    fault::{Fault, Reason, Violations, quoted},
    limits::{ACCESS_POLICIES_MAX, ACCESS_POLICY_ID_CHARS_MAX},
    xml,
};

/// The terms of a signature over a resource that a stored access policy completes.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    /// The permissions in the signature.
    pub permissions: Option<Letters>,
    /// The policy that the signature references.
    pub policy: Option<&'a PolicyRef>,
}

/// The current permissions of a signature over a resource with these policies.
///
/// # Errors
/// A policy that is unknown, not valid now, or does not complete the signature; then the result of
/// the checks after it.
pub fn permissions(
    reference: Reference<'_>,
    policies: &[AccessPolicy],
    now: Ticks,
) -> Result<Letters, Fault> {
    // An empty field sets nothing.
    let stated = reference.permissions.filter(|letters| !letters.is_empty());
    let Some(reference) = reference.policy else {
        return Ok(stated.unwrap_or_default());
    };
    let failed = |what: &str| {
        let id = quoted(&reference.id);
        let message = format!("the server failed to authenticate the request: {what}");
        Fault::new(Reason::AuthenticationFailed, format!("{message}: policy=`{id}`"))
    };
    let policy = policies.iter().find(|policy| policy.id == reference.id);
    let policy = policy.ok_or_else(|| failed("there is no such stored access policy"))?;
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
            .ok_or_else(|| failed("the permissions of the stored access policy are no letters")),
    }
}

/// Whether the policies of a resource, whose permissions are `letters` in that order, are valid to
/// be stored.
///
/// # Errors
/// Every broken rule, under `policies[n]`.
pub fn check(policies: &[AccessPolicy], letters: &str) -> Result<(), Fault> {
    let mut violations = Violations::default();
    let mut refuse = |field: String, rule: String| {
        violations.push(Reason::InvalidXmlDocument, field, rule);
    };
    if policies.len() > ACCESS_POLICIES_MAX {
        let count = policies.len();
        let rule = format!("must have at most {ACCESS_POLICIES_MAX} policies: count=`{count}`");
        refuse("policies".to_owned(), rule);
    }
    for (index, policy) in policies.iter().enumerate().take(ACCESS_POLICIES_MAX) {
        let field = |name: &str| format!("policies[{index}].{name}");
        let id_chars = policy.id.chars().count();
        if id_chars == 0 || id_chars > ACCESS_POLICY_ID_CHARS_MAX {
            let rule = "must have 1 to 64 characters";
            refuse(field("id"), format!("{rule}: value=`{}`", quoted(&policy.id)));
        }
        if policies.iter().take(index).any(|earlier| earlier.id == policy.id) {
            refuse(field("id"), format!("must be unique: value=`{}`", quoted(&policy.id)));
        }
        let permissions = policy.permissions.as_deref().unwrap_or_default();
        if !is_subsequence(permissions, letters) {
            let rule = format!("must be letters of `{letters}`, in this order");
            refuse(field("permissions"), format!("{rule}: value=`{}`", quoted(permissions)));
        }
        for (name, time) in [("start_time", policy.start_time), ("expiry_time", policy.expiry_time)]
        {
            if time.is_some_and(|time| Ticks::from_unix(time.seconds, time.nanos).is_none()) {
                let rule = "must be in the years 1 to 9999, in steps of 100 ns";
                refuse(field(name), rule.to_owned());
            }
        }
    }
    check_characters(policies, &mut violations);
    violations.check(())
}

/// Rejects ids that REST cannot represent.
fn check_characters(policies: &[AccessPolicy], violations: &mut Violations) {
    for (index, policy) in policies.iter().enumerate().take(ACCESS_POLICIES_MAX) {
        if !policy.id.chars().all(xml::is_allowed) {
            let rule = "must have only characters that XML 1.0 can carry";
            let rule = format!("{rule}: value=`{}`", quoted(&policy.id));
            violations.push(Reason::InvalidInput, format!("policies[{index}].id"), rule);
        }
    }
}

fn is_subsequence(text: &str, of: &str) -> bool {
    let mut letters = of.chars();
    text.chars().all(|letter| letters.any(|candidate| candidate == letter))
}
