//! Which policies may be stored.

use trestle_proto::service::v1::AccessPolicy;

use trestle_model::fault::{Fault, Reason, Violations, quoted};
use trestle_model::limits::{ACCESS_POLICIES_MAX, ACCESS_POLICY_ID_CHARS_MAX};
use trestle_model::time::Ticks;
use trestle_model::xml;

/// Whether the policies of a resource, whose permissions are `letters` in that order, are valid to
/// be stored.
///
/// # Errors
/// Every broken rule, under `policies[n]`.
pub fn check(policies: &[AccessPolicy], letters: &str) -> Result<(), Fault> {
    let mut violations = Violations::default();
    let mut reject = |field: String, rule: String| {
        violations.push(Reason::InvalidAccessPolicy, field, rule);
    };
    if policies.len() > ACCESS_POLICIES_MAX {
        let count = policies.len();
        let rule = format!("must have at most {ACCESS_POLICIES_MAX} policies: count=`{count}`");
        reject("policies".to_owned(), rule);
    }
    for (index, policy) in policies.iter().enumerate().take(ACCESS_POLICIES_MAX) {
        let field = |name: &str| format!("policies[{index}].{name}");
        let id_chars = policy.id.chars().count();
        if id_chars == 0 || id_chars > ACCESS_POLICY_ID_CHARS_MAX {
            let rule = "must have 1 to 64 characters";
            reject(field("id"), format!("{rule}: value=`{}`", quoted(&policy.id)));
        }
        if policies.iter().take(index).any(|earlier| earlier.id == policy.id) {
            reject(field("id"), format!("must be unique: value=`{}`", quoted(&policy.id)));
        }
        let permissions = policy.permissions.as_deref().unwrap_or_default();
        if !is_subsequence(permissions, letters) {
            let rule = format!("must be letters of `{letters}`, in this order");
            reject(field("permissions"), format!("{rule}: value=`{}`", quoted(permissions)));
        }
        for (name, time) in [("start_time", policy.start_time), ("expiry_time", policy.expiry_time)]
        {
            if time.is_some_and(|time| Ticks::from_unix(time.seconds, time.nanos).is_none()) {
                let rule = "must be in the years 1 to 9999, in steps of 100 ns";
                reject(field(name), rule.to_owned());
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
