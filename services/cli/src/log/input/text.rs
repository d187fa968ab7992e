//! Lines of text.

use chrono::format::{Item, StrftimeItems};
use trestle_proto::log::v1::Record;

use super::{TimeRules, any_value};

/// The form of the time at the beginning of a line.
#[derive(Debug, Clone)]
pub(crate) struct TimestampPattern {
    /// As it was given.
    pub(crate) text: String,
    items: Vec<Item<'static>>,
}

/// Reads a pattern, as of strptime.
pub(crate) fn timestamp_pattern(text: &str) -> Result<TimestampPattern, String> {
    let items = StrftimeItems::new(text).parse_to_owned().map_err(
        |_| "must be a pattern of strptime, such as '%Y-%m-%d %H:%M:%S%.f' or '%b %e %H:%M:%S'",
    )?;
    if text.trim().is_empty() {
        return Err("must not be empty".to_owned());
    }
    Ok(TimestampPattern { text: text.to_owned(), items })
}

/// The record of a line.
pub(super) fn parse(
    line: &str,
    pattern: Option<&TimestampPattern>,
    times: TimeRules,
) -> Result<Record, String> {
    let (time_unix_nano, body) = match pattern {
        None => (0, line),
        Some(pattern) => times.take(line, &pattern.items)?,
    };
    let body = if pattern.is_some() { body.trim_start() } else { body };
    let body = Some(any_value::of_text(body));
    Ok(Record { time_unix_nano, body, ..Record::default() })
}
