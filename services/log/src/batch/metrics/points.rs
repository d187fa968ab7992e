//! The numbers of data points, each of which is a record.

use trestle_proto::{
    opentelemetry::proto::{
        common::v1::KeyValue,
        metrics::v1::{
            ExponentialHistogramDataPoint, HistogramDataPoint, Metric, NumberDataPoint,
            SummaryDataPoint, number_data_point,
        },
    },
    wire::{put_bytes, put_fixed64, put_varint},
};

use crate::batch::RecordError;

/// Most buckets of a point: each is a record.
const BUCKETS_MAX: usize = 1_024;
/// The attribute of a bucket: its upper bound.
const LE: &str = "le";
/// The attribute of a quantile.
const QUANTILE: &str = "quantile";
/// The flag of a point whose value was not recorded.
const NO_RECORDED_VALUE: u32 = 1;

/// A number of a point.
pub(super) struct PointNumber {
    /// What follows the name of the metric.
    pub(super) suffix: &'static str,
    /// An attribute that distinguishes it from the others of the point: `le` or `quantile`.
    pub(super) label: Option<(&'static str, f64)>,
    pub(super) value: f64,
}

/// Why a point has no records.
pub(super) enum SkippedPoint {
    /// Its flags declare that it has no value.
    NotRecorded,
    /// It violates a rule.
    Invalid(RecordError),
}

pub(super) type WriteNumber<'w> = &'w mut dyn FnMut(PointNumber) -> Result<(), SkippedPoint>;

/// What the data points of a metric have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct PointKind<'a> {
    pub(super) metric: &'a Metric,
    /// What the values are since, a number of the contract; 0 is not stated.
    pub(super) temporality: i32,
    /// Whether a sum only increases.
    pub(super) is_monotonic: Option<bool>,
}

impl PointKind<'_> {
    /// Writes the fields that give a number its meaning.
    pub(super) fn put(self, out: &mut Vec<u8>, start_time: u64) {
        if start_time != 0 {
            put_fixed64(out, 20, start_time);
        }
        if self.temporality != 0 {
            put_varint(out, 21, i64::from(self.temporality).cast_unsigned());
        }
        if let Some(is_monotonic) = self.is_monotonic {
            put_varint(out, 22, is_monotonic.into());
        }
        if !self.metric.unit.is_empty() {
            put_bytes(out, 23, self.metric.unit.as_bytes());
        }
    }
}

/// A data point.
pub(super) trait Numbers {
    fn time(&self) -> u64;
    /// What its numbers are since; 0 is not stated.
    fn start_time(&self) -> u64;
    fn attributes(&self) -> &[KeyValue];
    /// The keys of attributes that distinguish numbers of one point.
    fn labels(&self) -> &'static [&'static str] {
        &[]
    }
    /// Passes each number on.
    fn numbers(&self, write: WriteNumber<'_>) -> Result<(), SkippedPoint>;
}

fn plain(suffix: &'static str, value: f64) -> PointNumber {
    PointNumber { suffix, label: None, value }
}

fn check_recorded(flags: u32) -> Result<(), SkippedPoint> {
    if flags & NO_RECORDED_VALUE == 0 { Ok(()) } else { Err(SkippedPoint::NotRecorded) }
}

/// A count as a value: exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "values are doubles")]
fn count_value(count: u64) -> f64 {
    count as f64
}

impl Numbers for NumberDataPoint {
    fn time(&self) -> u64 {
        self.time_unix_nano
    }

    fn start_time(&self) -> u64 {
        self.start_time_unix_nano
    }

    fn attributes(&self) -> &[KeyValue] {
        &self.attributes
    }

    fn numbers(&self, write: WriteNumber<'_>) -> Result<(), SkippedPoint> {
        check_recorded(self.flags)?;
        #[expect(clippy::cast_precision_loss, reason = "values are doubles")]
        let value = match self.value {
            Some(number_data_point::Value::AsDouble(value)) => value,
            Some(number_data_point::Value::AsInt(value)) => value as f64,
            None => {
                let error = RecordError::invalid("value", "is missing");
                return Err(SkippedPoint::Invalid(error));
            }
        };
        write(plain("", value))
    }
}

/// The numbers that histograms have in common.
struct Summed {
    count: u64,
    sum: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
}

impl Summed {
    fn write(&self, write: WriteNumber<'_>) -> Result<(), SkippedPoint> {
        let numbers = [
            (".count", Some(count_value(self.count))),
            (".sum", self.sum),
            (".min", self.min),
            (".max", self.max),
        ];
        let mut present = numbers.into_iter().filter_map(|(suffix, value)| Some((suffix, value?)));
        present.try_for_each(|(suffix, value)| write(plain(suffix, value)))
    }
}

