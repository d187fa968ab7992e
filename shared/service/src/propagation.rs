//! The trace of a call across processes, as W3C `traceparent` headers, and which traces are kept.

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

use crate::exemplar::Exemplars;

/// The headers that a trace travels in.
const TRACE_HEADERS: [HeaderName; 3] =
    [PARENT_HEADER, HeaderName::from_static("tracestate"), HeaderName::from_static("baggage")];

const PARENT_HEADER: HeaderName = HeaderName::from_static("traceparent");

/// Those of some headers that a trace travels in, each as often as it is there.
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

/// Which traces a process keeps, and the examples it takes from them.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    /// Share of the traces that begin here and are kept, 0 to 1; none where no trace is sent
    /// anywhere. What the caller decided counts first.
    pub ratio: Option<f64>,
    /// Where the examples go.
    pub exemplars: Exemplars,
}

/// What becomes of the trace of a call.
#[derive(Debug)]
pub(crate) enum Tracing {
    /// It is kept: the call has a span, under that of its caller if it named one.
    Kept(Option<Context>),
    /// It is not kept here. Logs name it all the same.
    Named(Context),
    /// There is none.
    None,
}

impl Traces {
    /// Decides about the call that `headers` belong to; `random` makes the decision where the
    /// caller made none.
    pub(crate) fn decide(&self, headers: &HeaderMap, random: fn() -> u128) -> Tracing {
        let parent = extract(headers);
        let kept = parent.as_ref().map(|parent| parent.span().span_context().is_sampled());
        match (self.ratio, parent, kept) {
            (Some(_), parent, Some(true)) => Tracing::Kept(parent),
            (_, Some(parent), _) => Tracing::Named(parent),
            (None, None, _) => Tracing::None,
            (Some(ratio), None, _) => {
                let drawn = random();
                if is_drawn(drawn, ratio) {
                    return Tracing::Kept(None);
                }
                Tracing::Named(passed_over(drawn, random()))
            }
        }
    }
}

/// Whether a random number falls into a share of all numbers.
fn is_drawn(drawn: u128, ratio: f64) -> bool {
    let drawn = u32::try_from(drawn >> 96).unwrap_or(u32::MAX);
    f64::from(drawn) < ratio * (f64::from(u32::MAX) + 1.0)
}

/// A trace that nobody keeps.
fn passed_over(trace: u128, span: u128) -> Context {
    let trace = TraceId::from_bytes(trace.to_be_bytes());
    let [.., a, b, c, d, e, f, g, h] = span.to_be_bytes();
    let span = SpanId::from_bytes([a, b, c, d, e, f, g, h]);
    let context = SpanContext::new(trace, span, TraceFlags::default(), true, TraceState::default());
    Context::new().with_remote_span_context(context)
}

/// The trace that headers name, if they name one, and no more than one.
fn extract(headers: &HeaderMap) -> Option<Context> {
    let mut parents = headers.get_all(PARENT_HEADER).iter();
    if parents.next().is_none() || parents.next().is_some() {
        return None;
    }
    // Out of nothing, not out of what this thread happens to work on.
    let context =
        TraceContextPropagator::new().extract_with_context(&Context::new(), &Reader(headers));
    context.span().span_context().is_valid().then_some(context)
}

/// Work that stays in the trace of this moment wherever it is run.
pub fn carry<F: Future>(work: F) -> impl Future<Output = F::Output> {
    work.in_current_span().with_current_context()
}

/// Whether the work of this moment belongs to a trace that is kept. Whoever makes a span asks
/// first: one that nobody keeps costs as much, since the registry makes every span that any receiver
/// may want at times.
pub(crate) fn is_kept() -> bool {
    Context::map_current(|context| {
        context.has_active_span() && context.span().span_context().is_sampled()
    })
}

/// Names `span` in the headers as the parent of what the next process does.
pub fn inject(span: &Span, headers: &mut HeaderMap) {
    inject_context(&span.context(), headers);
}

