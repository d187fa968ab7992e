//! The syntax tree of a filter, and its canonical text.
//!
//! Trees are flat where the language allows it: an `and` contains no `and`, an `or` no `or`, so that
//! the depth of a tree is bounded by the nesting of the text and not by its length.

use std::fmt::{self, Display, Write as _};

use bytes::Bytes;
use trestle_service::{clock::Ticks, etag::format_time};
use uuid::Uuid;

use crate::stored::StoredValueRef;

/// A condition on an entity.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// Always, or never.
    Constant(bool),
    /// A property compared with a literal.
    Compare(Comparison),
    /// The opposite of a condition.
    Not(Box<Expr>),
    /// All of two or more conditions, none of them an `And`.
    And(Vec<Expr>),
    /// One of two or more conditions, none of them an `Or`.
    Or(Vec<Expr>),
}

/// A property compared with a literal.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The name of the property.
    pub property: String,
    /// How.
    pub operator: Operator,
    /// With what.
    pub literal: Literal,
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `eq`
    Equal,
    /// `ne`
    NotEqual,
    /// `gt`
    Greater,
    /// `ge`
    GreaterOrEqual,
    /// `lt`
    Less,
    /// `le`
    LessOrEqual,
}

/// A constant of a filter.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `'text'`
    String(String),
    /// `12`
    Int32(i32),
    /// `12L`
    Int64(i64),
    /// `1.5`; finite.
    Double(f64),
    /// `true`
    Boolean(bool),
    /// `datetime'2026-01-31T08:00:00Z'`
    DateTime(Ticks),
    /// `guid'…'`
    Guid(Uuid),
    /// `X'0aff'`
    Binary(Bytes),
}

impl Expr {
    /// A comparison.
    #[must_use]
    pub fn compare(property: &str, operator: Operator, literal: Literal) -> Self {
        Self::Compare(Comparison { property: property.to_owned(), operator, literal })
    }

    /// All of `parts`; nested conjunctions are flattened.
    #[must_use]
    pub fn all(parts: Vec<Self>) -> Self {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Self::And(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        match flat.len() {
            0 => Self::Constant(true),
            1 => flat.swap_remove(0),
            _ => Self::And(flat),
        }
    }

    /// One of `parts`; nested disjunctions are flattened.
    #[must_use]
    pub fn any(parts: Vec<Self>) -> Self {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Self::Or(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        match flat.len() {
            0 => Self::Constant(false),
            1 => flat.swap_remove(0),
            _ => Self::Or(flat),
        }
    }

    /// Calls `visit` for each comparison, from left to right.
    pub fn for_each_comparison<'a>(&'a self, visit: &mut impl FnMut(&'a Comparison)) {
        match self {
            Self::Constant(_) => {}
            Self::Compare(comparison) => visit(comparison),
            Self::Not(inner) => inner.for_each_comparison(visit),
            Self::And(parts) | Self::Or(parts) => {
                for part in parts {
                    part.for_each_comparison(visit);
                }
            }
        }
    }
}

impl Operator {
    /// The operator with its sides exchanged: `5 lt a` is `a gt 5`.
    #[must_use]
    pub fn mirrored(self) -> Self {
        match self {
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            same @ (Self::Equal | Self::NotEqual) => same,
        }
    }

    /// The operator that is true exactly where this one is false, among ordered values.
    #[must_use]
    pub fn inverted(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
        }
    }

    /// As written in a filter.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Equal => "eq",
            Self::NotEqual => "ne",
            Self::Greater => "gt",
            Self::GreaterOrEqual => "ge",
            Self::Less => "lt",
            Self::LessOrEqual => "le",
        }
    }
}

impl Literal {
    /// As a value to compare with.
    #[must_use]
    pub fn as_value(&self) -> StoredValueRef<'_> {
        match self {
            Self::String(text) => StoredValueRef::String(text),
            Self::Int32(number) => StoredValueRef::Int32(*number),
            Self::Int64(number) => StoredValueRef::Int64(*number),
            Self::Double(number) => StoredValueRef::Double(*number),
            Self::Boolean(truth) => StoredValueRef::Boolean(*truth),
            Self::DateTime(ticks) => StoredValueRef::DateTime(*ticks),
            Self::Guid(guid) => StoredValueRef::Guid(*guid),
            Self::Binary(bytes) => StoredValueRef::Binary(bytes),
        }
    }
}

/// Canonical text, which parses to the same tree.
impl Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[Self], word: &str| {
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    write!(f, " {word} ")?;
                }
                match part {
                    // `and` binds tighter, so only an `or` inside an `and` needs parentheses.
                    Self::Or(_) => write!(f, "({part})")?,
                    _ => part.fmt(f)?,
                }
            }
            Ok(())
        };
        match self {
            Self::Constant(truth) => truth.fmt(f),
            Self::Compare(comparison) => comparison.fmt(f),
            Self::Not(inner) => write!(f, "not ({inner})"),
            Self::And(parts) => list(f, parts, "and"),
            Self::Or(parts) => list(f, parts, "or"),
        }
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.property, self.operator.text(), self.literal)
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Self::Int32(number) => number.fmt(f),
            Self::Int64(number) => write!(f, "{number}L"),
            // The debug form always has a dot or an exponent, so it reads back as a double.
            Self::Double(number) => write!(f, "{number:?}"),
            Self::Boolean(truth) => truth.fmt(f),
            Self::DateTime(ticks) => write!(f, "datetime'{}'", format_time(*ticks)),
            Self::Guid(guid) => write!(f, "guid'{}'", guid.hyphenated()),
            Self::Binary(bytes) => {
                f.write_str("X'")?;
                for byte in bytes {
                    write!(f, "{byte:02x}")?;
                }
                f.write_char('\'')
            }
        }
    }
}
