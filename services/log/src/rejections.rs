//! What exports of OpenTelemetry lose: most clients drop the message of a partial success, so the operator has a metric
//! and a line in the log.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Meter},
};
use trestle_rpc::log_rate::LogRate;
use trestle_rpc::semconv;

use crate::batch::Rejected;

/// Most streams that the metric names: clients choose the names.
const NAMED_STREAMS_MAX: usize = 100;
/// The name of every other stream in the metric.
const OTHER: &str = "_OTHER";

/// Counts and logs items that are not stored.
pub(crate) struct Rejections {
    items: Counter<u64>,
    /// The streams that the metric names.
    named: Mutex<BTreeSet<String>>,
    lines: LogRate<String>,
}

impl Rejections {
    pub(crate) fn new(meter: &Meter) -> Self {
        let items = semconv::rejected_items(meter);
        Self { items, named: Mutex::default(), lines: LogRate::default() }
    }

    /// Reports items that an export to a stream had and that are not stored: once in ten seconds for a stream in the
    /// log.
    pub(crate) fn report(&self, stream: &str, rejected: &Rejected) {
        let label = self.label(stream);
        for (reason, count) in rejected.by_reason() {
            let reason = KeyValue::new(semconv::REJECTION_REASON, reason);
            self.items.add(count, &[reason, KeyValue::new(semconv::STREAM, label.clone())]);
        }
        if let Some(omitted) = self.lines.may_log(label, Instant::now()) {
            let (count, reasons) = (rejected.count, rejected.message.as_str());
            tracing::warn!(stream, count, reasons, omitted, "items of an export were rejected");
        }
    }

    /// The name of a stream in the metric.
    fn label(&self, stream: &str) -> String {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.contains(stream) {
            return stream.to_owned();
        }
        if named.len() == NAMED_STREAMS_MAX {
            return OTHER.to_owned();
        }
        named.insert(stream.to_owned());
        stream.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metric_names_the_first_streams_only() {
        let rejections = Rejections::new(&crate::fixture::meter());
        for at in 0..NAMED_STREAMS_MAX {
            assert_eq!(rejections.label(&format!("s{at}")), format!("s{at}"));
        }
        assert_eq!(rejections.label("one more"), OTHER);
        assert_eq!(rejections.label("s0"), "s0");
    }

    #[test]
    fn a_stream_that_is_rejected_often_has_one_name_in_the_metric() {
        let rejections = Rejections::new(&crate::fixture::meter());
        for _ in 0..2 * NAMED_STREAMS_MAX {
            assert_eq!(rejections.label("busy"), "busy");
        }
        for at in 1..NAMED_STREAMS_MAX {
            assert_eq!(rejections.label(&format!("s{at}")), format!("s{at}"));
        }
        for _ in 0..2 {
            assert_eq!(rejections.label("one more"), OTHER, "it does not get a name later");
        }
    }
}
