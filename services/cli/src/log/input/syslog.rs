//! Lines of syslog.

use syslog_loose::{Message, Protocol, SyslogSeverity, Variant, parse_message_with_year_exact_tz};
use trestle_proto::log::v1::Record;

use super::{TimeRules, any_value, time};

/// The record of a line of RFC 5424 or RFC 3164; of the latter the priority may be missing, as in files.
pub(super) fn parse(line: &str, times: TimeRules) -> Result<Record, String> {
    let year = |(month, day, ..): (u32, u32, u32, u32, u32)| times.year(month, day);
    let zone = Some(times.offset);
    let message = parse_message_with_year_exact_tz(line, year, zone, Variant::Either);
    let message = message.map_err(|_| "must be syslog of RFC 5424 or RFC 3164".to_owned())?;
    let time_unix_nano = match message.timestamp {
        Some(time) => time::nanos(time.to_utc())?,
        // RFC 5424 has a mark for a time that the source does not have.
        None if matches!(message.protocol, Protocol::RFC5424(_)) => 0,
        None => return Err("must have a time".to_owned()),
    };
    let mut record = Record {
        time_unix_nano,
        body: Some(any_value::of_text(message.msg.trim())),
        ..Record::default()
    };
    if let Some(severity) = message.severity {
        record.severity_number = number(severity);
        record.severity_text = severity.as_str().to_owned();
    }
    attributes(&message, &mut record);
    Ok(record)
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
            let key = format!("{}.{key}", element.id);
            record.attributes.insert(key, any_value::of_text(value));
        }
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
