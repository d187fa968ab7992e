//! Batches of OTLP metrics: every number of a data point is a record with a value.

mod points;

use std::collections::BTreeMap;

use trestle_proto::opentelemetry::proto::metrics::v1::{Metric, ResourceMetrics, metric::Data};

use self::points::{Numbers, PointRecord, SkippedPoint};
use super::{
    EncodedBatch, RecordError, RecordTimes, Rejected,
    check::{OriginKind, RecordChecker},
    encode::{BATCH_BYTES_MAX, BatchEncoder, FRAME_BYTES_MAX},
};

/// The metrics of a request, by stream.
pub(crate) type MetricsByStream = BTreeMap<String, Vec<ResourceMetrics>>;

/// Distributes metrics to streams; `stream_of` names that of an encoded `Resource`.
pub(crate) fn metrics_by_stream(
    resource_metrics: Vec<ResourceMetrics>,
    stream_of: impl Fn(&[u8]) -> String,
) -> MetricsByStream {
    let mut streams = MetricsByStream::new();
    for metrics in resource_metrics {
        // A resource without points creates no stream.
        let mut of_scopes = metrics.scope_metrics.iter().flat_map(|of_scope| &of_scope.metrics);
        if !of_scopes.any(|metric| count_points(metric) > 0) {
            continue;
        }
        let resource = metrics.resource.as_ref().map(prost::Message::encode_to_vec);
        let stream = stream_of(&resource.unwrap_or_default());
        streams.entry(stream).or_default().push(metrics);
    }
    streams
}

/// The batch of the metrics of one stream, of at most so many bytes, and which data points it leaves out. Points
/// without a recorded value are neither.
pub(crate) fn batch_of_metrics(
    resource_metrics: &[ResourceMetrics],
    times: RecordTimes,
    bytes_max: usize,
) -> (Option<EncodedBatch>, Rejected) {
    let mut metrics = MetricsEncoder {
        times,
        batch: BatchEncoder::new(times.received, bytes_max),
        rejected: Rejected::default(),
    };
    for of_resource in resource_metrics {
        metrics.add(of_resource);
    }
    (metrics.batch.finish(), metrics.rejected)
}

struct MetricsEncoder {
    times: RecordTimes,
    batch: BatchEncoder,
    rejected: Rejected,
}

impl MetricsEncoder {
    fn add(&mut self, metrics: &ResourceMetrics) {
        let resource = metrics.resource.as_ref().map(prost::Message::encode_to_vec);
        let resource = resource.unwrap_or_default();
        self.batch.begin_resource(&resource);
        for of_scope in &metrics.scope_metrics {
            let scope = of_scope.scope.as_ref().map(prost::Message::encode_to_vec);
            let scope = scope.unwrap_or_default();
            if let Err((at, error)) = self.check_origins(&resource, &scope) {
                let points = of_scope.metrics.iter().map(count_points).sum();
                self.rejected.add(points, at, &error);
                continue;
            }
            self.batch.begin_group(&scope);
            of_scope.metrics.iter().for_each(|metric| self.add_metric(metric));
        }
    }

    fn check_origins(
        &self,
        resource: &[u8],
        scope: &[u8],
    ) -> Result<(), (&'static str, RecordError)> {
        let mut checker = RecordChecker::new(self.times);
        let checked = checker.check_origin(OriginKind::Resource, resource);
        checked.map_err(|error| ("resource", error))?;
        let checked = checker.check_origin(OriginKind::Scope, scope);
        checked.map_err(|error| ("scope", error))
    }

    fn add_metric(&mut self, metric: &Metric) {
        match &metric.data {
            Some(Data::Gauge(gauge)) => self.add_points(metric, &gauge.data_points),
            Some(Data::Sum(sum)) => self.add_points(metric, &sum.data_points),
            Some(Data::Histogram(histogram)) => self.add_points(metric, &histogram.data_points),
            Some(Data::ExponentialHistogram(histogram)) => {
                self.add_points(metric, &histogram.data_points);
            }
            Some(Data::Summary(summary)) => self.add_points(metric, &summary.data_points),
            None => {}
        }
    }

    fn add_points(&mut self, metric: &Metric, points: &[impl Numbers]) {
        for (index, point) in points.iter().enumerate() {
            if let Err(error) = self.add_point(metric, point) {
                let at = format!("{}[{index}]", trestle_service::fault::quoted(&metric.name));
                self.rejected.add(1, &at, &error);
            }
        }
    }

    /// Adds all records of a point, or none.
    fn add_point(&mut self, metric: &Metric, point: &impl Numbers) -> Result<(), RecordError> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        let written = point.numbers(&mut |number| {
            let record = PointRecord { metric, point, number }.encode();
            bytes += record.len() + FRAME_BYTES_MAX;
            if bytes > BATCH_BYTES_MAX {
                // A point of many buckets repeats its attributes in each.
                let rule = format!("the records of the point have over {BATCH_BYTES_MAX} bytes");
                return Err(SkippedPoint::Invalid(RecordError::invalid("", rule)));
            }
            let time = RecordChecker::new(self.times).check(&record);
            records.push((time.map_err(SkippedPoint::Invalid)?, record));
            Ok(())
        });
        match written {
            Ok(()) => {}
            Err(SkippedPoint::NotRecorded) => return Ok(()),
            Err(SkippedPoint::Invalid(error)) => return Err(error),
        }
        // All have the time of the point.
        let Some((time, _)) = records.first() else { return Ok(()) };
        self.batch.admit(*time, bytes)?;
        records.iter().for_each(|(time, record)| self.batch.push(record, *time));
        Ok(())
    }
}

fn count_points(metric: &Metric) -> u64 {
    let points = match &metric.data {
        Some(Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(Data::Sum(sum)) => sum.data_points.len(),
        Some(Data::Histogram(histogram)) => histogram.data_points.len(),
        Some(Data::ExponentialHistogram(histogram)) => histogram.data_points.len(),
        Some(Data::Summary(summary)) => summary.data_points.len(),
        None => 0,
    };
    points as u64
}
