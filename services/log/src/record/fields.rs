//! Which fields of records a read returns.

use crate::record::{ATTRIBUTES, RESOURCE};

/// A set of fields of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordFields(u32);

/// Names and numbers, as in the contract.
const NAMES: [(&str, u32); 19] = [
    ("time_unix_nano", 1),
    ("severity_number", 2),
    ("severity_text", 3),
    ("body", 5),
    ("attributes", ATTRIBUTES),
    ("dropped_attributes_count", 7),
    ("flags", 8),
    ("trace_id", 9),
    ("span_id", 10),
    ("observed_time_unix_nano", 11),
    ("event_name", 12),
    ("value", 16),
    ("resource", RESOURCE),
    ("scope", 18),
    ("sequence", 19),
    ("start_time_unix_nano", 20),
    ("temporality", 21),
    ("is_monotonic", 22),
    ("unit", 23),
];

impl RecordFields {
    /// Every field.
    pub(crate) const ALL: Self = Self(u32::MAX);
    /// What a record is made of when it is stored again: all but the position.
    pub(crate) const STORED: Self = Self(!(1 << 19));

    /// The fields of these names; all of them where there is no name.
    ///
    /// # Errors
    /// The first name that no field has.
    pub(crate) fn from_names<'n>(
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, &'n str> {
        let mut fields = Self(0);
        for name in names {
            let found = NAMES.iter().find(|(field, _)| *field == name);
            fields.0 |= 1 << found.ok_or(name)?.1;
        }
        Ok(if fields.0 == 0 { Self::ALL } else { fields })
    }

    /// Whether the field of this number is in the set.
    pub(crate) fn has(self, number: u32) -> bool {
        1_u32.checked_shl(number).unwrap_or(0) & self.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_selected_by_name() {
        let fields = RecordFields::from_names(["body", "sequence"]).unwrap();

        let selected = (1..=19).filter(|number| fields.has(*number)).collect::<Vec<_>>();
        assert_eq!(selected, [5, 19]);
        assert_eq!(RecordFields::from_names([]), Ok(RecordFields::ALL));
        assert_eq!(RecordFields::from_names(["body", "bodies"]), Err("bodies"));
        assert!(!RecordFields::STORED.has(19) && RecordFields::STORED.has(18));
    }
}
