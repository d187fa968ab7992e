//! What the value of a data point is since, by the names that records are printed with.

use trestle_proto::opentelemetry::proto::metrics::v1::AggregationTemporality;

/// The name; none where it is not stated.
pub(super) fn name_of(number: i32) -> Option<&'static str> {
    match AggregationTemporality::try_from(number) {
        Ok(AggregationTemporality::Delta) => Some("delta"),
        Ok(AggregationTemporality::Cumulative) => Some("cumulative"),
        Ok(AggregationTemporality::Unspecified) | Err(_) => None,
    }
}

/// The number of a name; none for another text.
pub(super) fn number_of(name: &str) -> Option<i32> {
    match name {
        "delta" => Some(AggregationTemporality::Delta.into()),
        "cumulative" => Some(AggregationTemporality::Cumulative.into()),
        _ => None,
    }
}
