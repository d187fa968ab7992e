//! Lines of syslog.

use std::borrow::Cow;

use syslog_loose::{Message, Protocol, SyslogSeverity, Variant, parse_message_with_year_exact_tz};
use trestle_proto::{
    log::v1::Record,
    opentelemetry::proto::common::v1::{AnyValue, ArrayValue, any_value::Value as Kind},
};

use super::{TimeRules, any_value, time};

/// States at the beginning of a message that it is UTF-8.
const BYTE_ORDER_MARK: char = '\u{FEFF}';
/// The greatest priority: facility 23 and severity 7.
const PRIORITY_MAX: u64 = 191;
/// The attribute of a priority that has no meaning.
const PRIORITY: &str = "priority";

/// The record of a line of RFC 5424 or RFC 3164; of the latter the priority may be missing, as in files.
pub(super) fn parse(line: &str, times: TimeRules) -> Result<Record, String> {
    let year = |(month, day, ..): (u32, u32, u32, u32, u32)| times.year(month, day);
    let zone = Some(times.offset);
    let (invalid, line) = without_invalid_priority(line.trim());
    let line = with_colon_in_offset(line);
    let message = parse_message_with_year_exact_tz(&line, year, zone, Variant::Either);
    let message = message.map_err(|_| "must be syslog of RFC 5424 or RFC 3164".to_owned())?;
    let time_unix_nano = match message.timestamp {
        Some(time) => time::nanos(time.to_utc())?,
        // RFC 5424 has a mark for a time that the source does not have.
        None if matches!(message.protocol, Protocol::RFC5424(_)) => 0,
        None => return Err("must have a time".to_owned()),
    };
    let body = message.msg.trim();
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    let body = Some(any_value::of_text(body));
    let mut record = Record { time_unix_nano, body, ..Record::default() };
    set_severity(&mut record, message.severity);
    if let Some(priority) = invalid {
        record.attributes.insert(PRIORITY.to_owned(), any_value::of_text(priority));
    }
    attributes(&message, &mut record);
    Ok(record)
}

/// A priority that is greater than any, and the line without it: neither its facility nor its severity exists.
fn without_invalid_priority(line: &str) -> (Option<&str>, &str) {
    let priority = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    let invalid = priority.filter(|(number, _)| {
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number && number.parse().map_or(true, |number: u64| number > PRIORITY_MAX)
    });
    invalid.map_or((None, line), |(number, rest)| (Some(number), rest))
}

/// A line whose time has an offset such as `+0100`, with the colon that both standards need.
fn with_colon_in_offset(line: &str) -> Cow<'_, str> {
    // The time is behind the priority, and in RFC 5424 behind the version.
    let start = line.find('>').filter(|_| line.starts_with('<')).map_or(0, |end| end + 1);
    let words = line.get(start..).unwrap_or_default().split_inclusive(' ').take(2);
    let mut begin = start;
    for word in words {
        let time = word.trim_end();
        if time::has_offset_without_colon(time)
            && let Some((before, minutes)) = line.split_at_checked(begin + time.len() - 2)
        {
            return Cow::Owned(format!("{before}:{minutes}"));
        }
        begin += word.len();
    }
    Cow::Borrowed(line)
}

/// With the names that exporters of syslog for OpenTelemetry use.
fn attributes(message: &Message<&str>, record: &mut Record) {
    let facility = message.facility.map(|facility| facility.as_str().to_owned());
    let process = message.procid.as_ref().map(ToString::to_string);
    let text = |text: Option<&str>| text.map(str::to_owned);
    for (key, value) in [
        ("facility", facility),
        ("hostname", text(message.hostname)),
        ("appname", text(message.appname)),
        ("proc_id", process),
        ("msg_id", text(message.msgid)),
    ] {
        if let Some(value) = value {
            record.attributes.insert(key.to_owned(), any_value::of_text(value));
        }
    }
    for element in &message.structured_data {
        for (key, value) in element.params() {
            add_parameter(record, format!("{}.{key}", element.id), any_value::of_text(value));
        }
    }
}

/// Adds a parameter. RFC 5424 lets one be there more than once: it is a list then.
fn add_parameter(record: &mut Record, key: String, value: AnyValue) {
    let Some(before) = record.attributes.get_mut(&key) else {
        record.attributes.insert(key, value);
        return;
    };
    match &mut before.value {
        Some(Kind::ArrayValue(array)) => array.values.push(value),
        _ => {
            let values = vec![std::mem::take(before), value];
            *before = AnyValue { value: Some(Kind::ArrayValue(ArrayValue { values })) };
        }
    }
}

/// Sets the number and the name of a severity.
pub(super) fn set_severity(record: &mut Record, severity: Option<SyslogSeverity>) {
    if let Some(severity) = severity {
        record.severity_number = number(severity);
        record.severity_text = severity.as_str().to_owned();
    }
}

/// As the data model of OpenTelemetry maps severities of syslog.
fn number(severity: SyslogSeverity) -> i32 {
    match severity {
        SyslogSeverity::SEV_EMERG => 21,
        SyslogSeverity::SEV_ALERT => 19,
        SyslogSeverity::SEV_CRIT => 18,
        SyslogSeverity::SEV_ERR => 17,
        SyslogSeverity::SEV_WARNING => 13,
        SyslogSeverity::SEV_NOTICE => 10,
        SyslogSeverity::SEV_INFO => 9,
        SyslogSeverity::SEV_DEBUG => 5,
    }
}
