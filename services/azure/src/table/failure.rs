//! Failures in the form of OData: JSON where a client takes it, else XML.

use http::{Response, StatusCode, header};
use serde_json::json;
use tonic::body::Body;

use super::{entities::applied, level::Level, prefer::Prefer};
use crate::{failure::Failure, head::Head, reply};

/// The content type of failures in XML.
const XML: &str = "application/xml";

/// The answer to a request that failed; of one whose head cannot be read nothing is known.
pub(super) fn render(failure: &Failure, head: Option<&Head>) -> Response<Body> {
    let Some(level) = head.and_then(|head| level(head, failure.status)) else {
        return reply::whole(StatusCode::OK, XML, xml(failure));
    };
    let mut answer = reply::whole(StatusCode::OK, level.content_type(), json(failure));
    // A preference counts as applied also where nothing came of the request.
    let prefer = head.map(|head| Prefer::of(&head.headers)).unwrap_or_default();
    applied(&mut answer, prefer);
    answer
}

/// The level of a failure; none where it has to be XML.
fn level(head: &Head, status: StatusCode) -> Option<Level> {
    let is_xml_operation = head.params.get("comp").is_some();
    if is_xml_operation {
        return None;
    }
    let (format, accept) = (head.params.get("$format"), head.header(header::ACCEPT));
    let is_named = [format, accept].into_iter().flatten().any(|asked| asked.contains("json"));
    // Who may not come in meets the door, which speaks XML unless it is told otherwise.
    let is_at_door = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let level = Level::negotiate(format, accept).ok()?;
    (is_named || !is_at_door).then_some(level)
}

/// Code and text, and nothing else: a further member would be too much for some clients.
pub(super) fn json(failure: &Failure) -> String {
    let message = json!({ "lang": "en-US", "value": failure.message() });
    json!({ "odata.error": { "code": failure.code, "message": message } }).to_string()
}

fn xml(failure: &Failure) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
         <m:error xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\">\
         <m:code>{}</m:code><m:message xml:lang=\"en-US\">{}</m:message></m:error>",
        escaped(&failure.code),
        escaped(&failure.message())
    )
}

/// Text between tags. What XML cannot carry is left out.
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
