//! Errors in the form of OData: JSON if the client accepts it, else XML.

use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::json;
use tonic::body::Body;

use super::{entities::applied, level::Level, prefer::Prefer, route::TUNNELLED};
use crate::{error::ErrorResponse, head::RequestHead, reply};

/// The content type of errors in XML.
const XML: &str = "application/xml";

/// The error response to a request with these headers; without other information if its head is
/// invalid.
pub(super) fn render(
    response: &ErrorResponse,
    headers: &HeaderMap,
    head: Option<&RequestHead>,
) -> Response<Body> {
    let Some(level) = level(headers, head, response.status) else {
        return reply::whole(StatusCode::OK, XML, xml(response));
    };
    let mut answer = reply::whole(StatusCode::OK, level.content_type(), json(response));
    // A preference for an insert counts as applied even if the insert failed.
    if head.is_some_and(|head| head.method == Method::POST && !headers.contains_key(TUNNELLED)) {
        applied(&mut answer, Prefer::of(headers));
    }
    answer
}

/// The level of an error; none if it has to be XML.
fn level(headers: &HeaderMap, head: Option<&RequestHead>, status: StatusCode) -> Option<Level> {
    let params = head.map(|head| &head.params);
    let is_xml_operation = params.is_some_and(|params| params.get("comp").is_some());
    if is_xml_operation {
        return None;
    }
    let format = params.and_then(|params| params.get("$format"));
    // Errors of authentication and of malformed requests are errors of the HTTP edge of Azure, which
    // uses XML unless the request sets another format.
    let is_rejected = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let is_of_edge = head.is_none() || is_rejected;
    let level = Level::negotiate(format, headers).ok()?;
    (Level::is_named(format, headers) || !is_of_edge).then_some(level)
}

/// Only code and message: clients reject further members.
pub(super) fn json(response: &ErrorResponse) -> String {
    let message = json!({ "lang": "en-US", "value": response.message() });
    json!({ "odata.error": { "code": response.code, "message": message } }).to_string()
}

fn xml(response: &ErrorResponse) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
         <m:error xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\">\
         <m:code>{}</m:code><m:message xml:lang=\"en-US\">{}</m:message></m:error>",
        escaped(&response.code),
        escaped(&response.message())
    )
}

/// Text between tags. Characters that XML cannot represent are omitted.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\t' | '\n' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'.. => out.push(c),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests;
