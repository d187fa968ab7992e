//! Encodes batches.

use std::collections::BTreeSet;

use bytes::Bytes;
use trestle_kv::limits::VALUE_BYTES_MAX;
use trestle_service::{
    fault::{Fault, Reason},
    layer::shares::Share,
};

use super::{
    FORMAT, RecordError, derived::DerivedBytes, repair::AdmittedRecord, rules::DAYS_MAX, stored,
};
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
    /// On how many days (UTC) its records are.
    pub(crate) days: usize,
}

/// What a batch may have.
#[derive(Debug)]
pub(crate) struct BatchRoom {
    /// Most bytes, beside the bound of every batch.
    pub(crate) bytes: usize,
    /// Most days (UTC), beside the bound of every batch.
    pub(crate) days: usize,
    /// Where bytes beyond those of the request are charged.
    pub(crate) derived: Option<DerivedBytes>,
}

impl Default for BatchRoom {
    /// What every batch may have, charged nowhere.
    fn default() -> Self {
        Self { bytes: BATCH_BYTES_MAX, days: DAYS_MAX, derived: None }
    }
}

/// Bytes of a batch that are not charged, beside twice those of the request: a batch of it has about as many.
const UNCHARGED_BYTES: usize = 4 * 1024;

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
    days_max: usize,
    /// Bytes up to which nothing is charged.
    uncharged: usize,
    derived: Option<DerivedBytes>,
    /// Why more bytes could not be charged.
    refused: Option<Fault>,
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
    /// A batch of a request with so many bytes.
    pub(super) fn new(received: u64, room: BatchRoom, request_bytes: usize) -> Self {
        let mut bytes = vec![FORMAT];
        put_fixed64(&mut bytes, stored::RECEIVED, received);
        let bytes_max = room.bytes.min(BATCH_BYTES_MAX);
        bytes.reserve(request_bytes.min(bytes_max));
        Self {
            bytes,
            bytes_max,
            days_max: room.days.min(DAYS_MAX),
            uncharged: request_bytes.saturating_mul(2).saturating_add(UNCHARGED_BYTES),
            derived: room.derived,
            refused: None,
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

    /// Checks that the batch has room for so many records of each of these times, of so many bytes in total with their
    /// frames, and charges the bytes.
    ///
    /// # Errors
    /// A time on one day too many, or too many bytes.
    fn admit(&mut self, times: &[u64], each: usize, bytes: usize) -> Result<(), RecordError> {
        let records = times.len() * each;
        let origin = match self.group {
            None => self.resource.len() + self.scope.len() + 3 * FRAME_BYTES_MAX,
            Some(_) => 0,
        };
        let bytes_after = self.bytes.len() + origin + bytes;
        if bytes_after > self.bytes_max {
            return Err(one_too_many(&format!(
                "with their resources the records have over {} bytes",
                self.bytes_max
            )));
        }
        if self.records as usize + records > BATCH_RECORDS_MAX {
            return Err(one_too_many(&format!(
                "a stream takes {BATCH_RECORDS_MAX} records of a request"
            )));
        }
        let origins = records * (self.resource.len() + self.scope.len());
        let read_bytes = self.read_bytes + origins + bytes;
        if read_bytes > READ_BYTES_MAX {
            return Err(one_too_many(&format!(
                "with resource and scope, the records have over {READ_BYTES_MAX} bytes"
            )));
        }
        self.charge(bytes_after)?;
        let is_of_last_day = |time: &u64| self.last_day == Some(time / DAY_NANOS);
        if !times.iter().all(is_of_last_day) {
            self.admit_days(times)?;
        }
        self.read_bytes = read_bytes;
        Ok(())
    }

    /// Charges the bytes of the batch beyond those of its request.
    fn charge(&mut self, bytes: usize) -> Result<(), RecordError> {
        let Some(derived) = self.derived.as_mut().filter(|_| bytes > self.uncharged) else {
            return Ok(());
        };
        derived.charge(bytes - self.uncharged).map_err(|fault| {
            let error = one_too_many(&fault.message);
            self.refused.get_or_insert(fault);
            error
        })
    }

    fn admit_days(&mut self, times: &[u64]) -> Result<(), RecordError> {
        let days = times.iter().map(|time| time / DAY_NANOS);
        let added: BTreeSet<u64> = days.filter(|day| !self.days.contains(day)).collect();
        if self.days.len() + added.len() > self.days_max {
            return Err(RecordError {
                reason: Reason::RecordTimeOutOfRange,
                field: "time_unix_nano".to_owned(),
                rule: format!(
                    "is on a day too many: a request has records of at most {} days",
                    self.days_max
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
        self.admit(&[*time], 1, record.len() + FRAME_BYTES_MAX)?;
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
        self.admit(&times, 1, bytes)?;
        records.iter().for_each(|admitted| self.push(&admitted.record, admitted.time));
        Ok(())
    }

    /// Checks that the batch has room for so many records of one time before they are made. Each is added by
    /// [`BatchEncoder::push`].
    ///
    /// # Errors
    /// As of [`BatchEncoder::admit`].
    pub(super) fn admit_point(
        &mut self,
        time: u64,
        records: usize,
        record_bytes: usize,
    ) -> Result<(), RecordError> {
        self.admit(&[time], records, record_bytes + records * FRAME_BYTES_MAX)
    }

    /// Adds a record that was admitted.
    pub(super) fn push(&mut self, record: &[u8], time: u64) {
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

    /// The batch, none without a record, and what is charged of it.
    ///
    /// # Errors
    /// Bytes of it could not be charged.
    pub(super) fn finish(mut self) -> Result<(Option<EncodedBatch>, Option<Share>), Fault> {
        self.end_group();
        let Self { mut bytes, records, min_time, max_time, days, derived, refused, .. } = self;
        if let Some(fault) = refused {
            return Err(fault);
        }
        // A batch stays in memory until it is flushed: not with the room of many records that were rejected.
        if bytes.capacity() / 2 > bytes.len() {
            bytes.shrink_to_fit();
        }
        let days = days.len();
        let batch = EncodedBatch { bytes: Bytes::from(bytes), records, min_time, max_time, days };
        let batch = (records > 0).then_some(batch);
        Ok((batch, derived.and_then(DerivedBytes::into_share)))
    }
}
