//! Validates encoded records in place: one walk over the bytes, without allocation.

use trestle_model::fault::Reason;
use trestle_proto::wire::{FieldValue, MalformedMessage, MessageReader};

use super::rules::{
    ATTRIBUTE_KEY_BYTES_MAX, ATTRIBUTES_MAX, ORIGIN_BYTES_MAX, RECORD_BYTES_MAX, RecordError,
    RecordTimes, VALUE_DEPTH_MAX,
};
use crate::record::{TEMPORALITY_MAX, entries_of};

/// Names of the fields of a record, by number.
const FIELDS: [&str; 24] = [
    "",
    "time_unix_nano",
    "severity_number",
    "severity_text",
    "",
    "body",
    "attributes",
    "dropped_attributes_count",
    "flags",
    "trace_id",
    "span_id",
    "observed_time_unix_nano",
    "event_name",
    "",
    "",
    "",
    "value",
    "resource",
    "scope",
    "sequence",
    "start_time_unix_nano",
    "temporality",
    "is_monotonic",
    "unit",
];
/// Fields that occur once: a second one would replace the first for one parser, and not for another.
const SINGULAR: u32 = 0b1111_0001_0001_1111_1010_1110;
/// The greatest number of a severity, FATAL4.
pub(super) const SEVERITY_MAX: u64 = 24;
const TWICE: MalformedMessage = MalformedMessage("field occurs twice");
const KEY_TWICE: MalformedMessage = MalformedMessage("map has a key twice");

/// What records have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OriginKind {
    /// A `Resource`.
    Resource,
    /// An `InstrumentationScope`.
    Scope,
}

impl OriginKind {
    /// The numbers of its texts, of its attributes, and of how many of these were dropped.
    pub(super) fn fields(self) -> (std::ops::Range<u32>, u32, u32) {
        match self {
            Self::Resource => (1..1, 1, 2),
            Self::Scope => (1..3, 3, 4),
        }
    }
}

/// Validates the records of one request. The memory for the keys of a record is used again for the next one.
pub(crate) struct RecordChecker<'a> {
    times: RecordTimes,
    /// The keys of the attributes so far, and behind them those of the maps around the present value.
    keys: Vec<&'a [u8]>,
}

impl<'a> RecordChecker<'a> {
    pub(crate) fn new(times: RecordTimes) -> Self {
        Self { times, keys: Vec::new() }
    }

    /// The times that records may have.
    pub(super) fn times(&self) -> RecordTimes {
        self.times
    }

    /// The effective time of a record that keeps every rule.
    ///
    /// # Errors
    /// The first rule that the record violates.
    pub(crate) fn check(&mut self, record: &'a [u8]) -> Result<u64, RecordError> {
        check_record_bytes(record.len())?;
        self.keys.clear();
        let (mut seen, mut time, mut observed) = (0_u32, 0, 0);
        let mut fields = MessageReader::new(record);
        let malformed = |error| RecordError::malformed("", error);
        while let Some((number, value)) = fields.next_field().map_err(malformed)? {
            let bit = 1_u32.checked_shl(number).unwrap_or(0) & SINGULAR;
            if seen & bit != 0 {
                return Err(RecordError::malformed(name_of(number), TWICE));
            }
            seen |= bit;
            let checked = match number {
                1 => value.fixed64().map(|found| time = found),
                11 => value.fixed64().map(|found| observed = found),
                6 => {
                    self.check_attribute(value).map_err(|error| error.within("attributes"))?;
                    Ok(())
                }
                5 => value.bytes().and_then(|body| self.check_any_value(body, VALUE_DEPTH_MAX)),
                _ => check_field(number, value)?,
            };
            checked.map_err(|error| RecordError::malformed(name_of(number), error))?;
        }
        self.check_unique().map_err(|error| error.within("attributes"))?;
        self.times.effective(time, observed)
    }

    /// Validates an encoded resource or scope.
    ///
    /// # Errors
    /// The first rule that it violates.
    pub(crate) fn check_origin(
        &mut self,
        origin: OriginKind,
        message: &'a [u8],
    ) -> Result<(), RecordError> {
        if message.len() > ORIGIN_BYTES_MAX {
            let rule = format!("has {} bytes, more than {ORIGIN_BYTES_MAX}", message.len());
            return Err(RecordError::invalid("", rule));
        }
        self.keys.clear();
        let (texts, attributes, dropped) = origin.fields();
        let mut fields = MessageReader::new(message);
        let malformed = |error| RecordError::malformed("", error);
        let mut seen = 0_u32;
        while let Some((number, value)) = fields.next_field().map_err(malformed)? {
            if number == attributes {
                self.check_attribute(value).map_err(|error| error.within("attributes"))?;
                continue;
            }
            let checked = match number {
                text if texts.contains(&text) => value.text().map(drop),
                count if count == dropped => value.varint().map(drop),
                _ => continue,
            };
            let bit = 1 << number;
            let checked = if seen & bit == 0 { checked } else { Err(TWICE) };
            checked.map_err(malformed)?;
            seen |= bit;
        }
        self.check_unique().map_err(|error| error.within("attributes"))
    }

    fn check_attribute(&mut self, entry: FieldValue<'a>) -> Result<(), RecordError> {
        if self.keys.len() == ATTRIBUTES_MAX {
            return Err(RecordError::invalid(
                "",
                format!("has more than {ATTRIBUTES_MAX} entries"),
            ));
        }
        let malformed = |error| RecordError::malformed("", error);
        let entry = entry.bytes().map_err(malformed)?;
        let key = self.check_entry(entry, VALUE_DEPTH_MAX).map_err(malformed)?;
        if key.is_empty() || key.len() > ATTRIBUTE_KEY_BYTES_MAX {
            let rule =
                format!("has a key of {} bytes, not 1 to {ATTRIBUTE_KEY_BYTES_MAX}", key.len());
            return Err(RecordError::invalid("", rule));
        }
        self.keys.push(key);
        Ok(())
    }

