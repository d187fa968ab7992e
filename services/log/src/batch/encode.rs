//! Encodes batches.

use bytes::Bytes;

use super::{FORMAT, stored};
use crate::wire::{put_bytes, put_fixed64};

/// A batch as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EncodedBatch {
    /// The stored bytes.
    pub(crate) bytes: Bytes,
    /// Number of records, at least one.
    pub(crate) records: u32,
    /// The least effective time.
    pub(crate) min_time: u64,
    /// The greatest effective time.
    pub(crate) max_time: u64,
}

/// Collects the records of a batch. They are copied: decoded bytes would keep the buffers of the connection.
pub(super) struct BatchEncoder {
    bytes: Vec<u8>,
    group: Vec<u8>,
    group_records: u32,
    records: u32,
    min_time: u64,
    max_time: u64,
}

impl BatchEncoder {
    pub(super) fn new(received: u64) -> Self {
        let mut bytes = vec![FORMAT];
        put_fixed64(&mut bytes, stored::RECEIVED, received);
        let (group, group_records, records) = (Vec::new(), 0, 0);
        Self { bytes, group, group_records, records, min_time: u64::MAX, max_time: 0 }
    }

    /// Begins a group; the records that follow have this resource and scope.
    pub(super) fn begin_group(&mut self, resource: &[u8], scope: &[u8]) {
        self.end_group();
        if !resource.is_empty() {
            put_bytes(&mut self.group, stored::RESOURCE, resource);
        }
        if !scope.is_empty() {
            put_bytes(&mut self.group, stored::SCOPE, scope);
        }
    }

    /// Adds a record that was validated.
    pub(super) fn push(&mut self, record: &[u8], time: u64) {
        put_bytes(&mut self.group, stored::RECORD, record);
        self.group_records += 1;
        self.records += 1;
        self.min_time = self.min_time.min(time);
        self.max_time = self.max_time.max(time);
    }

    fn end_group(&mut self) {
        if self.group_records > 0 {
            put_bytes(&mut self.bytes, stored::GROUP, &self.group);
        }
        self.group.clear();
        self.group_records = 0;
    }

    /// The batch; none without a record.
    pub(super) fn finish(mut self) -> Option<EncodedBatch> {
        self.end_group();
        let Self { bytes, records, min_time, max_time, .. } = self;
        let batch = EncodedBatch { bytes: Bytes::from(bytes), records, min_time, max_time };
        (records > 0).then_some(batch)
    }
}
