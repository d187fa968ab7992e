//! Batches of OTLP metrics: every number of a data point is a record with a value.

mod points;

use trestle_proto::opentelemetry::proto::{
    common::v1::InstrumentationScope,
    metrics::v1::{Metric, ResourceMetrics, metric::Data},
    resource::v1::Resource,
};
use trestle_service::fault::quoted;

use self::points::{Numbers, PointRecord, SkippedPoint};
use super::items::{ItemEncoder, ResourceItems};

impl ResourceItems for ResourceMetrics {
    type Item = Metric;

    fn resource(&self) -> Option<&Resource> {
        self.resource.as_ref()
    }

    fn scopes(&self) -> impl Iterator<Item = (Option<&InstrumentationScope>, &[Metric])> {
        self.scope_metrics.iter().map(|of| (of.scope.as_ref(), of.metrics.as_slice()))
    }

    fn count(metrics: &[Metric]) -> u64 {
        metrics.iter().map(count_points).sum()
    }

    fn add(metrics: &[Metric], encoder: &mut ItemEncoder) {
        metrics.iter().for_each(|metric| add_metric(metric, encoder));
    }
}

fn add_metric(metric: &Metric, encoder: &mut ItemEncoder) {
    match &metric.data {
        Some(Data::Gauge(gauge)) => add_points(metric, &gauge.data_points, encoder),
        Some(Data::Sum(sum)) => add_points(metric, &sum.data_points, encoder),
        Some(Data::Histogram(histogram)) => add_points(metric, &histogram.data_points, encoder),
        Some(Data::ExponentialHistogram(histogram)) => {
            add_points(metric, &histogram.data_points, encoder);
        }
        Some(Data::Summary(summary)) => add_points(metric, &summary.data_points, encoder),
        None => {}
    }
}

/// Adds the records of each point. One without a recorded value has none, and is not rejected.
fn add_points(metric: &Metric, points: &[impl Numbers], encoder: &mut ItemEncoder) {
    for (index, point) in points.iter().enumerate() {
        let at = || format!("{}[{index}]", quoted(&metric.name));
        encoder.add(at, |records| {
            let written = point.numbers(&mut |number| {
                let record = PointRecord { metric, point, number }.encode();
                records.push(record).map_err(SkippedPoint::Invalid)
            });
            match written {
                Ok(()) | Err(SkippedPoint::NotRecorded) => Ok(()),
                Err(SkippedPoint::Invalid(error)) => Err(error),
            }
        });
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
