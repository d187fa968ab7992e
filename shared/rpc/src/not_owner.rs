//! Calls of a resource that another process of the store owns: nothing was done, and the owner is to be called.

use http::HeaderMap;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::layer::code_of;
use trestle_model::fault::{Fault, Reason};

/// The kind of the resource in such an error. It distinguishes it from other errors with the same code.
const KIND: &str = "owned-resource";

/// The error of a call at a process that does not own the named resource.
#[must_use]
pub fn not_owner(message: impl Into<String>, name: &str) -> Fault {
    Fault::about(Reason::ServerUnavailable, message, KIND, name)
}

/// Whether the headers of a response have that error.
#[must_use]
pub fn is_not_owner(headers: &HeaderMap) -> bool {
    code_of(headers) == Some(Code::Unavailable)
        && Status::from_header_map(headers).is_some_and(|status| {
            let details = status.get_error_details();
            details.resource_info().is_some_and(|resource| resource.resource_type == KIND)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::error_response;

    #[test]
    fn the_error_is_distinguished_from_others_that_a_client_may_repeat() {
        let other = Fault::about(Reason::ServerUnavailable, "it changes", "queue", "work");
        let absent = Fault::about(Reason::QueueNotFound, "no such queue", KIND, "work");

        assert!(is_not_owner(error_response(not_owner("elsewhere", "work")).headers()));
        for fault in [other, absent, Fault::new(Reason::ServerUnavailable, "no details")] {
            assert!(!is_not_owner(error_response(fault.clone()).headers()), "{fault}");
        }
        assert!(!is_not_owner(&HeaderMap::new()));
    }
}
