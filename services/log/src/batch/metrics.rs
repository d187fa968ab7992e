//! Batches of OTLP metrics: every number of a data point is a record with a value.

mod point_records;
mod points;
#[cfg(test)]
mod tests;

use trestle_model::fault::quoted;
use trestle_proto::{
    opentelemetry::proto::metrics::v1::{Metric, ResourceMetrics, metric::Data},
    wire::{MalformedMessage, MessageReader},
};

use self::{
    point_records::{PointRecords, PointSize},
    points::{Numbers, PointKind, SkippedPoint},
};
use super::{
    RecordError,
    export::{ExportEncoder, ExportFields, ItemPlace, ResourceItems},
    items::decoded,
};
use crate::record::entries_of;

impl ResourceItems for ResourceMetrics {
    const FIELDS: ExportFields =
        ExportFields { resources: "resource_metrics", scopes: "scope_metrics", items: "metrics" };

    fn count(metric: &[u8]) -> u64 {
        // How many points a malformed one has is unknown.
        count_points(metric).unwrap_or(1)
    }

    fn add<'a>(metric: &'a [u8], place: ItemPlace, encoder: &mut ExportEncoder<'a>) {
        match decoded(metric) {
            Ok(metric) => add_metric(&metric, place, encoder),
            Err(error) => {
                encoder.rejected.add(Self::count(metric), &place.to_string(), &error);
            }
        }
    }
}

/// How many data points an encoded metric has, of any kind.
fn count_points(metric: &[u8]) -> Result<u64, MalformedMessage> {
    let mut points = 0;
    let mut fields = MessageReader::new(metric);
    while let Some((number, value)) = fields.next_field()? {
        if let 5 | 7 | 9 | 10 | 11 = number {
            for point in entries_of(value.bytes()?, 1) {
                point?;
                points += 1;
            }
        }
    }
    Ok(points)
}

fn add_metric(metric: &Metric, place: ItemPlace, encoder: &mut ExportEncoder<'_>) {
    let plain = PointKind { metric, temporality: 0, is_monotonic: None };
    match &metric.data {
        Some(Data::Gauge(gauge)) => add_points(plain, &gauge.data_points, place, encoder),
        Some(Data::Sum(sum)) => {
            let temporality = sum.aggregation_temporality;
            let is_monotonic = Some(sum.is_monotonic);
            let kind = PointKind { temporality, is_monotonic, ..plain };
            add_points(kind, &sum.data_points, place, encoder);
        }
        Some(Data::Histogram(histogram)) => {
            let kind = PointKind { temporality: histogram.aggregation_temporality, ..plain };
            add_points(kind, &histogram.data_points, place, encoder);
        }
        Some(Data::ExponentialHistogram(histogram)) => {
            let kind = PointKind { temporality: histogram.aggregation_temporality, ..plain };
            add_points(kind, &histogram.data_points, place, encoder);
        }
        Some(Data::Summary(summary)) => add_points(plain, &summary.data_points, place, encoder),
        None => {}
    }
}

/// Adds the records of each point. One without a recorded value has none, and is not rejected.
fn add_points(
    kind: PointKind<'_>,
    points: &[impl Numbers],
    place: ItemPlace,
    encoder: &mut ExportEncoder<'_>,
) {
    let mut record = Vec::new();
    for (index, point) in points.iter().enumerate() {
        if let Err(SkippedPoint::Invalid(error)) = add_point(kind, point, encoder, &mut record) {
            let at = format!("{place}.data_points[{index}]");
            encoder.rejected.add(1, &at, &of_metric(error, kind.metric));
        }
    }
}

/// Adds the records of a point, all or none. They are measured first, so that those of a point without room are not
/// made: with their attributes they may have a thousand times its bytes.
fn add_point(
    kind: PointKind<'_>,
    point: &impl Numbers,
    encoder: &mut ExportEncoder<'_>,
    record: &mut Vec<u8>,
) -> Result<(), SkippedPoint> {
    let mut records = PointRecords::new(kind, point, encoder.times, encoder.left_out);
    let mut size = PointSize::default();
    point.numbers(&mut |number| {
        records.measure(&number, &mut size).map_err(SkippedPoint::Invalid)
    })?;
    let Some(time) = records.time() else { return Ok(()) };
    let admitted = encoder.batch.admit_point(time, size.records, size.bytes);
    admitted.map_err(SkippedPoint::Invalid)?;
    point.numbers(&mut |number| {
        let time = records.write(&number, record).map_err(SkippedPoint::Invalid)?;
        encoder.batch.push(record, time);
        Ok(())
    })
}

/// The error with the name of the metric, which its place does not have.
fn of_metric(error: RecordError, metric: &Metric) -> RecordError {
    let rule = format!("{} (metric=`{}`)", error.rule, quoted(&metric.name));
    RecordError { rule, ..error }
}