    fn check_unique(&mut self) -> Result<(), RecordError> {
        match self.repeated_key(0) {
            None => Ok(()),
            Some(key) => {
                let key = String::from_utf8_lossy(key);
                let key = trestle_model::fault::quoted(&key);
                Err(RecordError::invalid("", format!("has a key twice: key=`{key}`")))
            }
        }
    }

    /// A key that is there twice among those from `start` on.
    fn repeated_key(&mut self, start: usize) -> Option<&'a [u8]> {
        let keys = self.keys.get_mut(start..)?;
        keys.sort_unstable();
        keys.windows(2).find_map(|pair| match pair {
            [first, second] if first == second => Some(*first),
            _ => None,
        })
    }

    /// Validates a `KeyValue`, and returns its key.
    fn check_entry(&mut self, entry: &'a [u8], depth: usize) -> Result<&'a [u8], MalformedMessage> {
        let mut fields = MessageReader::new(entry);
        let (mut key, mut has_value) = (None, false);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                1 if key.is_some() => return Err(TWICE),
                1 => key = Some(value.text()?.as_bytes()),
                2 if has_value => return Err(TWICE),
                2 => {
                    has_value = true;
                    self.check_any_value(value.bytes()?, depth)?;
                }
                _ => {}
            }
        }
        Ok(key.unwrap_or_default())
    }

    /// Validates an `AnyValue` that has at most `depth` levels.
    fn check_any_value(
        &mut self,
        any_value: &'a [u8],
        depth: usize,
    ) -> Result<(), MalformedMessage> {
        let Some(inner) = depth.checked_sub(1) else {
            return Err(MalformedMessage("value is nested more than 16 deep"));
        };
        let mut fields = MessageReader::new(any_value);
        let mut has_value = false;
        while let Some((number, value)) = fields.next_field()? {
            if (1..=7).contains(&number) && std::mem::replace(&mut has_value, true) {
                return Err(TWICE);
            }
            match number {
                1 => drop(value.text()?),
                2 | 3 => drop(value.varint()?),
                4 => drop(value.fixed64()?),
                5 => {
                    for value in entries_of(value.bytes()?, 1) {
                        self.check_any_value(value?, inner)?;
                    }
                }
                6 => {
                    let start = self.keys.len();
                    for entry in entries_of(value.bytes()?, 1) {
                        let key = self.check_entry(entry?, inner)?;
                        self.keys.push(key);
                    }
                    if self.repeated_key(start).is_some() {
                        return Err(KEY_TWICE);
                    }
                    self.keys.truncate(start);
                }
                7 => drop(value.bytes()?),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Validates the bytes of a record.
///
/// # Errors
/// It has too many.
pub(super) fn check_record_bytes(bytes: usize) -> Result<(), RecordError> {
    if bytes <= RECORD_BYTES_MAX {
        return Ok(());
    }
    Err(RecordError {
        reason: Reason::RecordTooLarge,
        field: String::new(),
        rule: format!("has {bytes} bytes, more than {RECORD_BYTES_MAX}"),
    })
}

fn name_of(number: u32) -> &'static str {
    FIELDS.get(number as usize).copied().unwrap_or_default()
}

/// Validates a field that has no state. The inner error is that of its encoding.
fn check_field(
    number: u32,
    value: FieldValue<'_>,
) -> Result<Result<(), MalformedMessage>, RecordError> {
    Ok(match number {
        2 => match value.varint() {
            Ok(severity) if severity > SEVERITY_MAX => {
                let rule = format!("is `{severity}`, not 0 to {SEVERITY_MAX}");
                return Err(RecordError::invalid(name_of(number), rule));
            }
            checked => checked.map(drop),
        },
        3 | 12 | 23 => value.text().map(drop),
        7 | 22 => value.varint().map(drop),
        8 => value.fixed32().map(drop),
        9 => return check_id(number, value, 16),
        10 => return check_id(number, value, 8),
        16 | 20 => value.fixed64().map(drop),
        21 => match value.varint() {
            Ok(temporality) if temporality > TEMPORALITY_MAX => {
                let rule = format!("is `{temporality}`, not 0 to {TEMPORALITY_MAX}");
                return Err(RecordError::invalid(name_of(number), rule));
            }
            checked => checked.map(drop),
        },
        17..=19 => {
            return Err(RecordError::invalid(name_of(number), "is output only: remove it"));
        }
        _ => Ok(()),
    })
}

fn check_id(
    number: u32,
    value: FieldValue<'_>,
    length: usize,
) -> Result<Result<(), MalformedMessage>, RecordError> {
    match value.bytes() {
        Err(error) => Ok(Err(error)),
        Ok([]) => Ok(Ok(())),
        Ok(id) => check_id_bytes(name_of(number), id, length).map(Ok),
    }
}

/// Validates the id in a field, which must be present.
///
/// # Errors
/// Another length, or zeros only.
pub(super) fn check_id_bytes(field: &str, id: &[u8], length: usize) -> Result<(), RecordError> {
    let rule = match id.len() {
        found if found != length => format!("has {found} bytes, not {length}"),
        _ if id.iter().all(|byte| *byte == 0) => "is all zero".to_owned(),
        _ => return Ok(()),
    };
    Err(RecordError::invalid(field, rule))
}