/// Passes buckets on, in the order of their bounds: how many values are at most the bound.
fn write_buckets(
    buckets: impl Iterator<Item = (f64, u64)>,
    write: WriteNumber<'_>,
) -> Result<(), SkippedPoint> {
    let mut cumulative = 0_u64;
    for (index, (bound, count)) in buckets.enumerate() {
        if index == BUCKETS_MAX {
            let rule = format!("has more than {BUCKETS_MAX} buckets");
            return Err(SkippedPoint::Invalid(RecordError::invalid("buckets", rule)));
        }
        cumulative = cumulative.saturating_add(count);
        let (label, value) = (Some((LE, bound)), count_value(cumulative));
        write(PointNumber { suffix: ".bucket", label, value })?;
    }
    Ok(())
}

impl Numbers for HistogramDataPoint {
    fn time(&self) -> u64 {
        self.time_unix_nano
    }

    fn start_time(&self) -> u64 {
        self.start_time_unix_nano
    }

    fn attributes(&self) -> &[KeyValue] {
        &self.attributes
    }

    fn labels(&self) -> &'static [&'static str] {
        &[LE]
    }

    fn numbers(&self, write: WriteNumber<'_>) -> Result<(), SkippedPoint> {
        check_recorded(self.flags)?;
        let (count, sum, min, max) = (self.count, self.sum, self.min, self.max);
        Summed { count, sum, min, max }.write(write)?;
        let bounds = self.explicit_bounds.iter().copied().chain([f64::INFINITY]);
        write_buckets(bounds.zip(self.bucket_counts.iter().copied()), write)
    }
}

impl Numbers for ExponentialHistogramDataPoint {
    fn time(&self) -> u64 {
        self.time_unix_nano
    }

    fn start_time(&self) -> u64 {
        self.start_time_unix_nano
    }

    fn attributes(&self) -> &[KeyValue] {
        &self.attributes
    }

    fn labels(&self) -> &'static [&'static str] {
        &[LE]
    }

    fn numbers(&self, write: WriteNumber<'_>) -> Result<(), SkippedPoint> {
        check_recorded(self.flags)?;
        let (count, sum, min, max) = (self.count, self.sum, self.min, self.max);
        Summed { count, sum, min, max }.write(write)?;

        let base_log2 = (-f64::from(self.scale)).exp2();
        // Bucket `i` holds values in (base^i, base^(i+1)], and the negative of them.
        let bound = |index: i64| (base_log2 * index_value(index)).exp2();
        let negative = self.negative.iter().flat_map(|buckets| {
            let counts = buckets.bucket_counts.iter().enumerate().rev();
            counts.map(|(index, count)| (-bound(i64::from(buckets.offset) + index as i64), *count))
        });
        let zero = [(self.zero_threshold, self.zero_count)];
        let positive = self.positive.iter().flat_map(|buckets| {
            let counts = buckets.bucket_counts.iter().zip(i64::from(buckets.offset)..);
            counts.map(|(count, index)| (bound(index + 1), *count))
        });
        // Empty buckets repeat the count before them.
        let buckets = negative.chain(zero).chain(positive).filter(|(_, count)| *count > 0);
        write_buckets(buckets, write)
    }
}

#[expect(clippy::cast_precision_loss, reason = "indexes have 33 bits")]
fn index_value(index: i64) -> f64 {
    index as f64
}

impl Numbers for SummaryDataPoint {
    fn time(&self) -> u64 {
        self.time_unix_nano
    }

    fn start_time(&self) -> u64 {
        self.start_time_unix_nano
    }

    fn attributes(&self) -> &[KeyValue] {
        &self.attributes
    }

    fn labels(&self) -> &'static [&'static str] {
        &[QUANTILE]
    }

    fn numbers(&self, write: WriteNumber<'_>) -> Result<(), SkippedPoint> {
        check_recorded(self.flags)?;
        let (count, sum) = (self.count, Some(self.sum));
        Summed { count, sum, min: None, max: None }.write(write)?;
        if self.quantile_values.len() > BUCKETS_MAX {
            let rule = format!("has more than {BUCKETS_MAX} quantiles");
            return Err(SkippedPoint::Invalid(RecordError::invalid("quantile_values", rule)));
        }
        self.quantile_values.iter().try_for_each(|found| {
            let label = Some((QUANTILE, found.quantile));
            write(PointNumber { suffix: "", label, value: found.value })
        })
    }
}
