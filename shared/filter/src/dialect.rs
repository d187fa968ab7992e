//! What differs between the filters of tables and those of logs.

use std::fmt;

use crate::{Comparison, Expr, Literal, Operator, is_name_part};

/// A language of filters: which properties it reads, and which functions it has.
pub trait Dialect {
    /// A condition on a property.
    type Condition;

    /// Whether properties may be paths, such as `attributes/http.route`.
    const HAS_PATHS: bool;
    /// The functions.
    const FUNCTIONS: &[Function];

    /// Checks that a property exists.
    ///
    /// # Errors
    /// What is expected instead.
    fn check(property: &FilterPath) -> Result<(), String>;

    /// A comparison with a literal.
    ///
    /// # Errors
    /// Which literals the property is compared with.
    fn compare(
        property: FilterPath,
        operator: Operator,
        literal: Literal,
    ) -> Result<Expr<Self::Condition>, String>;

    /// A call of one of the functions.
    ///
    /// # Errors
    /// Which properties the function reads.
    fn call(
        function: Function,
        property: FilterPath,
        text: String,
    ) -> Result<Expr<Self::Condition>, String>;
}

/// A function of a property and a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `contains(property, 'text')`
    Contains,
    /// `startswith(property, 'text')`
    StartsWith,
}

impl Function {
    /// As written in a filter.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Contains => "contains",
            Self::StartsWith => "startswith",
        }
    }
}

/// A property: a name, or a name and a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilterPath {
    /// The name.
    pub name: String,
    /// What follows after a slash, without quotes.
    pub key: Option<String>,
}

/// Whether a key may contain this without quotes.
pub(crate) fn is_key_part(c: char) -> bool {
    is_name_part(c) || matches!(c, '.' | '-' | ':')
}

/// Canonical text: a key has quotes where it needs them.
impl fmt::Display for FilterPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            None => f.write_str(&self.name),
            Some(key) if !key.is_empty() && key.chars().all(is_key_part) => {
                write!(f, "{}/{key}", self.name)
            }
            Some(key) => write!(f, "{}/'{}'", self.name, key.replace('\'', "''")),
        }
    }
}

/// The filters of Azure Tables: any name is a property, and there are no functions.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

impl Dialect for Plain {
    type Condition = Comparison;

    const HAS_PATHS: bool = false;
    const FUNCTIONS: &[Function] = &[];

    fn check(_: &FilterPath) -> Result<(), String> {
        Ok(())
    }

    fn compare(property: FilterPath, operator: Operator, literal: Literal) -> Result<Expr, String> {
        Ok(Expr::Compare(Comparison { property: property.name, operator, literal }))
    }

    fn call(function: Function, _: FilterPath, _: String) -> Result<Expr, String> {
        Err(unsupported(function.text()))
    }
}

/// The error of a function in a dialect without any.
pub(crate) fn unsupported(function: &str) -> String {
    format!("Functions such as `{function}` are not supported")
}
