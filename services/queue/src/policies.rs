//! Stored access policies of a queue: checks and storage. They are kept in the form of the public contract, whose rules
//! keep old bytes readable.

use bytes::Bytes;
use prost::Message as _;
use trestle_proto::queue::v1 as proto;
use trestle_service::{
    clock::Ticks,
    fault::{Fault, Reason, Violations, quoted},
    limits::{ACCESS_POLICIES_MAX, ACCESS_POLICY_ID_CHARS_MAX},
};

use crate::error::QueueError;

/// The letters of a permission, in their order.
const PERMISSIONS: &str = "raup";

/// The stored form.
pub(crate) fn encode(policies: Vec<proto::AccessPolicy>) -> Bytes {
    let message = proto::SetQueueAccessPoliciesRequest { queue: String::new(), policies };
    message.encode_to_vec().into()
}

/// From the stored form.
///
/// # Errors
/// [`QueueError::Corrupt`].
pub(crate) fn decode(stored: &Bytes) -> Result<Vec<proto::AccessPolicy>, QueueError> {
    let message = proto::SetQueueAccessPoliciesRequest::decode(stored.clone());
    let message = message.map_err(|_| QueueError::corrupt("access policies"))?;
    Ok(message.policies)
}

/// Whether the policies may be stored.
///
/// # Errors
/// Every broken rule.
pub(crate) fn check(policies: &[proto::AccessPolicy]) -> Result<(), Fault> {
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
        let mut letters = PERMISSIONS.chars();
        if !permissions.chars().all(|letter| letters.any(|candidate| candidate == letter)) {
            let rule = "must be letters of `raup`, in this order";
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
