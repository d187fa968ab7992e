//! The entities, by their numbers.

use super::{PARTITION_ROWS, PARTITIONS};
use crate::{load, rest::sign::ACCOUNT};

/// The key of an entity of [`super::ROWS`].
pub(in crate::rest) fn row(number: u64) -> (String, String) {
    let number = number % (PARTITIONS * PARTITION_ROWS);
    (format!("p{}", number / PARTITION_ROWS), format!("{:012}", number % PARTITION_ROWS))
}

/// The key of an entity of [`super::GROWN`].
pub(in crate::rest) fn grown(number: u64) -> (String, String) {
    (format!("p{:05}", number % 1000), format!("{number:012}"))
}

/// The key of an entity of a batch into [`super::GROWN`].
pub(in crate::rest) fn batched(number: u64, row: u64) -> (String, String) {
    (format!("b{:05}", number % 1000), format!("{number:012}-{row:03}"))
}

/// The entity in JSON, with 1 KiB of text.
pub(super) fn entity((partition, row): &(String, String)) -> String {
    let text = load::payload();
    format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"payload\":\"{text}\"}}")
}

/// The path of an entity.
pub(super) fn path(table: &str, (partition, row): &(String, String)) -> String {
    format!("/{ACCOUNT}/{table}(PartitionKey='{partition}',RowKey='{row}')")
}
