//! Batches of OTLP traces: a span is a record whose value is its duration, and each of its events is a record.

mod attributes;

use std::time::Duration;

use prost::Message as _;
use trestle_proto::opentelemetry::proto::{
    common::v1::{AnyValue, any_value::Value},
    logs::v1::SeverityNumber,
    trace::v1::{ResourceSpans, Span, span::Event, status::StatusCode},
};

use self::attributes::attributes_of_span;
use super::{
    RecordError,
    check::check_id_bytes,
    export::{ExportEncoder, ExportFields, ItemPlace, ResourceItems},
    items::{ItemRecords, decoded, put_attributes},
};
use crate::wire::{put_bytes, put_fixed32, put_fixed64, put_varint};

/// Bytes of an id of a trace.
const TRACE_ID_BYTES: usize = 16;
/// Bytes of an id of a span.
const SPAN_ID_BYTES: usize = 8;

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

fn add_span(span: &Span, records: &mut ItemRecords) -> Result<(), RecordError> {
    records.push(span_record(span)?).map_err(|error| match error.field.as_str() {
        "time_unix_nano" => RecordError { field: "start_time_unix_nano".to_owned(), ..error },
        _ => error,
    })?;
    for (index, event) in span.events.iter().enumerate() {
        let pushed = records.push(event_record(span, event));
        pushed.map_err(|error| error.within(&format!("events[{index}]")))?;
    }
    Ok(())
}

/// The encoded record of a span.
fn span_record(span: &Span) -> Result<Vec<u8>, RecordError> {
    check_id_bytes("trace_id", &span.trace_id, TRACE_ID_BYTES)?;
    check_id_bytes("span_id", &span.span_id, SPAN_ID_BYTES)?;
    let (duration, more) = (duration(span)?, attributes_of_span(span)?);
    let is_error = span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
    let mut out = Vec::new();
    put_fixed64(&mut out, 1, span.start_time_unix_nano);
    if is_error {
        put_varint(&mut out, 2, SeverityNumber::Error as u64);
        put_bytes(&mut out, 3, b"ERROR");
    }
    put_attributes(&mut out, &span.attributes, more);
    put_common(&mut out, &span.name, span.dropped_attributes_count, span);
    put_fixed64(&mut out, 16, duration.as_secs_f64().to_bits());
    Ok(out)
}

/// The encoded record of an event of a span.
fn event_record(span: &Span, event: &Event) -> Vec<u8> {
    let mut out = Vec::new();
    if event.time_unix_nano != 0 {
        put_fixed64(&mut out, 1, event.time_unix_nano);
    }
    put_attributes(&mut out, &event.attributes, []);
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

fn duration(span: &Span) -> Result<Duration, RecordError> {
    let (start, end) = (span.start_time_unix_nano, span.end_time_unix_nano);
    if start == 0 {
        return Err(RecordError::invalid("start_time_unix_nano", "is missing"));
    }
    let before_start = || {
        let rule = format!("is before the start: end=`{end}`, start=`{start}`");
        RecordError::invalid("end_time_unix_nano", rule)
    };
    end.checked_sub(start).map(Duration::from_nanos).ok_or_else(before_start)
}
