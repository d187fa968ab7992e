//! From requests to domain types: every violation of a request is collected before it is rejected.

mod messages;
mod settings;

use std::time::Duration;

use trestle_model::duration::{exact, not_negative};
use trestle_model::fault::{Fault, Reason, Violations, quoted};
use trestle_model::limits::{
    REDRIVE_MESSAGES_MAX, VISIBILITY_DEFAULT, VISIBILITY_MAX, VISIBILITY_RECEIVE_MIN,
};
use trestle_model::name::QueueName;

pub(super) use self::{
    messages::{Send, delete, peek, receive, redrive, send, update},
    settings::{list, new_queue, queue_update},
};

/// A range of durations, both ends included.
#[derive(Debug, Clone, Copy)]
struct Between(Duration, Duration);

/// A queue name alone.
pub(super) fn queue(name: String) -> Result<QueueName, Fault> {
    let mut violations = Violations::default();
    let queue = QueueName::parse(name, "queue", &mut violations);
    finish(violations, queue)
}

/// The parsed value, unless a rule was violated.
fn finish<T>(violations: Violations, parsed: Option<T>) -> Result<T, Fault> {
    violations.check(())?;
    parsed.ok_or_else(|| Fault::new(Reason::InternalError, "a rejected value has no violation"))
}

/// The visibility timeout of deliveries.
pub(super) fn visibility_timeout(
    timeout: Option<prost_types::Duration>,
    field: &str,
    violations: &mut Violations,
) -> Duration {
    let between = Between(VISIBILITY_RECEIVE_MIN, VISIBILITY_MAX);
    duration(timeout, between, field, violations).unwrap_or(VISIBILITY_DEFAULT)
}

/// A number of messages.
fn count(
    number: Option<u32>,
    max: usize,
    default: usize,
    field: &str,
    violations: &mut Violations,
) -> usize {
    let Some(number) = number else { return default };
    match usize::try_from(number) {
        Ok(count) if (1..=max).contains(&count) => count,
        _ => {
            let rule = format!("must be 1 to {max}: value=`{number}`");
            violations.push(Reason::OutOfRangeQueryParameterValue, field, rule);
            default
        }
    }
}

/// How many messages a redrive moves at most.
fn redrive_count(number: Option<u32>, violations: &mut Violations) -> usize {
    count(number, REDRIVE_MESSAGES_MAX, REDRIVE_MESSAGES_MAX, "max_messages", violations)
}

/// A duration in a range, in steps of 100 ns; none if it is absent or rejected.
fn duration(
    value: Option<prost_types::Duration>,
    between: Between,
    field: &str,
    violations: &mut Violations,
) -> Option<Duration> {
    ranged(value, between, (Reason::OutOfRangeQueryParameterValue, field), violations)
}

/// The same, rejected with a given reason.
fn ranged(
    value: Option<prost_types::Duration>,
    Between(min, max): Between,
    (reason, field): (Reason, &str),
    violations: &mut Violations,
) -> Option<Duration> {
    let value = value?;
    let parsed = not_negative(value);
    let fitting = parsed.filter(|parsed| (min..=max).contains(parsed));
    if fitting.is_none() {
        let given = format!("value=`{}`", exact(value));
        let rule = match max {
            Duration::MAX => format!("must be {} s or more: {given}", min.as_secs()),
            max => format!("must be {} to {} seconds: {given}", min.as_secs(), max.as_secs()),
        };
        violations.push(reason, field, rule);
    }
    fitting
}

/// A text of bounded length that may be absent; none where it is empty or rejected.
fn short_text(
    text: String,
    bytes_max: usize,
    field: &str,
    violations: &mut Violations,
) -> Option<String> {
    if text.len() > bytes_max {
        let rule = format!("must have at most {bytes_max} bytes: value=`{}`", quoted(&text));
        violations.push(Reason::InvalidInput, field, rule);
        return None;
    }
    Some(text).filter(|text| !text.is_empty())
}
