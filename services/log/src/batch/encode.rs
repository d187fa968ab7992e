//! Encodes batches.

use std::collections::BTreeSet;

use bytes::Bytes;
use trestle_kv::limits::VALUE_BYTES_MAX;
use trestle_service::fault::Reason;

use super::{FORMAT, RecordError, repair::AdmittedRecord, rules::DAYS_MAX, stored};
use crate::{
    layout::DAY_NANOS,
    wire::{begin_message, end_message, put_bytes, put_fixed64},
};

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

/// Most bytes of a batch: a little less than those of a value of the store.
pub(crate) const BATCH_BYTES_MAX: usize = VALUE_BYTES_MAX - 64 * 1024;
/// Most bytes of the records of a batch, each with its resource and its scope: reads and merges need as much memory.
pub(crate) const READ_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Most records of a batch: of a few bytes each they take more memory than their bytes, in reads and in seals. As many
/// as a message has parts.
pub(super) const BATCH_RECORDS_MAX: usize = 300_000;
/// Bytes of a record in a batch, and of a group, beside its content, at most.
pub(super) const FRAME_BYTES_MAX: usize = 16;

/// The error of a record that a batch has no room for.
fn one_too_many(rule: &str) -> RecordError {
    let rule = format!("is one too many: {rule}");
    RecordError { reason: Reason::RecordTooLarge, field: String::new(), rule }
}

/// Collects the records of a batch. They are copied: decoded bytes would keep the buffers of the connection.
pub(super) struct BatchEncoder {
    bytes: Vec<u8>,
    bytes_max: usize,
    resource: Vec<u8>,
    scope: Vec<u8>,
    /// Where the bytes of the group begin that is open; none where it has no record.
    group: Option<usize>,
    records: u32,
    min_time: u64,
    max_time: u64,
    days: BTreeSet<u64>,
    last_day: Option<u64>,
    /// Bytes of the records, each with its resource and its scope.
    read_bytes: usize,
}

impl BatchEncoder {
    /// A batch of at most so many bytes.
    pub(super) fn new(received: u64, bytes_max: usize) -> Self {
        let mut bytes = vec![FORMAT];
        put_fixed64(&mut bytes, stored::RECEIVED, received);
        Self {
            bytes,
            bytes_max: bytes_max.min(BATCH_BYTES_MAX),
            resource: Vec::new(),
            scope: Vec::new(),
            group: None,
            records: 0,
            min_time: u64::MAX,
            max_time: 0,
            days: BTreeSet::new(),
            last_day: None,
            read_bytes: 0,
        }
    }

    /// Makes room for records of so many bytes: those that are collected are not moved then.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes.min(self.bytes_max));
    }

    /// Sets the resource of the groups that follow.
    pub(super) fn begin_resource(&mut self, resource: &[u8]) {
        self.end_group();
        self.resource.clear();
        self.resource.extend_from_slice(resource);
    }

    /// Begins a group; the records that follow have the present resource and this scope. Both are written with the
    /// first record: a request may have many scopes, each of which repeats the resource.
    pub(super) fn begin_group(&mut self, scope: &[u8]) {
        self.end_group();
        self.scope.clear();
        self.scope.extend_from_slice(scope);
    }

    /// Checks that the batch has room for records of these times, of so many bytes with their frames.
    ///
    /// # Errors
    /// A time on one day too many, or too many bytes.
    fn admit(&mut self, times: &[u64], bytes: usize) -> Result<(), RecordError> {
        let origin = match self.group {
            None => self.resource.len() + self.scope.len() + 3 * FRAME_BYTES_MAX,
            Some(_) => 0,
        };
        if self.bytes.len() + origin + bytes > self.bytes_max {
            return Err(one_too_many(&format!(
                "with their resources the records have over {} bytes",
                self.bytes_max
            )));
        }
        if self.records as usize + times.len() > BATCH_RECORDS_MAX {
            return Err(one_too_many(&format!(
                "a stream takes {BATCH_RECORDS_MAX} records of a request"
            )));
        }
        let origins = times.len() * (self.resource.len() + self.scope.len());
        let read_bytes = self.read_bytes + origins + bytes;
        if read_bytes > READ_BYTES_MAX {
            return Err(one_too_many(&format!(
                "with resource and scope, the records have over {READ_BYTES_MAX} bytes"
            )));
        }
        let is_of_last_day = |time: &u64| self.last_day == Some(time / DAY_NANOS);
        if !times.iter().all(is_of_last_day) {
            self.admit_days(times)?;
        }
        self.read_bytes = read_bytes;
        Ok(())
    }

    fn admit_days(&mut self, times: &[u64]) -> Result<(), RecordError> {
        let days = times.iter().map(|time| time / DAY_NANOS);
        let added: BTreeSet<u64> = days.filter(|day| !self.days.contains(day)).collect();
        if self.days.len() + added.len() > DAYS_MAX {
            return Err(RecordError {
                reason: Reason::RecordTimeOutOfRange,
                field: "time_unix_nano".to_owned(),
                rule: format!(
                    "is on a day too many: a request has records of at most {DAYS_MAX} days"
                ),
            });
        }
        self.days.extend(added);
        self.last_day = times.last().map(|time| time / DAY_NANOS);
        Ok(())
    }

    /// Adds a record.
    ///
    /// # Errors
    /// As of [`BatchEncoder::admit`].
    pub(super) fn add(&mut self, admitted: &AdmittedRecord<'_>) -> Result<(), RecordError> {
        let AdmittedRecord { record, time } = admitted;
        self.admit(&[*time], record.len() + FRAME_BYTES_MAX)?;
        self.push(record, *time);
        Ok(())
    }

    /// Adds records, all or none.
    ///
    /// # Errors
    /// As of [`BatchEncoder::admit`].
    pub(super) fn add_all(&mut self, records: &[AdmittedRecord<'_>]) -> Result<(), RecordError> {
        if records.is_empty() {
            return Ok(());
        }
        let times: Vec<_> = records.iter().map(|admitted| admitted.time).collect();
        let bytes = records.iter().map(|admitted| admitted.record.len() + FRAME_BYTES_MAX).sum();
        self.admit(&times, bytes)?;
        records.iter().for_each(|admitted| self.push(&admitted.record, admitted.time));
        Ok(())
    }

    fn push(&mut self, record: &[u8], time: u64) {
        if self.group.is_none() {
            self.group = Some(begin_message(&mut self.bytes, stored::GROUP));
            for (number, origin) in
                [(stored::RESOURCE, &self.resource), (stored::SCOPE, &self.scope)]
            {
                if !origin.is_empty() {
                    put_bytes(&mut self.bytes, number, origin);
                }
            }
        }
        put_bytes(&mut self.bytes, stored::RECORD, record);
        self.records += 1;
        self.min_time = self.min_time.min(time);
        self.max_time = self.max_time.max(time);
    }

    fn end_group(&mut self) {
        if let Some(begin) = self.group.take() {
            end_message(&mut self.bytes, begin);
        }
    }

    /// The batch; none without a record.
    pub(super) fn finish(mut self) -> Option<EncodedBatch> {
        self.end_group();
        let Self { mut bytes, records, min_time, max_time, .. } = self;
        // A batch stays in memory until it is flushed: not with the room of many records that were rejected.
        if bytes.capacity() / 2 > bytes.len() {
            bytes.shrink_to_fit();
        }
        let batch = EncodedBatch { bytes: Bytes::from(bytes), records, min_time, max_time };
        (records > 0).then_some(batch)
    }
}
