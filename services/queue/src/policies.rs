//! Stored access policies of a queue: checks and storage.

use bytes::Bytes;
use trestle_identity::{access_policy, spec::QUEUE};
use trestle_model::fault::Fault;
use trestle_proto::service::v1::AccessPolicy;

use crate::error::QueueError;

/// The stored form; empty for no policies, as a record without policies has it.
pub(crate) fn encode(policies: Vec<AccessPolicy>) -> Bytes {
    if policies.is_empty() { Bytes::new() } else { access_policy::encode(policies) }
}

/// From the stored form.
///
/// # Errors
/// [`QueueError::Corrupt`].
pub(crate) fn decode(stored: &Bytes) -> Result<Vec<AccessPolicy>, QueueError> {
    if stored.is_empty() {
        return Ok(Vec::new());
    }
    access_policy::decode(stored).map_err(|_| QueueError::corrupt("access policies"))
}

/// Whether the policies may be stored.
///
/// # Errors
/// Every broken rule.
pub(crate) fn check(policies: &[AccessPolicy]) -> Result<(), Fault> {
    access_policy::check(policies, &QUEUE.letters())
}
