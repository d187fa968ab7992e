//! Determines the operation of a request.

use http::Method;
use percent_encoding::percent_decode_str;
use trestle_model::fault::Reason;
use trestle_model::limits::{
    PAGE_QUEUES_MAX, RECEIVE_MESSAGES_MAX, VISIBILITY_MAX, VISIBILITY_RECEIVE_MIN,
};

use super::operation::{
    ListPage, MessageReceipt, OnAccount, OnMessages, OnQueue, QueueOperation, TimeToLive,
};
use crate::{
    error::RestError,
    head::RequestHead,
    number::{count, missing, number, number_with},
    params::Params,
    unrouted::{unknown, unknown_method, unreadable},
};

/// The TTL parameter of a message without expiry.
const EVER: i64 = -1;

/// The operation of a request.
///
/// # Errors
/// An invalid path, method or parameter.
pub(super) fn route(head: &RequestHead) -> Result<QueueOperation, RestError> {
    let segments = segments(&head.path)?;
    let segments: Vec<_> = segments.iter().map(String::as_str).collect();
    match *segments.as_slice() {
        [] => on_account(head).map(QueueOperation::Account),
        [queue] => {
            on_queue(head).map(|operation| QueueOperation::Queue(queue.to_owned(), operation))
        }
        [_, "messages"] if has_empty_id(head) => {
            Err(unreadable(&head.path, "must have the id of a message"))
        }
        [queue, "messages"] => {
            on_messages(head).map(|operation| QueueOperation::Messages(queue.to_owned(), operation))
        }
        [queue, "messages", id] => on_message(head, id)
            .map(|operation| QueueOperation::Messages(queue.to_owned(), operation)),
        _ => {
            let rule = "must be /, /queue, /queue/messages or /queue/messages/id";
            Err(unreadable(&head.path, rule))
        }
    }
}

/// The segments of a path, decoded; a `/` at the end is ignored.
fn segments(path: &str) -> Result<Vec<String>, RestError> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let inside = path.strip_suffix('/').unwrap_or(path);
    if inside.is_empty() {
        return Ok(Vec::new());
    }
    let decoded = inside.split('/').map(|segment| {
        let text = percent_decode_str(segment).decode_utf8().ok();
        let text = text.filter(|text| !text.is_empty());
        text.ok_or_else(|| unreadable(path, "must have no empty segment, and be UTF-8"))
    });
    decoded.map(|segment| segment.map(std::borrow::Cow::into_owned)).collect()
}

/// Whether a request for one message has an empty id: without this it would be one for all of them.
fn has_empty_id(head: &RequestHead) -> bool {
    let is_of_one = head.method == Method::DELETE || head.method == Method::PUT;
    is_of_one && (head.path.ends_with('/') || head.params.get("popreceipt").is_some())
}

fn on_account(head: &RequestHead) -> Result<OnAccount, RestError> {
    let params = &head.params;
    if params.is("comp", "list") {
        return match head.method {
            Method::GET => page(params).map(OnAccount::ListQueues),
            _ => Err(unknown_method(head)),
        };
    }
    if !params.is("restype", "service") {
        return Err(unknown(params, if params.get("comp").is_some() { "restype" } else { "comp" }));
    }
    if params.is("comp", "userdelegationkey") {
        return match head.method {
            Method::POST => Ok(OnAccount::GetDelegationKey),
            _ => Err(unknown_method(head)),
        };
    }
    let is_stats = params.is("comp", "stats");
    if !is_stats && !params.is("comp", "properties") {
        return Err(unknown(params, "comp"));
    }
    match (&head.method, is_stats) {
        (&Method::GET, true) if head.is_secondary => Ok(OnAccount::GetStats),
        (&Method::GET, true) => {
            let rule = "stats are those of the secondary name of the account";
            let reason = Reason::InvalidQueryParameterValue;
            Err(RestError::of_parameter(reason, "comp", "stats", rule))
        }
        (&Method::GET, false) => Ok(OnAccount::GetProperties),
        (&Method::PUT, false) => Ok(OnAccount::SetProperties),
        _ => Err(unknown_method(head)),
    }
}

