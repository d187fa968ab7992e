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
use trestle_service::semconv;

use super::{SPAN_ID_BYTES, TRACE_ID_BYTES};
use crate::batch::{RecordError, check::check_id_bytes, items::entry};

/// The attributes of a record beside those of its span. The names are those of OpenTelemetry for formats other than
/// OTLP, or else those of Jaeger, or else those of the fields.
///
/// # Errors
/// An id, a kind or a status that breaks a rule.
pub(super) fn attributes_of_span(span: &Span) -> Result<Vec<(&'static str, Value)>, RecordError> {
    let (status, description) = status(span)?;
    let text = |text: &str| (!text.is_empty()).then(|| Value::StringValue(text.to_owned()));
    let count = |count: u32| (count > 0).then(|| Value::IntValue(count.into()));
    // Some exporters write zeros for the parent of a root.
    let is_root = span.parent_span_id.is_empty() || *span.parent_span_id == [0; SPAN_ID_BYTES];
    let parent = match is_root {
        true => None,
        false => Some(hex("parent_span_id", &span.parent_span_id, SPAN_ID_BYTES)?),
    };
    let attributes = [
        ("span.kind", text(kind(span)?)),
        ("parent_span_id", parent),
        (semconv::SPAN_STATUS, text(status)),
        (semconv::SPAN_STATUS_DESCRIPTION, text(description)),
        (semconv::SPAN_DROPPED_EVENTS, count(span.dropped_events_count)),
        (semconv::SPAN_DROPPED_LINKS, count(span.dropped_links_count)),
        ("w3c.tracestate", text(&span.trace_state)),
        ("links", links(span)?),
    ];
    Ok(attributes.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
}

fn kind(span: &Span) -> Result<&'static str, RecordError> {
    match SpanKind::try_from(span.kind) {
        Ok(SpanKind::Unspecified) => Ok(""),
        Ok(SpanKind::Internal) => Ok("internal"),
        Ok(SpanKind::Server) => Ok("server"),
        Ok(SpanKind::Client) => Ok("client"),
        Ok(SpanKind::Producer) => Ok("producer"),
        Ok(SpanKind::Consumer) => Ok("consumer"),
        Err(_) => Err(RecordError::invalid("kind", format!("is `{}`, not 0 to 5", span.kind))),
    }
}

/// The code of the status and its description, each empty where it is not stated.
fn status(span: &Span) -> Result<(&'static str, &str), RecordError> {
    let Some(status) = &span.status else { return Ok(("", "")) };
    let code = match StatusCode::try_from(status.code) {
        Ok(StatusCode::Unset) => "",
        Ok(StatusCode::Ok) => "OK",
        Ok(StatusCode::Error) => semconv::SPAN_ERROR,
        Err(_) => {
            let rule = format!("is `{}`, not 0 to 2", status.code);
            return Err(RecordError::invalid("status.code", rule));
        }
    };
    Ok((code, &status.message))
}

/// The links as a list of maps; none where there are none.
fn links(span: &Span) -> Result<Option<Value>, RecordError> {
    let map = |(index, found): (usize, &Link)| {
        link(found).map_err(|error| error.within(&format!("links[{index}]")))
    };
    let values: Vec<_> = span.links.iter().enumerate().map(map).collect::<Result<_, _>>()?;
    Ok((!values.is_empty()).then(|| Value::ArrayValue(ArrayValue { values })))
}

fn link(link: &Link) -> Result<AnyValue, RecordError> {
    let mut values = vec![
        entry("trace_id", hex("trace_id", &link.trace_id, TRACE_ID_BYTES)?),
        entry("span_id", hex("span_id", &link.span_id, SPAN_ID_BYTES)?),
    ];
    if !link.attributes.is_empty() {
        let attributes = KeyValueList { values: link.attributes.clone() };
        values.push(entry("attributes", Value::KvlistValue(attributes)));
    }
    Ok(AnyValue { value: Some(Value::KvlistValue(KeyValueList { values })) })
}

/// A valid id as lower-case hexadecimal text.
fn hex(field: &str, id: &[u8], length: usize) -> Result<Value, RecordError> {
    check_id_bytes(field, id, length)?;
    let text = id.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
        text
    });
    Ok(Value::StringValue(text))
}
