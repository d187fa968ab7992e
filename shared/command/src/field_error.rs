//! The error of a field of a row.

use std::fmt;

use crate::output::escaped;

/// Longest part of a value that an error repeats, in characters.
const QUOTED_CHARS_MAX: usize = 60;

/// A field that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    field: String,
    value: String,
    rule: String,
}

impl FieldError {
    /// `field` and `value` may be empty if there is none to name.
    pub(crate) fn new(
        field: impl Into<String>,
        value: impl Into<String>,
        rule: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), value: value.into(), rule: rule.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "field=`{}`, ", self.field)?;
        }
        if !self.value.is_empty() {
            let mut chars = self.value.chars();
            let shown: String = chars.by_ref().take(QUOTED_CHARS_MAX).collect();
            let more = if chars.next().is_some() { "…" } else { "" };
            write!(f, "value=`{}{more}`: ", escaped(&shown))?;
        }
        f.write_str(&self.rule)
    }
}
