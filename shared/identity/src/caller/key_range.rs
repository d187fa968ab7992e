//! The bounds of a grant over a table.

use crate::field_values::FieldValues;

/// A range of entities by key, both ends included; an end that is absent does not bound. A row key
/// counts only with its partition key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// Lowest partition key (`spk`).
    pub start_partition_key: Option<String>,
    /// Lowest row key in the lowest partition (`srk`).
    pub start_row_key: Option<String>,
    /// Highest partition key (`epk`).
    pub end_partition_key: Option<String>,
    /// Highest row key in the highest partition (`erk`).
    pub end_row_key: Option<String>,
}

impl KeyRange {
    /// The fields of a token with this range.
    #[must_use]
    pub fn to_fields(&self) -> FieldValues {
        let ends = [
            ("spk", &self.start_partition_key),
            ("srk", &self.start_row_key),
            ("epk", &self.end_partition_key),
            ("erk", &self.end_row_key),
        ];
        ends.into_iter().filter_map(|(name, key)| Some((name, key.clone()?))).collect()
    }

    /// The range of the bounds of a grant. None for unknown bounds, and for a row key without its partition key: to
    /// ignore it would widen the range.
    #[must_use]
    pub fn of_bounds(bounds: &FieldValues) -> Option<Self> {
        let mut range = Self::default();
        for (name, key) in bounds.iter() {
            let end = match name {
                "spk" => &mut range.start_partition_key,
                "srk" => &mut range.start_row_key,
                "epk" => &mut range.end_partition_key,
                "erk" => &mut range.end_row_key,
                _ => return None,
            };
            *end = Some(key.to_owned());
        }
        let is_loose = range.start_row_key.is_some() && range.start_partition_key.is_none()
            || range.end_row_key.is_some() && range.end_partition_key.is_none();
        (!is_loose).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(of: &[(&'static str, &str)]) -> FieldValues {
        of.iter().copied().collect()
    }

    #[test]
    fn a_range_survives_a_round_trip() {
        let whole = bounds(&[("spk", ""), ("srk", "1"), ("epk", "b"), ("erk", "9")]);
        for bounds in [FieldValues::default(), bounds(&[("epk", "b")]), whole] {
            let range = KeyRange::of_bounds(&bounds).expect("a range");
            assert_eq!(range.to_fields(), bounds);
        }
    }

    #[test]
    fn rejects_bounds_that_would_be_ignored() {
        for of in [&[("srk", "1")][..], &[("erk", "9")], &[("spk", "a"), ("prefix", "b")]] {
            assert_eq!(KeyRange::of_bounds(&bounds(of)), None, "{of:?}");
        }
    }
}
