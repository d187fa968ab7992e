//! What the value of a data point is since, as segments and filters name it.

/// The numbers of the contract, and the names.
const NAMES: [(u64, &str); 2] = [(1, "delta"), (2, "cumulative")];

/// The greatest number.
pub(crate) const TEMPORALITY_MAX: u64 = 2;

/// The name; empty where none is stated.
pub(crate) fn temporality_name(number: u64) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == number).map_or("", |(_, name)| name)
}

/// The number of a name; 0 where there is none.
pub(crate) fn temporality_number(name: &str) -> u64 {
    NAMES.iter().find(|(_, known)| *known == name).map_or(0, |(number, _)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_temporality_has_a_name() {
        for number in 1..=TEMPORALITY_MAX {
            assert_eq!(temporality_number(temporality_name(number)), number);
        }
        assert_eq!((temporality_name(0), temporality_number("")), ("", 0));
    }
}
