//! Calls of a service that is not served where they arrive.

use tonic::Status;
use tonic_types::StatusExt as _;

use crate::rpc_path::service_of;
use trestle_model::fault::{Fault, Reason, quoted};

/// The kind of the resource in such an error. It distinguishes a service that is not served from a method that a
/// service does not have.
const KIND: &str = "service";

/// The error of a call at `path`, with the reason why its service is not served, if one is known.
#[must_use]
pub fn unserved(path: &str, reason: Option<&str>) -> Fault {
    let service = service_of(path).unwrap_or_default();
    let message = match reason {
        Some(reason) => format!("service is not served here: {reason}: service=`{service}`"),
        None => format!("unknown service: path=`{}`", quoted(path)),
    };
    Fault::about(Reason::NotImplemented, message, KIND, service)
}

/// Whether the error of a call means that its service is not served: that of a Trestle process names the service, and
/// that of another server has no details.
#[must_use]
pub fn is_unserved(status: &Status) -> bool {
    let details = status.get_error_details();
    let is_service = |resource: &tonic_types::ResourceInfo| resource.resource_type == KIND;
    status.code() == tonic::Code::Unimplemented
        && (details.error_info().is_none() || details.resource_info().is_some_and(is_service))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{DOMAIN, IntoStatus as _};

    #[test]
    fn a_service_is_distinguished_from_a_method_and_from_another_server_by_the_details() {
        let absent = unserved("/a.v1.A/Get", None).into_status(DOMAIN);
        let because = unserved("/a.v1.A/Get", Some("no endpoint")).into_status(DOMAIN);
        let method = Fault::new(Reason::NotImplemented, "unknown method").into_status(DOMAIN);

        assert!(is_unserved(&absent) && is_unserved(&because) && !is_unserved(&method));
        assert!(is_unserved(&Status::unimplemented("")));
        assert!(!is_unserved(&Status::internal("")));
        assert_eq!(absent.message(), "unknown service: path=`/a.v1.A/Get`");
        let text = "service is not served here: no endpoint: service=`a.v1.A`";
        assert_eq!(because.message(), text);
    }
}
