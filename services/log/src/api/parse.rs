//! From requests to domain types: every violation of a request is collected before it is rejected.

mod settings;
#[cfg(test)]
mod tests;

use std::time::Duration;

use trestle_model::duration::{exact, not_negative};
use trestle_model::fault::{Fault, Reason, Violations, quoted};
use trestle_proto::log::v1 as proto;

pub(super) use self::settings::{settings, settings_change};
use crate::{names::StreamName, streams::ListStreams};

/// Most items of a page.
pub(super) const PAGE_ITEMS_MAX: i32 = 1000;
/// Nanoseconds of a second.
const SECOND_NANOS: u64 = 1_000_000_000;
/// Longest request id, in bytes.
pub(super) const REQUEST_ID_BYTES_MAX: usize = 64;

/// The parsed value, unless a rule was violated.
///
/// # Errors
/// Every violated rule.
pub(super) fn finish<T>(violations: Violations, parsed: Option<T>) -> Result<T, Fault> {
    violations.check(())?;
    let message = "a rejected value has no violation";
    parsed.ok_or_else(|| Fault::new(Reason::InternalError, message))
}

/// The name of the stream of a request.
///
/// # Errors
/// The violated rule.
pub(super) fn stream_name(name: String) -> Result<StreamName, Fault> {
    let mut violations = Violations::default();
    let name = StreamName::parse(name, "stream", &mut violations);
    finish(violations, name)
}

/// The request for a page of streams.
///
/// # Errors
/// The violated rule.
pub(super) fn list_streams(request: proto::ListStreamsRequest) -> Result<ListStreams, Fault> {
    let proto::ListStreamsRequest { prefix, page_size, page_token } = request;
    let mut violations = Violations::default();
    let page_size = page_items(page_size, &mut violations);
    violations.check(ListStreams { prefix, page_size, page_token })
}

/// The number of items of a page.
pub(super) fn page_items(page_size: Option<i32>, violations: &mut Violations) -> usize {
    let page_size = page_size.unwrap_or(PAGE_ITEMS_MAX);
    if !(1..=PAGE_ITEMS_MAX).contains(&page_size) {
        let rule = format!("must be 1 to 1,000: value=`{page_size}`");
        violations.push(Reason::OutOfRangeInput, "page_size", rule);
    }
    usize::try_from(page_size).unwrap_or_default()
}

/// The request id of an append; none where the request has none.
pub(super) fn request_id(id: String, violations: &mut Violations) -> Option<String> {
    if id.len() > REQUEST_ID_BYTES_MAX {
        let rule = format!("must have 1 to 64 bytes: value=`{}`", quoted(&id));
        violations.push(Reason::OutOfRangeInput, "request_id", rule);
    }
    (!id.is_empty()).then_some(id)
}

/// A range of times, in nanoseconds since 1970: from the first on, before the second.
pub(super) fn times(
    start: Option<prost_types::Timestamp>,
    end: Option<prost_types::Timestamp>,
    violations: &mut Violations,
) -> std::ops::Range<u64> {
    let start = start.map_or(0, |start| nanos(start, "start_time", violations));
    let end = end.map_or(u64::MAX, |end| nanos(end, "end_time", violations));
    start..end
}

/// A time in nanoseconds since 1970. Times before are 1970, and those past 2554 are the end of time: no record is
/// there.
fn nanos(time: prost_types::Timestamp, field: &str, violations: &mut Violations) -> u64 {
    let prost_types::Timestamp { seconds, nanos } = time;
    let whole = u64::try_from(nanos).ok().filter(|nanos| *nanos < SECOND_NANOS);
    let Some(nanos) = whole else {
        let rule = format!("must be a time with 0 to 999,999,999 nanoseconds: nanos=`{nanos}`");
        violations.push(Reason::OutOfRangeInput, field, rule);
        return 0;
    };
    let Ok(seconds) = u64::try_from(seconds) else { return 0 };
    seconds.saturating_mul(SECOND_NANOS).saturating_add(nanos)
}

/// A duration in a range, both ends included; none if it is absent or rejected.
pub(super) fn between(
    given: Option<prost_types::Duration>,
    (least, most): (Duration, Duration),
    (field, rule): (&str, &str),
    violations: &mut Violations,
) -> Option<Duration> {
    let given = given?;
    let parsed = not_negative(given);
    let parsed = parsed.filter(|parsed| (least..=most).contains(parsed));
    if parsed.is_none() {
        let rule = format!("{rule}: value=`{}`", exact(given));
        violations.push(Reason::OutOfRangeInput, field, rule);
    }
    parsed
}
