//! An encoded request whose keys can be changed in place.

use bytes::{Bytes, BytesMut};
use prost::Message;

/// Placeholder of a partition key, as long as the keys that replace it.
pub(super) const PARTITION: &str = "PPPPPPPP";
/// Placeholder of a row key.
pub(super) const ROW: &str = "RRRRRRRRRRRRRRRR";

/// A message encoded with [`PARTITION`] and [`ROW`] as keys, any number of times.
#[derive(Debug, Clone)]
pub(super) struct Template {
    encoded: Vec<u8>,
    partitions: Vec<usize>,
    rows: Vec<usize>,
}

impl Template {
    pub(super) fn new(message: &impl Message) -> Self {
        let encoded = message.encode_to_vec();
        let find = |needle: &str| {
            let windows = encoded.windows(needle.len()).enumerate();
            windows.filter(|(_, at)| *at == needle.as_bytes()).map(|(at, _)| at).collect()
        };
        Self { partitions: find(PARTITION), rows: find(ROW), encoded }
    }

    /// The message with this partition, and row keys that count up from `row`.
    pub(super) fn fill(&self, partition: u64, row: u64) -> Bytes {
        let mut message = BytesMut::from(self.encoded.as_slice());
        for at in &self.partitions {
            put(&mut message, *at, PARTITION.len(), partition);
        }
        for (at, row) in self.rows.iter().zip(row..) {
            put(&mut message, *at, ROW.len(), row);
        }
        message.freeze()
    }
}

/// Writes a number as `digits` decimal digits.
fn put(message: &mut BytesMut, at: usize, digits: usize, mut number: u64) {
    if let Some(field) = message.get_mut(at..at.saturating_add(digits)) {
        for digit in field.iter_mut().rev() {
            *digit = b'0'.saturating_add(u8::try_from(number % 10).unwrap_or_default());
            number /= 10;
        }
    }
}

/// A key as [`Template::fill`] writes it.
#[cfg(test)]
fn key(number: u64, digits: usize) -> String {
    format!("{number:0digits$}")
}

#[cfg(test)]
mod tests {
    use trestle_proto::table::v1::{ExecuteBatchRequest, batch_operation::Operation};

    use super::*;
    use crate::bench::load;

    #[test]
    fn every_operation_of_a_filled_batch_has_its_own_row() {
        let template = Template::new(&load::batch("table", 3, 2000));

        let filled = ExecuteBatchRequest::decode(template.fill(7, 41)).unwrap();

        let keys: Vec<_> = filled
            .operations
            .into_iter()
            .map(|operation| match operation.operation {
                Some(Operation::Insert(insert)) => insert.entity.unwrap(),
                other => unreachable!("{other:?}"),
            })
            .map(|entity| (entity.partition_key, entity.row_key))
            .collect();
        let expected: Vec<_> = (41..44).map(|row| (key(7, 8), key(row, 16))).collect();
        assert_eq!(keys, expected);
    }
}
