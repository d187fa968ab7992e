//! Log lines and their outputs.

use std::{
    fs::OpenOptions,
    io::{self, BufWriter, IsTerminal as _, Write},
    path::Path,
};

use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    Layer, Registry,
    filter::Targets,
    fmt::{
        format::{DefaultFields, Format, JsonFields},
        layer,
    },
    layer::Filter,
};
use trestle_rpc::semconv;

use super::{
    colors::{env_text, may_color},
    in_trace::{InTrace, after_text, into_json},
    settings::{AccessOutput, LogFormat, TelemetrySettings},
};

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
