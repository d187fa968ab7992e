//! The errors of requests that are no operation of a resource, which queues and blobs share.

use trestle_model::fault::{Fault, Reason, quoted};

use crate::{error::RestError, head::RequestHead, number::missing, params::Params};

/// The error of a path that names no resource.
pub(crate) fn unreadable(path: &str, rule: &str) -> RestError {
    let rule = format!("{rule}: value=`{}`", quoted(path));
    Fault::violation(Reason::InvalidUri, "path", rule).into()
}

/// The error of a method that the resource does not support.
pub(crate) fn unknown_method(head: &RequestHead) -> RestError {
    let method = quoted(head.method.as_str()).into_owned();
    let message = format!("the resource does not support this verb: method=`{method}`");
    Fault::new(Reason::UnsupportedHttpVerb, message).into()
}

/// The error of an invalid value of a parameter that selects the operation.
pub(crate) fn unknown(params: &Params, name: &'static str) -> RestError {
    match params.get(name) {
        None => missing(name),
        Some(value) => {
            let rule = "must name an operation of the resource";
            RestError::of_parameter(Reason::InvalidQueryParameterValue, name, value, rule)
        }
    }
}
