//! The trace context of a call across processes, as W3C `traceparent` headers, and sampling.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::{
    Context,
    context::FutureExt as _,
    propagation::{Extractor, Injector, TextMapPropagator as _},
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::{Instrument as _, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use trestle_kv::turns::Owner;

use crate::exemplar::Exemplars;

/// The headers of the trace context.
const TRACE_HEADERS: [HeaderName; 3] =
    [PARENT_HEADER, HeaderName::from_static("tracestate"), HeaderName::from_static("baggage")];

const PARENT_HEADER: HeaderName = HeaderName::from_static("traceparent");

/// How the paths of exports by OTLP begin. They start no trace, or a process that exports its spans to itself would do
/// so without an end: the export of a span would be a span.
const EXPORTS: &str = "/opentelemetry.proto.collector.";

/// The trace context headers among some headers, each as often as it occurs.
#[must_use]
pub fn trace_headers(headers: &HeaderMap) -> HeaderMap {
    let mut trace = HeaderMap::new();
    for name in TRACE_HEADERS {
        for value in headers.get_all(&name) {
            trace.append(name.clone(), value.clone());
        }
    }
    trace
}

/// The sampling of a process, and its exemplars.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    /// Share of the traces started by this process that are sampled, 0 to 1; none without an exporter. Exports by OTLP
    /// start none. The sampling decision of the caller takes precedence.
    pub ratio: Option<f64>,
    /// Where the exemplars are stored.
    pub exemplars: Exemplars,
}

/// The sampling decision of a call.
#[derive(Debug)]
pub(crate) enum Tracing {
    /// Sampled: the call has a span, as a child of the caller's span if it sent one.
    Sampled(Option<Context>),
    /// Not sampled by this process. Logs still name the trace.
    Unsampled(Context),
    /// No trace.
    None,
}

impl Traces {
    /// Decides for the call of `path` with these `headers`; `random` decides if the caller did not.
    pub(crate) fn decide(&self, path: &str, headers: &HeaderMap, random: fn() -> u128) -> Tracing {
        let parent = extract(headers);
        let kept = parent.as_ref().map(|parent| parent.span().span_context().is_sampled());
        match (self.ratio, parent, kept) {
            (Some(_), parent, Some(true)) => Tracing::Sampled(parent),
            (_, Some(parent), _) => Tracing::Unsampled(parent),
            (None, None, _) => Tracing::None,
            (Some(ratio), None, _) => {
                let drawn = random();
                if is_drawn(drawn, ratio) && !path.starts_with(EXPORTS) {
                    return Tracing::Sampled(None);
                }
                Tracing::Unsampled(passed_over(drawn, random()))
            }
        }
    }
}

/// Whether a random number falls into a share of all numbers.
fn is_drawn(drawn: u128, ratio: f64) -> bool {
    let drawn = u32::try_from(drawn >> 96).unwrap_or(u32::MAX);
    f64::from(drawn) < ratio * (f64::from(u32::MAX) + 1.0)
}

/// A trace that is not sampled.
fn passed_over(trace: u128, span: u128) -> Context {
    let trace = TraceId::from_bytes(trace.to_be_bytes());
    let [.., a, b, c, d, e, f, g, h] = span.to_be_bytes();
    let span = SpanId::from_bytes([a, b, c, d, e, f, g, h]);
    let context = SpanContext::new(trace, span, TraceFlags::default(), true, TraceState::default());
    Context::new().with_remote_span_context(context)
}

/// The trace context in headers, if exactly one is present.
fn extract(headers: &HeaderMap) -> Option<Context> {
    let mut parents = headers.get_all(PARENT_HEADER).iter();
    if parents.next().is_none() || parents.next().is_some() {
        return None;
    }
    // Not derived from the current context of this thread.
    let context =
        TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderReader(headers));
    context.span().span_context().is_valid().then_some(context)
}

/// A future that keeps the current trace context, and the owner of the current task, on any thread.
pub fn carry<F: Future>(work: F) -> impl Future<Output = F::Output> {
    Owner::current().scope(work.in_current_span().with_current_context())
}

/// Whether the current work belongs to a sampled trace. Code that creates a span checks this first:
/// a span of an unsampled trace costs as much, since the registry creates every span that any
/// subscriber may enable.
pub(crate) fn is_sampled() -> bool {
    Context::map_current(|context| {
        context.has_active_span() && context.span().span_context().is_sampled()
    })
}

/// Sets `span` in the headers as the parent of the spans of the next process.
pub fn inject(span: &Span, headers: &mut HeaderMap) {
    inject_context(&span.context(), headers);
}

/// Sets the current trace context in the headers, if any, so that the next process makes
/// the same sampling decision.
pub(crate) fn inject_current(headers: &mut HeaderMap) {
    Context::map_current(|context| {
        if context.has_active_span() {
            inject_context(context, headers);
        }
    });
}

