//! Stored access policies of a queue: checks and storage. They are kept in the form of the public contract, whose rules
//! keep old bytes readable.

use bytes::Bytes;
use prost::Message as _;
use trestle_identity::access_policy::{self, Stated};
use trestle_proto::queue::v1 as proto;
use trestle_proto::service::v1::AccessPolicy;
use trestle_service::fault::Fault;

use crate::error::QueueError;

/// The letters of a permission, in their order.
const PERMISSIONS: &str = "raup";

/// The stored form.
pub(crate) fn encode(policies: Vec<AccessPolicy>) -> Bytes {
    let message = proto::SetQueueAccessPoliciesRequest { queue: String::new(), policies };
    message.encode_to_vec().into()
}

/// From the stored form.
///
/// # Errors
/// [`QueueError::Corrupt`].
pub(crate) fn decode(stored: &Bytes) -> Result<Vec<AccessPolicy>, QueueError> {
    let message = proto::SetQueueAccessPoliciesRequest::decode(stored.clone());
    let message = message.map_err(|_| QueueError::corrupt("access policies"))?;
    Ok(message.policies)
}

/// Whether the policies may be stored.
///
/// # Errors
/// Every broken rule.
pub(crate) fn check(policies: &[AccessPolicy]) -> Result<(), Fault> {
    let stated: Vec<_> = policies.iter().map(stated).collect();
    access_policy::check(&stated, PERMISSIONS)
}

/// A policy as the rules that every service shares take it.
pub(crate) fn stated(policy: &AccessPolicy) -> Stated<'_> {
    Stated {
        id: &policy.id,
        start_time: policy.start_time,
        expiry_time: policy.expiry_time,
        permissions: policy.permissions.as_deref(),
    }
}
