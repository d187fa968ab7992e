//! The records of a data point. What they have in common, which is most of them, is encoded and checked once.

use trestle_proto::{
    opentelemetry::proto::common::v1::any_value::Value,
    wire::{MalformedMessage, MessageReader, put_bytes, put_field, put_fixed64},
};

use super::points::{Numbers, PointKind, PointNumber};
use crate::{
    batch::{
        RecordError, RecordTimes,
        check::check_record_bytes,
        items::put_attributes,
        repair::{AdmittedRecord, Leniency, admit_owned},
    },
    record::{ATTRIBUTES, split_entry},
};

/// How many records a point becomes, and their bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PointSize {
    pub(super) records: usize,
    pub(super) bytes: usize,
}

/// See the module.
pub(super) struct PointRecords<'a, P> {
    kind: PointKind<'a>,
    point: &'a P,
    times: RecordTimes,
    left_out: u64,
    /// What the records without a label have in common, and those with one, of which there is room for one attribute
    /// less; none before the first of them.
    plain: Option<AdmittedRecord<'static>>,
    labelled: Option<AdmittedRecord<'static>>,
    /// The fields of the present record alone.
    own: Vec<u8>,
}

impl<'a, P: Numbers> PointRecords<'a, P> {
    /// Those of a point whose resource lacks `left_out` attributes.
    pub(super) fn new(
        kind: PointKind<'a>,
        point: &'a P,
        times: RecordTimes,
        left_out: u64,
    ) -> Self {
        Self { kind, point, times, left_out, plain: None, labelled: None, own: Vec::new() }
    }

    /// Adds the record of a number to the size of the point.
    ///
    /// # Errors
    /// A rule that the record violates.
    pub(super) fn measure(
        &mut self,
        number: &PointNumber,
        size: &mut PointSize,
    ) -> Result<(), RecordError> {
        let common = self.common(number)?.record.len();
        self.put_own(number);
        let bytes = common + self.own.len();
        check_record_bytes(bytes)?;
        size.records += 1;
        size.bytes += bytes;
        Ok(())
    }

    /// Writes the record of a number. Returns its effective time.
    ///
    /// # Errors
    /// A rule that the record violates.
    pub(super) fn write(
        &mut self,
        number: &PointNumber,
        out: &mut Vec<u8>,
    ) -> Result<u64, RecordError> {
        self.put_own(number);
        let AdmittedRecord { record, time } = self.common(number)?;
        let time = *time;
        out.clear();
        out.extend_from_slice(record);
        out.extend_from_slice(&self.own);
        Ok(time)
    }

    /// The effective time of the records; none before the first.
    pub(super) fn time(&self) -> Option<u64> {
        self.plain.as_ref().or(self.labelled.as_ref()).map(|common| common.time)
    }

    fn put_own(&mut self, number: &PointNumber) {
        let PointNumber { suffix, label, value } = number;
        self.own.clear();
        let label = label.map(|(key, value)| (key, Value::DoubleValue(value)));
        put_attributes(&mut self.own, &[], &[], label);
        let name = &self.kind.metric.name;
        put_bytes(&mut self.own, 12, format!("{name}{suffix}").as_bytes());
        put_fixed64(&mut self.own, 16, value.to_bits());
    }

    /// What records as that of a number have in common.
    fn common(&mut self, number: &PointNumber) -> Result<&AdmittedRecord<'static>, RecordError> {
        let label = number.label.map(|(key, _)| key);
        let (times, left_out) = (self.times, self.left_out);
        let place = if label.is_some() { &mut self.labelled } else { &mut self.plain };
        if place.is_none() {
            let record = encode_common(self.kind, self.point, label);
            let mut admitted = admit_owned(times, record, Leniency::InvalidParts, left_out)?;
            if let Some(label) = label {
                let others = without_label(&admitted.record, label);
                let others = others.map_err(|error| RecordError::malformed("", error))?;
                admitted.record = others.into();
            }
            *place = Some(admitted);
        }
        place.as_ref().ok_or_else(|| RecordError::invalid("", "has no record"))
    }
}

/// The fields that the records of a point have in common, with a label in its place before other attributes.
fn encode_common<P: Numbers>(kind: PointKind<'_>, point: &P, label: Option<&str>) -> Vec<u8> {
    let mut out = Vec::new();
    if point.time() != 0 {
        put_fixed64(&mut out, 1, point.time());
    }
    let label = label.map(|key| (key, Value::DoubleValue(0.0)));
    put_attributes(&mut out, point.attributes(), point.labels(), label);
    kind.put(&mut out, point.start_time());
    out
}

/// A record without the attribute that is a label.
fn without_label(record: &[u8], label: &str) -> Result<Vec<u8>, MalformedMessage> {
    let mut out = Vec::with_capacity(record.len());
    let mut fields = MessageReader::new(record);
    while let Some((number, value)) = fields.next_field()? {
        if number != ATTRIBUTES || split_entry(value.bytes()?)?.0 != label {
            put_field(&mut out, number, value);
        }
    }
    Ok(out)
}