fn inject_context(context: &Context, headers: &mut HeaderMap) {
    TraceContextPropagator::new().inject_context(context, &mut HeaderWriter(headers));
}

struct HeaderReader<'a>(&'a HeaderMap);

impl Extractor for HeaderReader<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct HeaderWriter<'a>(&'a mut HeaderMap);

impl Injector for HeaderWriter<'_> {
    fn set(&mut self, key: &str, value: String) {
        let name = HeaderName::from_bytes(key.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            self.0.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const PASSED_OVER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    const PATH: &str = "/trestle.table.v1.TableService/GetEntity";

    fn headers(parent: Option<&'static str>) -> HeaderMap {
        let parent = parent.map(|parent| (PARENT_HEADER, HeaderValue::from_static(parent)));
        HeaderMap::from_iter(parent)
    }

    fn traces(ratio: Option<f64>) -> Traces {
        Traces { ratio, exemplars: Exemplars::default() }
    }

    /// A number in the middle of the range that does not end in zeros.
    fn middle() -> u128 {
        1 << 127 | 1
    }

    #[test]
    fn the_decision_of_the_caller_takes_precedence_over_the_ratio() {
        for ratio in [0.0, 1.0] {
            let traces = traces(Some(ratio));
            let kept = traces.decide(PATH, &headers(Some(SAMPLED)), middle);
            assert!(matches!(kept, Tracing::Sampled(Some(_))), "{kept:?}");
            let passed_over = traces.decide(PATH, &headers(Some(PASSED_OVER)), middle);
            assert!(matches!(passed_over, Tracing::Unsampled(_)), "{passed_over:?}");
        }
    }

    #[test]
    fn an_export_of_telemetry_starts_no_trace_and_follows_its_caller() {
        let export = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
        let decided = |parent| traces(Some(1.0)).decide(export, &headers(parent), middle);

        assert!(matches!(decided(None), Tracing::Unsampled(_)));
        assert!(matches!(decided(Some(PASSED_OVER)), Tracing::Unsampled(_)));
        assert!(matches!(decided(Some(SAMPLED)), Tracing::Sampled(Some(_))));
    }

    #[test]
    fn samples_new_traces_by_the_ratio() {
        let drawn = |ratio| traces(Some(ratio)).decide(PATH, &headers(None), middle);

        assert!(matches!(drawn(1.0), Tracing::Sampled(None)));
        assert!(matches!(drawn(0.51), Tracing::Sampled(None)));
        assert!(matches!(drawn(0.5), Tracing::Unsampled(_)));
        assert!(matches!(drawn(0.0), Tracing::Unsampled(_)));
        assert!(is_drawn(u128::MAX, 1.0) && !is_drawn(0, 0.0));
    }

    #[test]
    fn the_next_process_receives_that_a_trace_is_not_sampled() {
        let mut headers = headers(None);

        let decided = traces(Some(0.0)).decide(PATH, &headers, middle);

        let Tracing::Unsampled(context) = decided else { panic!("{decided:?}") };
        assert!(headers.is_empty(), "nothing is written for a call within the process");
        let guard = context.attach();
        assert!(!is_sampled());
        inject_current(&mut headers);
        drop(guard);
        let parent = headers[PARENT_HEADER].to_str().expect("text").to_owned();
        assert!(parent.ends_with("-00"), "{parent}");
        let next = traces(Some(1.0)).decide(PATH, &headers, middle);
        assert!(matches!(next, Tracing::Unsampled(_)), "{next:?}");
    }

    #[test]
    fn without_an_exporter_a_call_has_no_span_but_logs_name_its_trace() {
        let named = traces(None).decide(PATH, &headers(Some(SAMPLED)), middle);
        assert!(matches!(named, Tracing::Unsampled(_)), "{named:?}");

        let none = headers(None);
        assert!(matches!(traces(None).decide(PATH, &none, middle), Tracing::None));
        assert!(none.is_empty());
    }

    #[test]
    fn two_parents_are_ignored() {
        let mut headers = headers(Some(SAMPLED));
        headers.append(PARENT_HEADER, HeaderValue::from_static(SAMPLED));

        let decided = traces(None).decide(PATH, &headers, middle);

        assert!(matches!(decided, Tracing::None), "{decided:?}");
    }

    #[test]
    fn a_malformed_parent_is_ignored() {
        for parent in
            ["", "00", "00-0-0-01", "zz-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]
        {
            let headers = headers(Some(parent));
            let decided = traces(None).decide(PATH, &headers, middle);
            assert!(matches!(decided, Tracing::None), "{parent}: {decided:?}");
        }
    }
}
