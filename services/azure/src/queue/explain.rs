//! The details of an error that REST reports in addition to gRPC.

use tonic_types::StatusExt as _;
use trestle_model::fault::{Fault, Reason, quoted, reason_name};
use trestle_model::limits::MESSAGE_BODY_BYTES_MAX;

use crate::{error::RestError, params::Params};

/// The error of a call with the elements of its error body, if they are absent: the invalid
/// parameter, or the bound of a size.
pub(super) fn explain(error: RestError, params: &Params) -> RestError {
    if !error.extras.is_empty() {
        return error;
    }
    let details = error.status.get_error_details();
    let reason = details.error_info().map(|info| info.reason.as_str()).unwrap_or_default();
    let is = |other: Reason| reason == reason_name(other);
    if is(Reason::RequestBodyTooLarge) {
        return error.with("MaxLimit", MESSAGE_BODY_BYTES_MAX.to_string());
    }
    if !is(Reason::InvalidQueryParameterValue) {
        return error;
    }
    let violations = details.bad_request().map(|bad| bad.field_violations.as_slice());
    let field = violations.and_then(|violations| violations.first()).map(|first| &first.field);
    let field = field.and_then(|field| field.rsplit('.').next()).unwrap_or_default();
    let (name, why) = match field {
        "pop_receipt" => ("popreceipt", "Invalid pop receipt format"),
        "visibility_delay" => {
            ("visibilitytimeout", "messagettl must be greater than visibilitytimeout")
        }
        "page_token" => {
            let marker = quoted(params.get("marker").unwrap_or_default());
            let rule = format!("must be the marker of an earlier page: value=`{marker}`");
            return Fault::violation(Reason::InvalidMarker, "marker", rule).into();
        }
        _ => return error,
    };
    let value = quoted(params.get(name).unwrap_or_default()).into_owned();
    error.with("QueryParameterName", name).with("QueryParameterValue", value).with("Reason", why)
}

#[cfg(test)]
mod tests;
