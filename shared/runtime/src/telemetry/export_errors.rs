//! Errors of exports, which repeat as long as the collector is away: one of them is logged in a while.

use std::{
    error::Error,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use opentelemetry_sdk::error::OTelSdkError;
use tonic::{Code, Status};
use tracing::{Level, Metadata, Subscriber, warn};
use tracing_subscriber::{filter::dynamic_filter_fn, layer::Filter};

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(5 * 60);
/// How the targets of the exporters begin.
const EXPORTERS: &str = "opentelemetry";
/// How the names of events of the exporters begin whose error our own line has.
const FAILED: &str = "Export.Failed.";

/// How the text of a failed export of the SDK names the code of gRPC, behind which are the causes, if any.
const CODE: &str = "export failed with gRPC code: ";

/// The log of failed exports to one collector.
#[derive(Debug)]
pub(super) struct ExportErrors {
    endpoint: String,
    last: Mutex<Option<Instant>>,
}

impl ExportErrors {
    pub(super) fn new(endpoint: &str) -> Self {
        Self { endpoint: endpoint.to_owned(), last: Mutex::default() }
    }

    /// Logs why an export of `signal` failed, unless another one was logged a while ago.
    pub(super) fn log(&self, signal: &'static str, cause: &str) {
        if may_log(&self.last, Instant::now()) {
            let endpoint = &*self.endpoint;
            warn!(
                signal,
                endpoint,
                cause,
                "export to telemetry.otlp_endpoint failed; not logged again within 5 minutes"
            );
        }
    }
}

/// Why a call to the collector failed, with the causes: the text of a status has those as `Debug`, and those of the
/// system have numbers.
pub(super) fn cause_of_status(status: &Status) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut cause = status.source();
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    match causes.is_empty() {
        true if status.message().is_empty() => status.code().to_string(),
        true => format!("{}: {}", status.code(), status.message()),
        false => in_words(causes.iter().map(String::as_str)),
    }
}

/// Why an export of the SDK failed; none after the end of telemetry.
pub(super) fn cause_of_error(error: &OTelSdkError) -> Option<String> {
    let text = match error {
        OTelSdkError::AlreadyShutdown => return None,
        OTelSdkError::Timeout(within) => {
            return Some(format!("no answer in {} s", within.as_secs()));
        }
        OTelSdkError::InternalFailure(text) => text,
    };
    let Some((_, failed)) = text.split_once(CODE) else { return Some(text.clone()) };
    Some(match failed.split_once(": ") {
        Some((_, causes)) => in_words(causes.split(": ")),
        None => {
            let code = (0..=16).map(Code::from).find(|code| format!("{code:?}") == failed);
            code.map_or_else(|| failed.to_owned(), |code| code.to_string())
        }
    })
}

/// Causes behind each other, each once and without the number of an error of the system.
fn in_words<'a>(causes: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for cause in causes {
        let cause = cause.split(" (os error ").next().unwrap_or_default();
        // Some errors show their cause themselves.
        if text.is_empty() {
            text.push_str(cause);
        } else if !text.ends_with(cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Passes every line, except those of the SDK about failed exports, and of its other warnings one in a while.
pub(super) fn collapsed<S: Subscriber>() -> impl Filter<S> + Send + Sync {
    let last = Mutex::new(None);
    dynamic_filter_fn(move |metadata: &Metadata<'_>, _| {
        !is_of_export(metadata)
            || (!metadata.name().starts_with(FAILED) && may_log(&last, Instant::now()))
    })
}

fn is_of_export(metadata: &Metadata<'_>) -> bool {
    metadata.is_event()
        && metadata.target().starts_with(EXPORTERS)
        && *metadata.level() <= Level::WARN
}

fn may_log(last: &Mutex<Option<Instant>>, now: Instant) -> bool {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let is_due = last.is_none_or(|last| now.duration_since(last) >= EVERY);
    if is_due {
        *last = Some(now);
    }
    is_due
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use tracing_subscriber::{Layer, Registry, layer::SubscriberExt as _};

    use super::*;

    #[test]
    fn a_failed_call_has_its_causes_and_no_debug_text() {
        let refused = io::Error::from_raw_os_error(111);
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, refused);
        let mut status = Status::unavailable("the service is unavailable");
        status.set_source(Arc::new(refused));

        assert_eq!(cause_of_status(&status), "Connection refused");
        let denied = cause_of_status(&Status::unauthenticated("no token"));
        assert!(denied.ends_with("credentials: no token"), "{denied}");
    }

    #[test]
    fn a_failed_export_of_the_sdk_has_its_causes_else_its_code_in_words() {
        let cause = |text: &str| cause_of_error(&OTelSdkError::InternalFailure(text.to_owned()));
        let client = "TonicTracesClient export failed with gRPC code: ";

        for (text, expected) in [
            (
                "Unavailable: transport error: tcp connect error: Connection refused (os error 111)",
                "transport error: tcp connect error: Connection refused",
            ),
            ("Unavailable: a (os error 1): a (os error 1)", "a"),
            ("DeadlineExceeded", "Deadline expired before operation could complete"),
            ("Strange", "Strange"),
        ] {
            assert_eq!(cause(&format!("{client}{text}")).as_deref(), Some(expected));
        }
        assert_eq!(cause("closed").as_deref(), Some("closed"));
        let late = OTelSdkError::Timeout(Duration::from_secs(5));
        assert_eq!(cause_of_error(&late).as_deref(), Some("no answer in 5 s"));
        assert_eq!(cause_of_error(&OTelSdkError::AlreadyShutdown), None);
    }

    #[test]
    fn one_line_in_five_minutes_may_be_logged() {
        let (last, start) = (Mutex::new(None), Instant::now());

        let logged = [0, 1, 299, 300, 301, 600];
        let logged = logged.map(|s| may_log(&last, start + Duration::from_secs(s)));

        assert_eq!(logged, [true, false, false, true, false, true]);
    }

    struct Count(Arc<AtomicUsize>);

    impl<S: Subscriber> Layer<S> for Count {
        fn on_event(&self, _: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn repeated_warnings_of_exporters_are_one_line_or_none_and_others_are_all_logged() {
        let lines = Arc::new(AtomicUsize::new(0));
        let receiver = Count(Arc::clone(&lines)).with_filter(collapsed());
        tracing::subscriber::with_default(Registry::default().with(receiver), || {
            for _ in 0..3 {
                tracing::warn!(name: "Export.Failed.Exhausted", target: "opentelemetry-otlp", "");
            }
            assert_eq!(lines.load(Ordering::Relaxed), 0);
            for _ in 0..3 {
                tracing::warn!(target: "opentelemetry_sdk", "BatchSpanProcessor.SpansDropped");
                tracing::warn!(target: "opentelemetry-otlp", "PartialSuccess");
            }
            assert_eq!(lines.swap(0, Ordering::Relaxed), 1);
            for _ in 0..3 {
                tracing::error!("ours");
            }
        });

        assert_eq!(lines.load(Ordering::Relaxed), 3);
    }
}
