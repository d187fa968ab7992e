//! Log lines: their outputs, and the trace that they belong to.

use std::{
    fmt,
    fs::OpenOptions,
    io::{self, BufWriter, IsTerminal as _, Write},
    path::Path,
};

use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use tracing::{Event, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    Layer, Registry,
    filter::Targets,
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{DefaultFields, Format, JsonFields, Writer},
        layer,
    },
    layer::Filter,
    registry::LookupSpan,
};
use trestle_service::semconv;

use super::settings::{AccessOutput, LogFormat, TelemetrySettings};

/// Lines of the access log that may wait for their output; more are dropped, and counted.
const ACCESS_LINES_MAX: usize = 16 * 1024;

/// A subscriber layer for the events and spans of the process.
pub(super) type Receiver = Box<dyn Layer<Registry> + Send + Sync>;

/// The log on standard error, without the access log.
pub(super) fn lines(
    settings: &TelemetrySettings,
    filter: impl Filter<Registry> + Send + Sync + 'static,
) -> Receiver {
    match settings.log_format {
        LogFormat::Text => {
            let is_ansi = io::stderr().is_terminal() && may_color(env_text);
            let form = Format::default().with_ansi(is_ansi);
            // That of the layer is for the fields of spans.
            let lines = layer().with_ansi(is_ansi).with_writer(io::stderr);
            lines.event_format(InTrace { form, splice: after_text }).with_filter(filter).boxed()
        }
        LogFormat::Json => {
            let form = Format::default().json();
            let lines = layer().fmt_fields(JsonFields::new()).with_writer(io::stderr);
            lines.event_format(InTrace { form, splice: into_json }).with_filter(filter).boxed()
        }
    }
}

/// Whether a terminal may be sent colors, by the variables that terminals and their users set (<https://no-color.org>).
fn may_color(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_off = variable("NO_COLOR").is_some_and(|text| !text.is_empty());
    !is_off && variable("TERM").is_none_or(|terminal| terminal != "dumb")
}

#[allow(clippy::disallowed_methods, reason = "variables of every program, and no settings of ours")]
fn env_text(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The access log and its guard: dropping the guard writes the last lines.
pub(super) struct AccessLogOutput {
    pub(super) receiver: Receiver,
    pub(super) errors: ErrorCounter,
    pub(super) guard: WorkerGuard,
}

/// Opens the access log, if it is configured.
///
/// # Errors
/// A file that cannot be opened.
pub(super) fn access(settings: &TelemetrySettings) -> io::Result<Option<AccessLogOutput>> {
    let (writer, guard) = match &settings.access_log {
        AccessOutput::Off => return Ok(None),
        AccessOutput::Stderr => in_background(io::stderr()),
        AccessOutput::File(path) => in_background(append(path)?),
    };
    let errors = writer.error_counter();
    let filter = Targets::new().with_target(semconv::ACCESS_TARGET, tracing::Level::INFO);
    let receiver = match settings.log_format {
        LogFormat::Text => {
            let form = Format::default().with_ansi(false).with_level(false);
            let fields = layer().fmt_fields(DefaultFields::new());
            let lines = fields.with_ansi(false).with_writer(writer);
            lines.event_format(InTrace { form, splice: after_text }).with_filter(filter).boxed()
        }
        LogFormat::Json => {
            let form = Format::default().json().flatten_event(true).with_level(false);
            let form = form.with_span_list(false).with_current_span(false);
            let lines = layer().fmt_fields(JsonFields::new()).with_writer(writer);
            lines.event_format(InTrace { form, splice: into_json }).with_filter(filter).boxed()
        }
    };
    Ok(Some(AccessLogOutput { receiver, errors, guard }))
}

fn append(path: &Path) -> io::Result<std::fs::File> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(|error| {
        let path = path.display();
        io::Error::new(error.kind(), format!("telemetry.access_log: path=`{path}`, {error}"))
    })
}

/// A thread writes all pending lines at a time, so that a slow output never blocks a call.
fn in_background(output: impl Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
    let builder = NonBlockingBuilder::default().buffered_lines_limit(ACCESS_LINES_MAX).lossy(true);
    builder.thread_name("access-log").finish(BufWriter::new(output))
}

/// Lines with the trace in which they were written, if one exists.
struct InTrace<F> {
    form: F,
    splice: fn(&mut String, &SpanContext),
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

fn after_text(line: &mut String, context: &SpanContext) {
    let end = line.trim_end_matches('\n').len();
    let (trace, span) = (context.trace_id(), context.span_id());
    line.insert_str(end, &format!(" {}={trace} {}={span}", semconv::TRACE_ID, semconv::SPAN_ID));
}

fn into_json(line: &mut String, context: &SpanContext) {
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
    fn colors_are_off_where_the_user_or_the_terminal_has_none() {
        for (name, value, expected) in [
            ("NO_COLOR", "1", false),
            ("NO_COLOR", "", true),
            ("TERM", "dumb", false),
            ("TERM", "xterm-256color", true),
        ] {
            let variable = |key: &str| (key == name).then(|| value.to_owned());
            assert_eq!(may_color(variable), expected, "{name}={value}");
        }
        assert!(may_color(|_| None));
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