/// Names the trace of this moment in the headers, if there is one, so that the next process
/// decides about it as this one did.
pub(crate) fn inject_current(headers: &mut HeaderMap) {
    Context::map_current(|context| {
        if context.has_active_span() {
            inject_context(context, headers);
        }
    });
}

fn inject_context(context: &Context, headers: &mut HeaderMap) {
    TraceContextPropagator::new().inject_context(context, &mut Writer(headers));
}

struct Reader<'a>(&'a HeaderMap);

impl Extractor for Reader<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct Writer<'a>(&'a mut HeaderMap);

impl Injector for Writer<'_> {
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

    fn headers(parent: Option<&'static str>) -> HeaderMap {
        let parent = parent.map(|parent| (PARENT_HEADER, HeaderValue::from_static(parent)));
        HeaderMap::from_iter(parent)
    }

    fn traces(ratio: Option<f64>) -> Traces {
        Traces { ratio, exemplars: Exemplars::default() }
    }

    /// A number in the middle of all numbers, whose end is no zero.
    fn middle() -> u128 {
        1 << 127 | 1
    }

    #[test]
    fn what_the_caller_decided_counts_before_the_ratio() {
        for ratio in [0.0, 1.0] {
            let traces = traces(Some(ratio));
            let kept = traces.decide(&headers(Some(SAMPLED)), middle);
            assert!(matches!(kept, Tracing::Kept(Some(_))), "{kept:?}");
            let passed_over = traces.decide(&headers(Some(PASSED_OVER)), middle);
            assert!(matches!(passed_over, Tracing::Named(_)), "{passed_over:?}");
        }
    }

    #[test]
    fn a_trace_that_begins_here_is_drawn_by_the_ratio() {
        let drawn = |ratio| traces(Some(ratio)).decide(&headers(None), middle);

        assert!(matches!(drawn(1.0), Tracing::Kept(None)));
        assert!(matches!(drawn(0.51), Tracing::Kept(None)));
        assert!(matches!(drawn(0.5), Tracing::Named(_)));
        assert!(matches!(drawn(0.0), Tracing::Named(_)));
        assert!(is_drawn(u128::MAX, 1.0) && !is_drawn(0, 0.0));
    }

    #[test]
    fn the_next_process_hears_that_a_trace_is_not_kept() {
        let mut headers = headers(None);

        let decided = traces(Some(0.0)).decide(&headers, middle);

        let Tracing::Named(context) = decided else { panic!("{decided:?}") };
        assert!(headers.is_empty(), "nothing is written for a call that stays here");
        let here = context.attach();
        assert!(!is_kept());
        inject_current(&mut headers);
        drop(here);
        let parent = headers[PARENT_HEADER].to_str().expect("text").to_owned();
        assert!(parent.ends_with("-00"), "{parent}");
        let next = traces(Some(1.0)).decide(&headers, middle);
        assert!(matches!(next, Tracing::Named(_)), "{next:?}");
    }

    #[test]
    fn without_an_exporter_a_call_has_no_span_but_the_name_of_its_trace() {
        let named = traces(None).decide(&headers(Some(SAMPLED)), middle);
        assert!(matches!(named, Tracing::Named(_)), "{named:?}");

        let none = headers(None);
        assert!(matches!(traces(None).decide(&none, middle), Tracing::None));
        assert!(none.is_empty());
    }

    #[test]
    fn of_two_parents_neither_counts() {
        let mut headers = headers(Some(SAMPLED));
        headers.append(PARENT_HEADER, HeaderValue::from_static(SAMPLED));

        let decided = traces(None).decide(&headers, middle);

        assert!(matches!(decided, Tracing::None), "{decided:?}");
    }

    #[test]
    fn a_malformed_parent_is_no_parent() {
        for parent in
            ["", "00", "00-0-0-01", "zz-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]
        {
            let headers = headers(Some(parent));
            let decided = traces(None).decide(&headers, middle);
            assert!(matches!(decided, Tracing::None), "{parent}: {decided:?}");
        }
    }
}
