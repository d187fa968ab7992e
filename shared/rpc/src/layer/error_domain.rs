//! The domain of errors: whether a layer, the codec or the service rejected a call, its error carries the name of the
//! called service. Costs a successful call nothing.

use http::{HeaderMap, uri::PathAndQuery};
use tonic::{Code, Status};

use super::{STATUS_HEADERS, code_of};
use crate::status::{domain_of, with_domain};

/// Sets the domain of the error in headers or trailers of a call to this path.
pub(super) fn set(headers: &mut HeaderMap, path: Option<&PathAndQuery>) {
    if code_of(headers).is_none_or(|code| code == Code::Ok) {
        return;
    }
    let path = path.map_or("", PathAndQuery::path);
    let status = Status::from_header_map(headers);
    let Some(status) = status.and_then(|status| with_domain(&status, domain_of(path))) else {
        return;
    };
    let mut renamed = HeaderMap::with_capacity(STATUS_HEADERS.len());
    if status.add_header(&mut renamed).is_ok() {
        headers.extend(renamed);
    }
}
