//! Encodes batches.

use std::collections::BTreeSet;

use bytes::Bytes;
use trestle_kv::limits::VALUE_BYTES_MAX;
use trestle_model::fault::{Fault, Reason};
use trestle_proto::wire::{begin_message, end_message, put_bytes, put_fixed64};
use trestle_rpc::layer::shares::Share;

use super::{
    FORMAT, RecordError,
    derived::DerivedBytes,
    repair::AdmittedRecord,
    rules::{DAYS_MAX, FRAME_BYTES_MAX},
    stored,
};
use crate::layout::DAY_NANOS;

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

/// What the batches of a stream in a request may have.
#[derive(Debug)]
pub(crate) struct BatchRoom {
    /// Most bytes of all, beside the bound of every batch.
    pub(crate) bytes: usize,
    /// Most days (UTC), beside the bound of every request.
    pub(crate) days: usize,
    /// Where bytes beyond those of the request are charged.
    pub(crate) derived: Option<DerivedBytes>,
}

impl Default for BatchRoom {
    /// What one batch may have, charged nowhere.
    fn default() -> Self {
        Self { bytes: BATCH_BYTES_MAX, days: DAYS_MAX, derived: None }
    }
}

/// Bytes of a batch that are not charged, beside twice those of the request: a batch of it has about as many.
const UNCHARGED_BYTES: usize = 4 * 1024;

/// Most bytes of a batch: a little less than those of a value of the store. A larger export has more than one.
pub(crate) const BATCH_BYTES_MAX: usize = VALUE_BYTES_MAX - 64 * 1024;
/// Most bytes of the records of a batch, each with its resource and its scope: reads and merges need as much memory.
pub(crate) const READ_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Most of these bytes of all batches of a request, for each byte of it: as many as a batch of a message of 8 MiB has.
const READ_EXPANSION_MAX: usize = 16;
/// Most records of a batch: of a few bytes each they take more memory than their bytes, in reads and in seals. As many
/// as a message has parts.
pub(super) const BATCH_RECORDS_MAX: usize = 300_000;
/// Bytes of a request for each of its records, at least, where they are more than a batch has.
const REQUEST_BYTES_PER_RECORD: usize = 28;

/// The error of a record that a request has no room for.
fn one_too_many(rule: &str) -> RecordError {
    let rule = format!("is one too many: {rule}");
    RecordError { reason: Reason::RecordTooLarge, field: String::new(), rule }
}

/// What records add to a batch, in bytes but for their number.
#[derive(Debug, Clone, Copy)]
struct Addition {
    records: usize,
    /// With their frames.
    bytes: usize,
    /// Of what precedes them in a group of their own.
    resource: usize,
    scope: usize,
    /// With the resource and the scope of each.
    read_bytes: usize,
}

/// The batch that is being written.
#[derive(Debug)]
struct OpenBatch {
    bytes: Vec<u8>,
    /// Where the bytes of the group begin that is open; none where it has no record.
    group: Option<usize>,
    /// Whether the group before has the present resource.
    has_resource: bool,
    records: u32,
    min_time: u64,
    max_time: u64,
    /// Bytes of the records, each with its resource and its scope.
    read_bytes: usize,
}

impl OpenBatch {
    /// Without a record, and room for so many bytes.
    fn new(received: u64, room: usize) -> Self {
        let mut bytes = vec![FORMAT];
        put_fixed64(&mut bytes, stored::RECEIVED, received);
        bytes.reserve(room.min(BATCH_BYTES_MAX));
        let (min_time, max_time) = (u64::MAX, 0);
        let (group, has_resource) = (None, false);
        Self { bytes, group, has_resource, records: 0, min_time, max_time, read_bytes: 0 }
    }

