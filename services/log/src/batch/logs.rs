//! Batches of OTLP logs: one for each stream, without the records that violate a rule.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{
    EncodedBatch, RecordError, RecordTimes, Rejected,
    check::{OriginKind, RecordChecker},
    encode::{BatchEncoder, FRAME_BYTES_MAX},
};
use crate::wire::{MalformedMessage, MessageReader};

/// The encoded `ResourceLogs` of a request, by stream.
pub(crate) type LogsByStream = BTreeMap<String, Vec<Bytes>>;

/// Distributes logs to streams; `stream_of` names that of an encoded `Resource`.
///
/// # Errors
/// A request that is malformed around its records: nothing of it can be stored.
pub(crate) fn logs_by_stream(
    resource_logs: &[Bytes],
    stream_of: impl Fn(&[u8]) -> String,
) -> Result<LogsByStream, RecordError> {
    let mut streams = LogsByStream::new();
    for (index, logs) in resource_logs.iter().enumerate() {
        let found = check_structure(logs)
            .map_err(|error| RecordError::malformed(&format!("resource_logs[{index}]"), error))?;
        // A resource without records creates no stream.
        if let Some(resource) = found {
            streams.entry(stream_of(resource)).or_default().push(logs.clone());
        }
    }
    Ok(streams)
}

/// The resource of `ResourceLogs` in which everything around the records is well-formed; none where there is no record.
fn check_structure(logs: &[u8]) -> Result<Option<&[u8]>, MalformedMessage> {
    let (mut resource, mut has_records): (&[u8], _) = (&[], false);
    let mut fields = MessageReader::new(logs);
    while let Some((number, value)) = fields.next_field()? {
        match number {
            1 => resource = value.bytes()?,
            2 => {
                let mut fields = MessageReader::new(value.bytes()?);
                while let Some((number, value)) = fields.next_field()? {
                    if let 1 | 2 = number {
                        value.bytes()?;
                        has_records |= number == 2;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(has_records.then_some(resource))
}

/// The batch of the logs of one stream, which [`logs_by_stream`] returned, of at most so many bytes, and what it leaves
/// out.
pub(crate) fn batch_of_logs(
    resource_logs: &[Bytes],
    times: RecordTimes,
    bytes_max: usize,
) -> (Option<EncodedBatch>, Rejected) {
    let mut logs = LogsEncoder {
        checker: RecordChecker::new(times),
        batch: BatchEncoder::new(times.received, bytes_max),
        rejected: Rejected::default(),
    };
    for resource_logs in resource_logs {
        logs.add(resource_logs);
    }
    (logs.batch.finish(), logs.rejected)
}

struct LogsEncoder<'a> {
    checker: RecordChecker<'a>,
    batch: BatchEncoder,
    rejected: Rejected,
}

impl<'a> LogsEncoder<'a> {
    fn add(&mut self, logs: &'a [u8]) {
        let mut resource: &[u8] = &[];
        for value in fields_of(logs, 1) {
            resource = value;
        }
        if let Err(error) = self.checker.check_origin(OriginKind::Resource, resource) {
            let records = fields_of(logs, 2).flat_map(|logs| fields_of(logs, 2)).count();
            return self.rejected.add(records as u64, "resource", &error);
        }
        self.batch.begin_resource(resource);
        fields_of(logs, 2).for_each(|scope_logs| self.add_scope(scope_logs));
    }

    fn add_scope(&mut self, scope_logs: &'a [u8]) {
        let scope = fields_of(scope_logs, 1).last().unwrap_or_default();
        if let Err(error) = self.checker.check_origin(OriginKind::Scope, scope) {
            let records = fields_of(scope_logs, 2).count();
            return self.rejected.add(records as u64, "scope", &error);
        }
        self.batch.begin_group(scope);
        for (index, record) in fields_of(scope_logs, 2).enumerate() {
            let admitted = self.checker.check(record).and_then(|time| {
                self.batch.admit(&[time], record.len() + FRAME_BYTES_MAX)?;
                Ok(time)
            });
            match admitted {
                Ok(time) => self.batch.push(record, time),
                Err(error) => self.rejected.add(1, &format!("log_records[{index}]"), &error),
            }
        }
    }
}

/// The fields `number` of a message whose structure was checked.
fn fields_of(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    crate::record::entries_of(message, number).map_while(Result::ok)
}
