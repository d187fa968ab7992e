//! A filter that cannot be parsed.

use trestle_model::fault::{Fault, Reason, Violations, quoted};

/// Why a filter was rejected, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
// Azure's sentence is first, unchanged: clients search for it.
#[error("Syntax error at position {position} in '{}'. {message}", quoted(filter))]
pub struct FilterError {
    /// Bytes of the filter up to the error: to the end of the faulty token, or to a character that
    /// starts no token.
    pub position: usize,
    /// What was expected at this position, or which rule is broken.
    pub message: String,
    /// The filter.
    pub filter: String,
}

impl From<FilterError> for Fault {
    fn from(error: FilterError) -> Self {
        let mut violations = Violations::default();
        violations.push(Reason::InvalidInput, "filter", error.to_string());
        match violations.check(()) {
            Ok(()) => Self::new(Reason::InvalidInput, error.to_string()),
            Err(fault) => fault,
        }
    }
}