    /// Its bytes with an addition.
    fn bytes_with(&self, added: Addition) -> usize {
        let origin = match (self.group, self.has_resource) {
            (Some(_), _) => 0,
            (None, true) => added.scope + 3 * FRAME_BYTES_MAX,
            (None, false) => added.resource + added.scope + 3 * FRAME_BYTES_MAX,
        };
        self.bytes.len() + origin + added.bytes
    }

    /// Whether an addition keeps the bounds of a batch.
    fn has_room(&self, added: Addition) -> bool {
        self.bytes_with(added) <= BATCH_BYTES_MAX
            && self.records as usize + added.records <= BATCH_RECORDS_MAX
            && self.read_bytes + added.read_bytes <= READ_BYTES_MAX
    }

    fn end_group(&mut self) {
        if let Some(begin) = self.group.take() {
            end_message(&mut self.bytes, begin);
        }
    }

    /// The batch; none without a record.
    fn finish(mut self) -> Option<EncodedBatch> {
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

/// The batches of the records of a stream in a request.
#[derive(Debug)]
pub(super) struct EncodedBatches {
    /// In their order, none without a record.
    pub(super) batches: Vec<EncodedBatch>,
    /// On how many days (UTC) their records are.
    pub(super) days: usize,
    /// What is charged for them.
    pub(super) charged: Option<Share>,
}

/// Collects the records of a stream into batches: one, until it is full. They are copied: decoded bytes would keep the
/// buffers of the connection.
pub(super) struct BatchEncoder {
    received: u64,
    request_bytes: usize,
    finished: Vec<EncodedBatch>,
    /// Of the finished batches.
    finished_bytes: usize,
    open: OpenBatch,
    /// Of all batches.
    bytes_max: usize,
    days_max: usize,
    /// Bytes up to which nothing is charged.
    uncharged: usize,
    derived: Option<DerivedBytes>,
    /// Why more bytes could not be charged.
    refused: Option<Fault>,
    resource: Vec<u8>,
    scope: Vec<u8>,
    days: BTreeSet<u64>,
    last_day: Option<u64>,
    /// Records of all batches.
    records: usize,
    /// Bytes of these, each with its resource and its scope.
    read_bytes: usize,
}

impl BatchEncoder {
    /// Batches of a request with so many bytes.
    pub(super) fn new(received: u64, room: BatchRoom, request_bytes: usize) -> Self {
        Self {
            received,
            request_bytes,
            finished: Vec::new(),
            finished_bytes: 0,
            open: OpenBatch::new(received, request_bytes.min(room.bytes)),
            bytes_max: room.bytes,
            days_max: room.days.min(DAYS_MAX),
            uncharged: request_bytes.saturating_mul(2).saturating_add(UNCHARGED_BYTES),
            derived: room.derived,
            refused: None,
            resource: Vec::new(),
            scope: Vec::new(),
            days: BTreeSet::new(),
            last_day: None,
            records: 0,
            read_bytes: 0,
        }
    }

    /// Sets the resource of the groups that follow.
    pub(super) fn begin_resource(&mut self, resource: &[u8]) {
        self.open.end_group();
        self.open.has_resource = false;
        self.resource.clear();
        self.resource.extend_from_slice(resource);
    }

    /// Begins a group; the records that follow have the present resource and this scope. Both are written with the
    /// first record, the resource once for all its groups in a batch.
    pub(super) fn begin_group(&mut self, scope: &[u8]) {
        self.open.end_group();
        self.scope.clear();
        self.scope.extend_from_slice(scope);
    }

    /// Checks that there is room for so many records of each of these times, of so many bytes in total with their
    /// frames, and charges the bytes. They will all be in one batch.
    ///
    /// # Errors
    /// A time on one day too many, too many records, or too many bytes.
    fn admit(&mut self, times: &[u64], each: usize, bytes: usize) -> Result<(), RecordError> {
        let (resource, scope) = (self.resource.len(), self.scope.len());
        let records = times.len() * each;
        let read_bytes = records * (resource + scope) + bytes;
        let added = Addition { records, bytes, resource, scope, read_bytes };
        let next = (!self.open.has_room(added)).then(|| OpenBatch::new(self.received, 0));
        self.check_room(next.as_ref(), added)?;
        let open = next.as_ref().map_or(0, |_| self.open.bytes.len());
        let bytes_after = next.as_ref().unwrap_or(&self.open).bytes_with(added);
        self.charge(self.finished_bytes + open + bytes_after)?;
        let is_of_last_day = |time: &u64| self.last_day == Some(time / DAY_NANOS);
        if !times.iter().all(is_of_last_day) {
            self.admit_days(times)?;
        }
        if next.is_some() {
            self.end_batch();
        }
        self.records += records;
        self.read_bytes += read_bytes;
        self.open.read_bytes += read_bytes;
        Ok(())
    }

    /// Checks the bounds of all batches, and those of the `next` one where the open one is full.
    ///
    /// # Errors
    /// Too many records or bytes.
    fn check_room(&self, next: Option<&OpenBatch>, added: Addition) -> Result<(), RecordError> {
        let over_bytes =
            |max| one_too_many(&format!("with their resources the records have over {max} bytes"));
        let earlier = self.finished_bytes + next.map_or(0, |_| self.open.bytes.len());
        let bytes = next.unwrap_or(&self.open).bytes_with(added);
        if earlier + bytes > self.bytes_max {
            return Err(over_bytes(self.bytes_max));
        }
        let most = BATCH_RECORDS_MAX.max(self.request_bytes / REQUEST_BYTES_PER_RECORD);
        if self.records + added.records > most {
            return Err(one_too_many(&format!("a stream takes {most} records of a request")));
        }
        let most = READ_BYTES_MAX.max(self.request_bytes.saturating_mul(READ_EXPANSION_MAX));
        if self.read_bytes + added.read_bytes > most {
            return Err(one_too_many(&format!(
                "with resource and scope, the records have over {most} bytes"
            )));
        }
        match next {
            // More than any batch has.
            Some(next) if !next.has_room(added) => Err(over_bytes(BATCH_BYTES_MAX)),
            _ => Ok(()),
        }
    }

    /// Begins the next batch.
    fn end_batch(&mut self) {
        let left = self.request_bytes.saturating_sub(self.finished_bytes + self.open.bytes.len());
        let full = std::mem::replace(&mut self.open, OpenBatch::new(self.received, left));
        if let Some(batch) = full.finish() {
            self.finished_bytes += batch.bytes.len();
            self.finished.push(batch);
        }
    }

    /// Charges the bytes of the batches beyond those of their request.
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

    /// Checks that there is room for so many records of one time before they are made. Each is added by
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
        let Self { open, resource, scope, .. } = self;
        if open.group.is_none() {
            open.group = Some(begin_message(&mut open.bytes, stored::GROUP));
            if open.has_resource {
                put_bytes(&mut open.bytes, stored::SAME_RESOURCE, &[]);
            } else if !resource.is_empty() {
                put_bytes(&mut open.bytes, stored::RESOURCE, resource);
                open.has_resource = true;
            }
            if !scope.is_empty() {
                put_bytes(&mut open.bytes, stored::SCOPE, scope);
            }
        }
        put_bytes(&mut open.bytes, stored::RECORD, record);
        open.records += 1;
        open.min_time = open.min_time.min(time);
        open.max_time = open.max_time.max(time);
    }

    /// The batches.
    ///
    /// # Errors
    /// Bytes of them could not be charged.
    pub(super) fn finish(self) -> Result<EncodedBatches, Fault> {
        let Self { finished: mut batches, open, days, derived, refused, .. } = self;
        if let Some(fault) = refused {
            return Err(fault);
        }
        batches.extend(open.finish());
        let charged = derived.and_then(DerivedBytes::into_share);
        Ok(EncodedBatches { batches, days: days.len(), charged })
    }
}
