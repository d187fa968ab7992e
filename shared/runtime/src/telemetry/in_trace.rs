//! The trace that a line of the log belongs to.

use std::fmt;

use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};
use trestle_rpc::semconv;

/// Lines with the trace in which they were written, if one exists.
pub(super) struct InTrace<F> {
    pub(super) form: F,
    pub(super) splice: fn(&mut String, &SpanContext),
}

impl<S, N, F> FormatEvent<S, N> for InTrace<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let context = opentelemetry::Context::map_current(|context| {
            let span = context.span();
            let context = span.span_context();
            context.is_valid().then(|| context.clone())
        });
        let Some(context) = context else {
            return self.form.format_event(ctx, writer, event);
        };
        let mut line = String::new();
        self.form.format_event(ctx, Writer::new(&mut line), event)?;
        (self.splice)(&mut line, &context);
        writer.write_str(&line)
    }
}

pub(super) fn after_text(line: &mut String, context: &SpanContext) {
    let end = line.trim_end_matches('\n').len();
    let (trace, span) = (context.trace_id(), context.span_id());
    line.insert_str(end, &format!(" {}={trace} {}={span}", semconv::TRACE_ID, semconv::SPAN_ID));
}

pub(super) fn into_json(line: &mut String, context: &SpanContext) {
    let (trace, span) = (context.trace_id(), context.span_id());
    let names = (semconv::TRACE_ID, semconv::SPAN_ID);
    let ids = format!("{:?}:\"{trace}\",{:?}:\"{span}\",", names.0, names.1);
    // Every line is an object with members, so these may be first.
    line.insert_str(usize::from(line.starts_with('{')), &ids);
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanId, TraceFlags, TraceId, TraceState};

    use super::*;

    fn context() -> SpanContext {
        let (trace, span) = (TraceId::from_bytes([0xAB; 16]), SpanId::from_bytes([0xCD; 8]));
        SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::default())
    }

    #[test]
    fn a_text_line_ends_with_its_trace() {
        let mut line = "INFO something happened what=`1`\n".to_owned();

        after_text(&mut line, &context());

        let (trace, span) = ("ab".repeat(16), "cd".repeat(8));
        let expected =
            format!("INFO something happened what=`1` trace_id={trace} span_id={span}\n");
        assert_eq!(line, expected);
    }

    #[test]
    fn a_json_line_has_its_trace_as_members() {
        let mut line = "{\"level\":\"INFO\"}\n".to_owned();

        into_json(&mut line, &context());

        let (trace, span) = ("ab".repeat(16), "cd".repeat(8));
        let expected =
            format!("{{\"trace_id\":\"{trace}\",\"span_id\":\"{span}\",\"level\":\"INFO\"}}\n");
        assert_eq!(line, expected);
    }
}
