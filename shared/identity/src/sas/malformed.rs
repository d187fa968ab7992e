//! The error of an invalid token.

/// The error of an invalid token. Quotes at most one field of it, and never the signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {rule}")]
pub struct Malformed {
    /// The field; `token` if it is not a field.
    pub field: &'static str,
    /// The rule that it breaks, and its value.
    pub rule: String,
}

impl Malformed {
    /// A field breaks a rule.
    #[must_use]
    pub fn new(field: &'static str, rule: impl Into<String>) -> Self {
        Self { field, rule: rule.into() }
    }
}
