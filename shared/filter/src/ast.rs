//! The syntax tree of a filter, and its canonical text.
//!
//! Trees are flat where the language allows it: an `and` contains no `and`, an `or` no `or`, so that
//! the depth of a tree is bounded by the nesting of the text and not by its length.

use std::fmt::{self, Display};

use crate::{Literal, Operator};

/// A condition, made of those of a dialect.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr<C = Comparison> {
    /// Always, or never.
    Constant(bool),
    /// A condition on a property: a comparison, or what else the dialect has.
    Compare(C),
    /// The opposite of a condition.
    Not(Box<Self>),
    /// All of two or more conditions, none of them an `And`.
    And(Vec<Self>),
    /// One of two or more conditions, none of them an `Or`.
    Or(Vec<Self>),
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

impl Expr {
    /// A comparison.
    #[must_use]
    pub fn compare(property: &str, operator: Operator, literal: Literal) -> Self {
        Self::Compare(Comparison { property: property.to_owned(), operator, literal })
    }
}

impl<C> Expr<C> {
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

    /// Calls `visit` for each condition on a property, from left to right.
    pub fn for_each_comparison<'a>(&'a self, visit: &mut impl FnMut(&'a C)) {
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

/// Canonical text, which parses to the same tree.
impl<C: Display> Display for Expr<C> {
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
