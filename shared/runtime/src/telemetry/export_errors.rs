//! Errors of exports, which repeat as long as the collector is away: one of them is logged in a while.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{filter::dynamic_filter_fn, layer::Filter};

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(5 * 60);
/// How the targets of the exporters begin.
const EXPORTERS: &str = "opentelemetry";

/// Passes every line, and of those about failed exports one in a while.
pub(super) fn collapsed<S: Subscriber>() -> impl Filter<S> + Send + Sync {
    let last = Mutex::new(None);
    dynamic_filter_fn(move |metadata: &Metadata<'_>, _| {
        !is_of_export(metadata) || may_log(&last, Instant::now())
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
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tracing_subscriber::{Layer, Registry, layer::SubscriberExt as _};

    use super::*;

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
    fn repeated_errors_of_exporters_are_one_line_and_others_are_all_logged() {
        let lines = Arc::new(AtomicUsize::new(0));
        let receiver = Count(Arc::clone(&lines)).with_filter(collapsed());
        tracing::subscriber::with_default(Registry::default().with(receiver), || {
            for _ in 0..3 {
                tracing::error!(target: "opentelemetry_sdk", "BatchSpanProcessor.ExportError");
                tracing::warn!(target: "opentelemetry-otlp", "ExportFailed");
            }
            assert_eq!(lines.swap(0, Ordering::Relaxed), 1);
            for _ in 0..3 {
                tracing::error!("ours");
            }
        });

        assert_eq!(lines.load(Ordering::Relaxed), 3);
    }
}
