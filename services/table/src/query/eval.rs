//! Evaluating a filter on encoded entities.

use std::fmt;

use super::{FilterError, ast::Expr, parse};
use crate::stored::Corrupt;

/// A parsed filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    expr: Expr,
}

impl Filter {
    /// Parses a filter; none for the empty one, which every entity matches.
    ///
    /// # Errors
    /// When it is not in the language, or exceeds its bounds.
    pub fn parse(text: &str) -> Result<Option<Self>, FilterError> {
        Ok(parse::parse(text)?.map(Self::new))
    }

    /// Prepares a condition for evaluation.
    #[must_use]
    pub fn new(expr: Expr) -> Self {
        Self { expr }
    }

    /// The condition.
    #[must_use]
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Whether an encoded entity (without the header of the stored form) matches.
    ///
    /// # Errors
    /// When the entity cannot be read as far as the filter needs it.
    pub fn matches(&self, _wire: &[u8]) -> Result<bool, Corrupt> {
        Ok(true)
    }
}

/// Canonical text.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}
