//! Filters of records: the language of filters with the properties of logs.

mod condition;
mod dialect;
mod eval;
mod required;
mod severity;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fmt, ops::Range};

use trestle_filter::{Expr, FilterError, FilterPath};

use self::{condition::LogCondition, dialect::LogDialect};
use crate::row::{Property, RequiredEquality, RowFields, RowPredicate};

/// A parsed filter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogFilter {
    expr: Expr<LogCondition>,
}

impl LogFilter {
    /// Parses a filter; none for the empty one, which every record matches.
    ///
    /// # Errors
    /// When it is not in the language, or exceeds its bounds.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, FilterError> {
        let expr = trestle_filter::parse::<LogDialect>(text)?;
        Ok(expr.map(|expr| Self { expr }))
    }
}

/// The property at a path as filters have it, such as `severity`, `attributes/http.route` or `attributes/'a key'`.
///
/// # Errors
/// The rule, where no property is there.
pub(crate) fn property(path: &str) -> Result<Property, String> {
    let (name, key) = match path.split_once('/') {
        None => (path, None),
        Some((name, key)) => {
            let quoted = key.strip_prefix('\'').and_then(|key| key.strip_suffix('\''));
            (name, Some(quoted.map_or_else(|| key.to_owned(), |key| key.replace("''", "'"))))
        }
    };
    dialect::property(&FilterPath { name: name.to_owned(), key })
}

/// Canonical text, which parses to the same filter.
impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

impl RowPredicate for LogFilter {
    fn properties(&self) -> Vec<Property> {
        let mut properties = BTreeSet::new();
        self.expr.for_each_comparison(&mut |condition| {
            properties.insert(condition.property().clone());
        });
        properties.into_iter().collect()
    }

    fn required(&self) -> Vec<RequiredEquality> {
        required::equalities(&self.expr)
    }

    fn times(&self) -> Range<u64> {
        required::times(&self.expr)
    }

    fn matches(&self, row: &dyn RowFields) -> bool {
        eval::matches(&self.expr, row)
    }
}
