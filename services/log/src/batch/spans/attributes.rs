//! What a record of a span has no field for: attributes with established names.

use std::fmt::Write as _;

use trestle_proto::opentelemetry::proto::{
    common::v1::{AnyValue, ArrayValue, KeyValueList, any_value::Value},
    trace::v1::{
        Span,
        span::{Link, SpanKind},
        status::StatusCode,
    },
};
use trestle_rpc::semconv;

use crate::batch::{
    check::check_id_bytes,
    items::entry,
    repair::repair_entries,
    rules::{SPAN_ID_BYTES, TRACE_ID_BYTES},
};

/// The attributes of a record beside those of its span. The names are those of OpenTelemetry for formats other than
/// OTLP, or else those of Jaeger, or else those of the fields.
pub(super) struct SpanAttributes {
    pub(super) values: Vec<(&'static str, Value)>,
    /// How many are left out since they are invalid: a kind, a status.
    pub(super) left_out: u32,
}

impl SpanAttributes {
    /// Those of a span of which `dropped_events` are left out.
    pub(super) fn of(span: &Span, dropped_events: u32) -> Self {
        let mut left_out = 0;
        let kind = kind(span).unwrap_or_else(|| {
            left_out += 1;
            ""
        });
        let (status, description) = status(span);
        let status = status.unwrap_or_else(|| {
            left_out += 1;
            ""
        });
        let text = |text: &str| (!text.is_empty()).then(|| Value::StringValue(text.to_owned()));
        let count = |count: u32| (count > 0).then(|| Value::IntValue(count.into()));
        let links = links(span);
        let all_links = span.links.len();
        let dropped_links = u32::try_from(all_links - links.len()).unwrap_or(u32::MAX);
        let dropped_links = span.dropped_links_count.saturating_add(dropped_links);
        let dropped_events = span.dropped_events_count.saturating_add(dropped_events);
        let links = (!links.is_empty()).then_some(Value::ArrayValue(ArrayValue { values: links }));
        let attributes = [
            ("span.kind", text(kind)),
            ("parent_span_id", hex(&span.parent_span_id, SPAN_ID_BYTES)),
            (semconv::SPAN_STATUS, text(status)),
            (semconv::SPAN_STATUS_DESCRIPTION, text(description)),
            (semconv::SPAN_DROPPED_EVENTS, count(dropped_events)),
            (semconv::SPAN_DROPPED_LINKS, count(dropped_links)),
            ("w3c.tracestate", text(&span.trace_state)),
            ("links", links),
        ];
        let values = attributes.into_iter().filter_map(|(key, value)| Some((key, value?)));
        Self { values: values.collect(), left_out }
    }
}

/// The kind, empty where it is not stated; none where it is unknown.
fn kind(span: &Span) -> Option<&'static str> {
    Some(match SpanKind::try_from(span.kind).ok()? {
        SpanKind::Unspecified => "",
        SpanKind::Internal => "internal",
        SpanKind::Server => "server",
        SpanKind::Client => "client",
        SpanKind::Producer => "producer",
        SpanKind::Consumer => "consumer",
    })
}

/// The code of the status, none where it is unknown, and its description; each empty where it is not stated.
fn status(span: &Span) -> (Option<&'static str>, &str) {
    let Some(status) = &span.status else { return (Some(""), "") };
    let code = match StatusCode::try_from(status.code) {
        Ok(StatusCode::Unset) => Some(""),
        Ok(StatusCode::Ok) => Some("OK"),
        Ok(StatusCode::Error) => Some(semconv::SPAN_ERROR),
        Err(_) => None,
    };
    (code, &status.message)
}

/// The links as maps, without those that have nothing valid.
fn links(span: &Span) -> Vec<AnyValue> {
    span.links.iter().filter_map(link).collect()
}

/// A link as a map. One without a valid context is kept where it has something else.
fn link(link: &Link) -> Option<AnyValue> {
    let (attributes, left_out) = repair_entries(&link.attributes);
    let dropped = u64::from(link.dropped_attributes_count).saturating_add(left_out);
    let attributes =
        (!attributes.is_empty()).then_some(Value::KvlistValue(KeyValueList { values: attributes }));
    let state = (!link.trace_state.is_empty()).then(|| link.trace_state.clone());
    let values = [
        ("trace_id", hex(&link.trace_id, TRACE_ID_BYTES)),
        ("span_id", hex(&link.span_id, SPAN_ID_BYTES)),
        ("trace_state", state.map(Value::StringValue)),
        ("attributes", attributes),
        (
            "dropped_attributes_count",
            (dropped > 0).then(|| Value::IntValue(i64::try_from(dropped).unwrap_or(i64::MAX))),
        ),
    ];
    let values = values.into_iter().filter_map(|(key, value)| Some(entry(key, value?)));
    let values: Vec<_> = values.collect();
    let map = (!values.is_empty()).then_some(Value::KvlistValue(KeyValueList { values }));
    map.map(|map| AnyValue { value: Some(map) })
}

/// An id as lower-case hexadecimal text; none where it is invalid.
fn hex(id: &[u8], length: usize) -> Option<Value> {
    check_id_bytes("", id, length).ok()?;
    let text = id.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
        text
    });
    Some(Value::StringValue(text))
}
