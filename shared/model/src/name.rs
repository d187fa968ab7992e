//! Names from clients: parsed once at the boundary, valid everywhere inside.

use std::{fmt, ops::RangeInclusive};

use crate::{
    fault::{Reason, Violations, quoted},
    limits::{
        QUEUE_NAME_CHARS_MAX, QUEUE_NAME_CHARS_MIN, TABLE_NAME_CHARS_MAX, TABLE_NAME_CHARS_MIN,
    },
};

/// The header that carries the account of a call.
pub const ACCOUNT_HEADER: &str = "trestle-account";

/// The name of an account: 3 to 24 lower-case ASCII letters and digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountName(String);

impl AccountName {
    const DEVELOPMENT: &str = "devstoreaccount1";

    /// The development account, which every Azure storage emulator has.
    #[must_use]
    pub fn development() -> Self {
        Self(Self::DEVELOPMENT.to_owned())
    }

    /// Whether this is the name of the development account.
    #[must_use]
    pub fn is_development(&self) -> bool {
        self.0 == Self::DEVELOPMENT
    }

    /// Parses an account name; none if it breaks the rule.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let fits = (3..=24).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        fits.then(|| Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a table, as the client spells it. Compared without regard to case through [`TableName::folded`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName(String);

impl TableName {
    /// Parses a table name: an ASCII letter, then letters and digits, 3 to 63 in all, not `tables` in any case.
    /// Records every broken rule under `field`.
    pub fn parse(name: String, field: &str, violations: &mut Violations) -> Option<Self> {
        if name.is_empty() {
            violations.push(Reason::PropertiesNeedValue, field, "required: the name of a table");
            return None;
        }
        let legal_start = name.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
        let (reason, rule) = if !legal_start || !name.bytes().all(|b| b.is_ascii_alphanumeric()) {
            (Reason::InvalidResourceName, "must be an ASCII letter, then ASCII letters and digits")
        } else if !(TABLE_NAME_CHARS_MIN..=TABLE_NAME_CHARS_MAX).contains(&name.len()) {
            (Reason::OutOfRangeInput, "must have 3 to 63 characters")
        } else if name.eq_ignore_ascii_case("tables") {
            (Reason::InvalidResourceName, "is reserved")
        } else {
            return Some(Self(name));
        };
        violations.push(reason, field, format!("{rule}: value=`{}`", quoted(&name)));
        None
    }

    /// The name as spelled.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form that identifies the table: lower case.
    #[must_use]
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(String);

impl QueueName {
    /// Parses a queue name: 3 to 63 lower-case ASCII letters, digits and `-`; a letter or digit at both ends, no two
    /// `-` in a row. Records every broken rule under `field`.
    pub fn parse(name: String, field: &str, violations: &mut Violations) -> Option<Self> {
        if name.is_empty() {
            violations.push(Reason::PropertiesNeedValue, field, "required: the name of a queue");
            return None;
        }
        match broken_label_rule(&name, QUEUE_NAME_CHARS_MIN..=QUEUE_NAME_CHARS_MAX) {
            None => Some(Self(name)),
            Some((reason, rule)) => {
                violations.push(reason, field, rule);
                None
            }
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The rule of DNS labels that the name of a queue or a container breaks: lower-case ASCII letters, digits and `-`; a
/// letter or digit at both ends, no two `-` in a row; a number of characters in `lengths`.
pub(crate) fn broken_label_rule(
    name: &str,
    lengths: RangeInclusive<usize>,
) -> Option<(Reason, String)> {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_legal = name.bytes().all(|b| is_plain(b) || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    let (reason, rule) = if !is_legal {
        let rule = "must be lower-case ASCII letters, digits and single `-` between them";
        (Reason::InvalidResourceName, rule.to_owned())
    } else if !lengths.contains(&name.len()) {
        let rule = format!("must have {} to {} characters", lengths.start(), lengths.end());
        (Reason::OutOfRangeInput, rule)
    } else {
        return None;
    };
    Some((reason, format!("{rule}: value=`{}`", quoted(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_queue_names_at_their_bounds_and_rejects_them_past_those() {
        let reason_for = |name: &str| {
            let mut violations = Violations::default();
            let parsed = QueueName::parse(name.to_owned(), "queue", &mut violations);
            let fault = violations.check(()).err();
            assert_eq!(parsed.is_none(), fault.is_some(), "a rejected name has a violation");
            fault.map(|fault| fault.reason)
        };
        for name in ["abc", "a-b", "1-2-3", &"a".repeat(63)] {
            assert_eq!(reason_for(name), None, "{name}");
        }
        assert_eq!(reason_for(""), Some(Reason::PropertiesNeedValue));
        assert_eq!(reason_for("ab"), Some(Reason::OutOfRangeInput));
        assert_eq!(reason_for(&"a".repeat(64)), Some(Reason::OutOfRangeInput));
        for name in ["Abc", "a--b", "-abc", "abc-", "a_b", "äbc", "a b"] {
            assert_eq!(reason_for(name), Some(Reason::InvalidResourceName), "{name}");
        }
    }

    fn reason_for(name: &str) -> Option<Reason> {
        let mut violations = Violations::default();
        let parsed = TableName::parse(name.to_owned(), "table", &mut violations);
        let fault = violations.check(()).err();
        assert_eq!(parsed.is_none(), fault.is_some(), "a rejected name has a violation");
        fault.map(|fault| fault.reason)
    }

    #[test]
    fn accepts_table_names_at_their_bounds_and_rejects_them_past_those() {
        assert_eq!(reason_for("abc"), None);
        assert_eq!(reason_for(&"a".repeat(63)), None);
        assert_eq!(reason_for("Az09"), None);

        assert_eq!(reason_for(""), Some(Reason::PropertiesNeedValue));
        assert_eq!(reason_for("ab"), Some(Reason::OutOfRangeInput));
        assert_eq!(reason_for(&"a".repeat(64)), Some(Reason::OutOfRangeInput));
        assert_eq!(reason_for("1abc"), Some(Reason::InvalidResourceName));
        assert_eq!(reason_for("a-bc"), Some(Reason::InvalidResourceName));
        assert_eq!(reason_for("tablé"), Some(Reason::InvalidResourceName));
        assert_eq!(reason_for("TaBles"), Some(Reason::InvalidResourceName));
    }

    #[test]
    fn account_names_are_lower_case_letters_and_digits() {
        assert!(AccountName::parse("abc").is_some());
        assert!(AccountName::parse(&"a".repeat(24)).is_some());
        for name in ["ab", "Abc", "a_b", &"a".repeat(25)] {
            assert_eq!(AccountName::parse(name), None, "{name}");
        }
    }
}
