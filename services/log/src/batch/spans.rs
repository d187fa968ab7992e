//! Batches of OTLP traces: a span is a record whose value is its duration, and each of its events is a record.

mod attributes;

use std::time::Duration;

use prost::Message as _;
use trestle_proto::{
    opentelemetry::proto::{
        common::v1::{AnyValue, any_value::Value},
        logs::v1::SeverityNumber,
        trace::v1::{ResourceSpans, Span, span::Event, status::StatusCode},
    },
    wire::{put_bytes, put_fixed32, put_fixed64, put_varint},
};

use self::attributes::SpanAttributes;
use super::{
    RecordError,
    check::check_id_bytes,
    export::{ExportEncoder, ExportFields, ItemPlace, ResourceItems},
    items::{ItemRecords, decoded, put_attributes},
    rules::{SPAN_ID_BYTES, TRACE_ID_BYTES},
};

impl ResourceItems for ResourceSpans {
    const FIELDS: ExportFields =
        ExportFields { resources: "resource_spans", scopes: "scope_spans", items: "spans" };

    fn count(_: &[u8]) -> u64 {
        1
    }

    fn add<'a>(span: &'a [u8], place: ItemPlace, encoder: &mut ExportEncoder<'a>) {
        let added = encoder.add_records(|records| add_span(&decoded(span)?, records));
        if let Err(error) = added {
            encoder.rejected.add(1, &place.to_string(), &error);
        }
    }
}

/// Adds the records of a span and of its events. An event that violates a rule is left out alone, and counted.
fn add_span(span: &Span, records: &mut ItemRecords) -> Result<(), RecordError> {
    check_id_bytes("trace_id", &span.trace_id, TRACE_ID_BYTES)?;
    check_id_bytes("span_id", &span.span_id, SPAN_ID_BYTES)?;
    let admit = |event| records.admit(event_record(span, event)).ok();
    let events: Vec<_> = span.events.iter().filter_map(admit).collect();
    let dropped_events = u32::try_from(span.events.len() - events.len()).unwrap_or(u32::MAX);
    let record = records.admit(span_record(span, dropped_events));
    records.push(record.map_err(|error| match error.field.as_str() {
        "time_unix_nano" => RecordError { field: "start_time_unix_nano".to_owned(), ..error },
        _ => error,
    })?)?;
    events.into_iter().try_for_each(|event| records.push(event))
}

/// The encoded record of a span of which so many events are left out.
fn span_record(span: &Span, dropped_events: u32) -> Vec<u8> {
    let SpanTimes { start, duration, ends_early } = SpanTimes::of(span);
    let SpanAttributes { values, left_out } = SpanAttributes::of(span, dropped_events);
    let left_out = left_out.saturating_add(ends_early.into());
    let is_error = span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
    let mut out = Vec::new();
    if start != 0 {
        put_fixed64(&mut out, 1, start);
    }
    if is_error {
        put_varint(&mut out, 2, SeverityNumber::Error as u64);
        put_bytes(&mut out, 3, b"ERROR");
    }
    let reserved: Vec<_> = values.iter().map(|(key, _)| *key).collect();
    put_attributes(&mut out, &span.attributes, &reserved, values);
    let dropped = span.dropped_attributes_count.saturating_add(left_out);
    put_common(&mut out, &span.name, dropped, span);
    put_fixed64(&mut out, 16, duration.as_secs_f64().to_bits());
    out
}

/// The encoded record of an event of a span.
fn event_record(span: &Span, event: &Event) -> Vec<u8> {
    let mut out = Vec::new();
    if event.time_unix_nano != 0 {
        put_fixed64(&mut out, 1, event.time_unix_nano);
    }
    put_attributes(&mut out, &event.attributes, &[], []);
    put_common(&mut out, &event.name, event.dropped_attributes_count, span);
    put_bytes(&mut out, 12, event.name.as_bytes());
    out
}

/// Writes what records of a span and of its events have: a name as the body, the span and its trace.
fn put_common(out: &mut Vec<u8>, name: &str, dropped_attributes: u32, span: &Span) {
    let body = AnyValue { value: Some(Value::StringValue(name.to_owned())) };
    put_bytes(out, 5, &body.encode_to_vec());
    if dropped_attributes != 0 {
        put_varint(out, 7, dropped_attributes.into());
    }
    if span.flags != 0 {
        put_fixed32(out, 8, span.flags);
    }
    put_bytes(out, 9, &span.trace_id);
    put_bytes(out, 10, &span.span_id);
}

/// When a span began, and how long it took.
struct SpanTimes {
    /// The start, or else the end, in nanoseconds since 1970; 0 where it has neither.
    start: u64,
    /// 0 where the start or the end is missing, or the end is before the start.
    duration: Duration,
    /// Whether the end is before the start, and so left out.
    ends_early: bool,
}

impl SpanTimes {
    fn of(span: &Span) -> Self {
        let (start, end) = match (span.start_time_unix_nano, span.end_time_unix_nano) {
            (0, end) => (end, end),
            times => times,
        };
        let duration = Duration::from_nanos(end.saturating_sub(start));
        Self { start, duration, ends_early: end != 0 && end < start }
    }
}
