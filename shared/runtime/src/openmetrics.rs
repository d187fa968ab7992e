//! Metrics in the Prometheus text format, or in OpenMetrics, which also has exemplars.

use std::fmt::Write as _;

use prometheus::{
    Encoder as _, Registry, TEXT_FORMAT, TextEncoder,
    proto::{LabelPair, Metric, MetricFamily, MetricType, Summary},
};
use trestle_rpc::exemplar::{Exemplar, Exemplars, Series};

/// The media type of OpenMetrics text in `Accept` and `Content-Type`.
const OPENMETRICS: &str = "application/openmetrics-text";
const OPENMETRICS_FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of a process, to be read.
#[derive(Debug, Clone, Default)]
pub struct Exposition {
    registry: Registry,
    exemplars: Exemplars,
}

impl Exposition {
    /// The metrics of `registry`, with exemplars for its histograms.
    #[must_use]
    pub fn new(registry: Registry, exemplars: Exemplars) -> Self {
        Self { registry, exemplars }
    }

    /// The metrics in a form that `accept`, the header of a request, names; its content type and
    /// the text.
    ///
    /// # Errors
    /// Metrics that the format cannot represent.
    pub fn render(&self, accept: &str) -> Result<(&'static str, String), prometheus::Error> {
        let mut families = self.registry.gather();
        families.iter_mut().for_each(as_summary);
        if accept.contains(OPENMETRICS) {
            return Ok((OPENMETRICS_FORMAT, openmetrics(&families, &self.exemplars)));
        }
        let mut text = Vec::new();
        TextEncoder::new().encode(&families, &mut text)?;
        Ok((TEXT_FORMAT, String::from_utf8_lossy(&text).into_owned()))
    }
}

/// A histogram without buckets is a summary without quantiles: its count and its sum, and no bucket that repeats the
/// count.
fn as_summary(family: &mut MetricFamily) {
    let is_bounded = |metric: &Metric| {
        metric.get_histogram().get_bucket().iter().any(|bucket| bucket.upper_bound().is_finite())
    };
    let is_histogram = family.get_field_type() == MetricType::HISTOGRAM;
    if !is_histogram || family.get_metric().iter().any(is_bounded) {
        return;
    }
    family.set_field_type(MetricType::SUMMARY);
    for metric in family.mut_metric() {
        let mut summary = Summary::default();
        summary.set_sample_count(metric.get_histogram().get_sample_count());
        summary.set_sample_sum(metric.get_histogram().get_sample_sum());
        metric.set_summary(summary);
    }
}

fn openmetrics(families: &[MetricFamily], exemplars: &Exemplars) -> String {
    let names: Vec<_> = exemplars.names().into_iter().map(|name| (name, plain(name))).collect();
    let mut text = String::new();
    for family in families {
        let series = match family.get_field_type() {
            MetricType::HISTOGRAM => {
                let of_family = |(_, plain): &&(&str, String)| is_named(family.name(), plain);
                names.iter().find(of_family).map(|(name, _)| exemplars.of(name))
            }
            _ => None,
        };
        write_family(&mut text, family, &series.unwrap_or_default());
    }
    text.push_str("# EOF\n");
    text
}

/// A name in the Prometheus spelling.
fn plain(name: &str) -> String {
    name.replace('.', "_")
}

/// Whether a family is the metric `plain`; the name of a family may end with its unit.
fn is_named(family: &str, plain: &str) -> bool {
    family.strip_prefix(plain).is_some_and(|unit| matches!(unit, "" | "_seconds" | "_bytes"))
}

fn write_family(text: &mut String, family: &MetricFamily, series: &[std::sync::Arc<Series>]) {
    let (kind, suffix) = match family.get_field_type() {
        MetricType::COUNTER => ("counter", "_total"),
        MetricType::HISTOGRAM => ("histogram", ""),
        MetricType::SUMMARY => ("summary", ""),
        _ => ("gauge", ""),
    };
    let name = family.name().strip_suffix(suffix).unwrap_or(family.name());
    line(text, format_args!("# TYPE {name} {kind}"));
    line(text, format_args!("# HELP {name} {}", escaped(family.help())));
    for metric in family.get_metric() {
        let labels = labels(metric.get_label());
        let braced = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        match family.get_field_type() {
            MetricType::HISTOGRAM => {
                let of_metric = |series: &&std::sync::Arc<Series>| is_of(series, metric);
                let buckets = series.iter().find(of_metric).map(|series| series.buckets());
                write_histogram(
                    text,
                    (name, &labels, &braced),
                    metric,
                    &buckets.unwrap_or_default(),
                );
            }
            MetricType::SUMMARY => {
                let summary = metric.get_summary();
                line(text, format_args!("{name}_count{braced} {}", summary.sample_count()));
                line(text, format_args!("{name}_sum{braced} {}", number(summary.sample_sum())));
            }
            MetricType::COUNTER => {
                let value = number(metric.get_counter().get_value());
                line(text, format_args!("{name}_total{braced} {value}"));
            }
            _ => line(
                text,
                format_args!("{name}{braced} {}", number(metric.get_gauge().get_value())),
            ),
        }
    }
}

