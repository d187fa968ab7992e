//! Errors of calls as values: a reason, a text, and what is known of the request.

mod bounds;
mod fields;
mod property_path;

use std::{borrow::Cow, time::Duration};

pub use trestle_proto::errors::v1::ErrorReason as Reason;

pub use property_path::{property_path, split_property_path, unescaped};

/// Longest part of a client's value that an error repeats, in characters.
const QUOTED_CHARS_MAX: usize = 64;

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The reason; determines the gRPC code, the Azure code and the HTTP status.
    pub reason: Reason,
    /// The error text; may change.
    pub message: String,
    /// Every rule that the request breaks, for malformed requests.
    pub violations: Vec<Violation>,
    /// The resource of the call, for errors about absent and existing resources.
    pub resource: Option<Resource>,
    /// Position of the failing operation, for batches.
    pub index: Option<usize>,
    /// How long to wait before a retry.
    pub retry_after: Option<Duration>,
    /// The limit that the call exceeds.
    pub quota: Option<OverQuota>,
}

/// A limit that a call exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverQuota {
    /// The subject of the limit, without data of other accounts.
    pub subject: String,
    /// The limit.
    pub description: String,
}

/// A rule that a field of a request breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The error of the field on its own.
    pub reason: Reason,
    /// Path of the field, such as `entity.properties["total"]`.
    pub field: String,
    /// The rule, and the value that breaks it.
    pub description: String,
}

/// The resource of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// `table` or `entity`.
    pub kind: &'static str,
    /// Its name or key, as the client sent it.
    pub name: String,
}

impl Fault {
    /// An error with a reason and a text.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            violations: Vec::new(),
            resource: None,
            index: None,
            retry_after: None,
            quota: None,
        }
    }

    /// The error of a request that breaks one rule.
    pub fn violation(
        reason: Reason,
        field: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        let violation = Violation { reason, field: field.into(), description: description.into() };
        let message = format!("{}: {}", violation.field, violation.description);
        Self { violations: vec![violation], ..Self::new(reason, message) }
    }

    /// An error about a resource.
    pub fn about(
        reason: Reason,
        message: impl Into<String>,
        kind: &'static str,
        name: impl Into<String>,
    ) -> Self {
        let resource = Some(Resource { kind, name: name.into() });
        Self { resource, ..Self::new(reason, message) }
    }

    /// The error of the operation at `index` of a batch.
    #[must_use]
    pub fn at(self, index: usize) -> Self {
        Self { index: Some(index), ..self }
    }

    /// The error with a retry delay.
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        Self { retry_after: Some(delay), ..self }
    }

    /// The error of a call that exceeds a limit.
    pub fn over_quota(quota: OverQuota, retry_after: Duration) -> Self {
        let message = format!("over a limit: {}: {}", quota.subject, quota.description);
        let fault = Self::new(Reason::ServerBusy, message).retry_after(retry_after);
        Self { quota: Some(quota), ..fault }
    }
}

/// The rules that a request breaks, collected field by field so that a client sees all of them at once.
#[derive(Debug, Default)]
pub struct Violations(Vec<Violation>);

/// Most violations reported for one request: enough to fix it, bounded for a hostile one.
pub const VIOLATIONS_MAX: usize = 64;

impl Violations {
    /// Records that `field` breaks a rule.
    pub fn push(
        &mut self,
        reason: Reason,
        field: impl Into<String>,
        description: impl Into<String>,
    ) {
        if self.0.len() < VIOLATIONS_MAX {
            let (field, description) = (field.into(), description.into());
            self.0.push(Violation { reason, field, description });
        }
    }

    /// Records violations that were found elsewhere.
    pub fn extend(&mut self, violations: Vec<Violation>) {
        for violation in violations {
            self.push(violation.reason, violation.field, violation.description);
        }
    }

    /// Whether no violation was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `value` if no violation was recorded.
    ///
    /// # Errors
    /// The error with every violation; its reason and text are those of the first one.
    pub fn check<T>(self, value: T) -> Result<T, Fault> {
        let Some(first) = self.0.first() else {
            return Ok(value);
        };
        let message = format!("{}: {}", first.field, first.description);
        let reason = first.reason;
        Err(Fault { violations: self.0, ..Fault::new(reason, message) })
    }
}

/// The error of a message of gRPC that is larger than a server reads.
#[must_use]
pub fn message_too_large(bytes_max: usize) -> Fault {
    let rule = format!("must be at most {bytes_max} bytes, after decompression");
    Fault::violation(Reason::RpcMessageTooLarge, "message", rule)
}

/// A client's value, shortened for an error text.
#[must_use]
pub fn quoted(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(QUOTED_CHARS_MAX) {
        None => Cow::Borrowed(value),
        Some((end, _)) => Cow::Owned(format!("{}…", value.get(..end).unwrap_or_default())),
    }
}

/// The name of a reason as `ErrorInfo.reason` carries it.
#[must_use]
pub fn reason_name(reason: Reason) -> &'static str {
    let name = reason.as_str_name();
    name.strip_prefix("ERROR_REASON_").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_truncated_in_errors() {
        assert_eq!(quoted("short"), "short");
        assert_eq!(quoted(&"é".repeat(65)), format!("{}…", "é".repeat(64)));
    }
}
