//! The rules of stored access policies, the same for every resource that has them.

use prost_types::Timestamp;

use crate::{
    clock::Ticks,
    fault::{Fault, Reason, Violations, quoted},
    limits::{ACCESS_POLICIES_MAX, ACCESS_POLICY_ID_CHARS_MAX},
};

/// A policy as a contract states it.
#[derive(Debug, Clone, Copy)]
pub struct Stated<'a> {
    /// 1 to 64 characters, unique in the resource.
    pub id: &'a str,
    /// When it begins.
    pub start_time: Option<Timestamp>,
    /// When it ends.
    pub expiry_time: Option<Timestamp>,
    /// Letters of the resource, in their order.
    pub permissions: Option<&'a str>,
}

/// Whether the policies of a resource, whose permissions are `letters` in that order, may be
/// stored.
///
/// # Errors
/// Every broken rule, under `policies[n]`.
pub fn check(policies: &[Stated<'_>], letters: &str) -> Result<(), Fault> {
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
            refuse(field("id"), format!("{rule}: value=`{}`", quoted(policy.id)));
        }
        if policies.iter().take(index).any(|earlier| earlier.id == policy.id) {
            refuse(field("id"), format!("must be unique: value=`{}`", quoted(policy.id)));
        }
        let permissions = policy.permissions.unwrap_or_default();
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
    violations.check(())
}

fn is_subsequence(text: &str, of: &str) -> bool {
    let mut letters = of.chars();
    text.chars().all(|letter| letters.any(|candidate| candidate == letter))
}