fn page(params: &Params) -> Result<ListPage, RestError> {
    let text = |name| params.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let mut page = ListPage {
        prefix: text("prefix"),
        marker: text("marker"),
        max_results: count(params, "maxresults", PAGE_QUEUES_MAX)?,
        has_metadata: false,
    };
    let included = params.get("include").unwrap_or_default();
    for part in included.split(',').filter(|part| !part.is_empty()) {
        if !part.eq_ignore_ascii_case("metadata") {
            let reason = Reason::InvalidQueryParameterValue;
            return Err(RestError::of_parameter(reason, "include", included, "must be metadata"));
        }
        page.has_metadata = true;
    }
    Ok(page)
}

fn on_queue(head: &RequestHead) -> Result<OnQueue, RestError> {
    let params = &head.params;
    let (is_metadata, is_acl) = (params.is("comp", "metadata"), params.is("comp", "acl"));
    if params.get("comp").is_some() && !is_metadata && !is_acl {
        return Err(unknown(params, "comp"));
    }
    match (&head.method, is_metadata, is_acl) {
        (&Method::PUT, false, false) => Ok(OnQueue::Create),
        (&Method::DELETE, false, false) => Ok(OnQueue::Delete),
        (&Method::GET | &Method::HEAD, false, false) => Err(missing("comp")),
        (&Method::GET | &Method::HEAD, true, _) => Ok(OnQueue::GetMetadata),
        (&Method::PUT, true, _) => Ok(OnQueue::SetMetadata),
        (&Method::GET | &Method::HEAD, _, true) => Ok(OnQueue::GetPolicies),
        (&Method::PUT, _, true) => Ok(OnQueue::SetPolicies),
        _ => Err(unknown_method(head)),
    }
}

fn on_messages(head: &RequestHead) -> Result<OnMessages, RestError> {
    let params = &head.params;
    match head.method {
        Method::POST => Ok(OnMessages::Send {
            visibility_timeout: visibility_timeout(params, 0)?,
            time_to_live: time_to_live(params)?,
        }),
        Method::GET => {
            let max = count(params, "numofmessages", RECEIVE_MESSAGES_MAX)?;
            if is_peek(params)? {
                return Ok(OnMessages::Peek { max });
            }
            let shortest = seconds(VISIBILITY_RECEIVE_MIN);
            Ok(OnMessages::Receive {
                max,
                visibility_timeout: visibility_timeout(params, shortest)?,
            })
        }
        Method::DELETE => Ok(OnMessages::Clear),
        _ => Err(unknown_method(head)),
    }
}

fn on_message(head: &RequestHead, id: &str) -> Result<OnMessages, RestError> {
    let params = &head.params;
    if !matches!(head.method, Method::PUT | Method::DELETE) {
        return Err(unknown_method(head));
    }
    let receipt = params.get("popreceipt").filter(|receipt| !receipt.is_empty());
    let pop_receipt = receipt.ok_or_else(|| missing("popreceipt"))?.to_owned();
    let message = MessageReceipt { message_id: id.to_owned(), pop_receipt };
    if head.method == Method::DELETE {
        return Ok(OnMessages::Delete { message });
    }
    let visibility_timeout =
        visibility_timeout(params, 0)?.ok_or_else(|| missing("visibilitytimeout"))?;
    Ok(OnMessages::Update { message, visibility_timeout })
}

fn is_peek(params: &Params) -> Result<bool, RestError> {
    match params.get("peekonly") {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
        Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
        Some(value) => {
            let rule = "must be true or false";
            Err(RestError::of_parameter(
                Reason::InvalidQueryParameterValue,
                "peekonly",
                value,
                rule,
            ))
        }
    }
}

fn visibility_timeout(params: &Params, shortest: i64) -> Result<Option<i64>, RestError> {
    number(params, "visibilitytimeout", shortest..=seconds(VISIBILITY_MAX))
}

fn time_to_live(params: &Params) -> Result<Option<TimeToLive>, RestError> {
    if params.is("messagettl", &EVER.to_string()) {
        return Ok(Some(TimeToLive::Never));
    }
    let rule =
        |_: &_| "must be 1 or more seconds, or -1, with which the message never expires".to_owned();
    Ok(number_with(params, "messagettl", 1..=i64::MAX, rule)?.map(TimeToLive::Seconds))
}

fn seconds(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