fn write_histogram(
    text: &mut String,
    (name, labels, braced): (&str, &str, &str),
    metric: &Metric,
    exemplars: &[Option<Exemplar>],
) {
    let histogram = metric.get_histogram();
    let comma = if labels.is_empty() { "" } else { "," };
    let count = histogram.get_sample_count();
    let bounded = histogram.get_bucket().iter().filter(|bucket| bucket.upper_bound().is_finite());
    let buckets = bounded.map(|bucket| (number(bucket.upper_bound()), bucket.cumulative_count()));
    let buckets = buckets.chain([("+Inf".to_owned(), count)]);
    for (index, (bound, count)) in buckets.enumerate() {
        let example = exemplars.get(index).copied().flatten().map(example).unwrap_or_default();
        line(text, format_args!("{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}{example}"));
    }
    line(text, format_args!("{name}_count{braced} {count}"));
    line(text, format_args!("{name}_sum{braced} {}", number(histogram.get_sample_sum())));
}

fn example(exemplar: Exemplar) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (trace, span) = (hex(&exemplar.trace_id), hex(&exemplar.span_id));
    let (seconds, nanos) = exemplar.at.to_unix();
    let (value, millis) = (number(exemplar.value), nanos / 1_000_000);
    format!(" # {{trace_id=\"{trace}\",span_id=\"{span}\"}} {value} {seconds}.{millis:03}")
}

/// Whether a metric has the labels of a series; those of its scope are not counted.
fn is_of(series: &Series, metric: &Metric) -> bool {
    let labels = metric.get_label();
    let own = labels.iter().filter(|label| !label.name().starts_with("otel_scope_")).count();
    let has = |label: &opentelemetry::KeyValue| {
        let (name, value) = (plain(label.key.as_str()), label.value.as_str());
        labels.iter().any(|label| label.name() == name && label.value() == value)
    };
    own == series.labels().len() && series.labels().iter().all(has)
}

fn labels(labels: &[LabelPair]) -> String {
    let labels = labels.iter().map(|label| {
        let value = escaped(label.value());
        format!("{}=\"{value}\"", label.name())
    });
    labels.collect::<Vec<_>>().join(",")
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

/// A number in the form that OpenMetrics requires: always with a fraction or an exponent of two digits.
fn number(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    if value == 0.0 || (1e-4..1e16).contains(&value.abs()) || value.is_nan() {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{content}");
}

#[cfg(test)]
mod tests {
    use prometheus::{Counter, Histogram, HistogramOpts, IntGaugeVec, Opts};

    use super::*;

    #[test]
    fn writes_numbers_in_the_required_form() {
        for (value, text) in [
            (0.0, "0.0"),
            (1.0, "1.0"),
            (0.000_05, "5e-05"),
            (0.000_025, "2.5e-05"),
            (0.000_1, "0.0001"),
            (2.5, "2.5"),
            (1e17, "1e+17"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn writes_every_kind_of_metric() {
        let registry = Registry::new();
        let counter = Counter::new("calls_total", "Calls").expect("a counter");
        counter.inc();
        let labelled = Opts::new("free", "Free \"space\"");
        let gauge = IntGaugeVec::new(labelled, &["disk"]).expect("a gauge");
        gauge.with_label_values(&["a\\b"]).set(7);
        let opts = HistogramOpts::new("took", "Time").buckets(vec![0.5, 2.0]);
        let histogram = Histogram::with_opts(opts).expect("a histogram");
        histogram.observe(0.25);
        registry.register(Box::new(counter)).expect("registers");
        registry.register(Box::new(gauge)).expect("registers");
        registry.register(Box::new(histogram)).expect("registers");

        let exposition = Exposition::new(registry, Exemplars::default());
        let (kind, text) = exposition.render("application/openmetrics-text; q=0.8").expect("text");

        assert_eq!(kind, OPENMETRICS_FORMAT);
        for expected in [
            "# TYPE calls counter\n# HELP calls Calls\ncalls_total 1.0\n",
            "# HELP free Free \\\"space\\\"\nfree{disk=\"a\\\\b\"} 7.0\n",
            "took_bucket{le=\"0.5\"} 1\ntook_bucket{le=\"2.0\"} 1\ntook_bucket{le=\"+Inf\"} 1\n",
            "took_count 1\ntook_sum 0.25\n",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
        assert!(text.ends_with("# EOF\n"));
        assert_eq!(exposition.render("*/*").expect("text").0, TEXT_FORMAT);
    }

    #[test]
    fn a_histogram_without_buckets_is_a_summary_in_both_formats() {
        let registry = Registry::new();
        let opts = HistogramOpts::new("took", "Time").buckets(vec![f64::INFINITY]);
        let histogram = Histogram::with_opts(opts).expect("a histogram");
        histogram.observe(0.25);
        registry.register(Box::new(histogram)).expect("registers");
        let exposition = Exposition::new(registry, Exemplars::default());

        for accept in ["text/plain", OPENMETRICS] {
            let (_, text) = exposition.render(accept).expect("text");

            assert!(text.contains("# TYPE took summary\n"), "{text}");
            assert!(text.contains("took_sum 0.25\n") && text.contains("took_count 1\n"), "{text}");
            assert!(!text.contains("_bucket"), "{text}");
        }
    }
}
