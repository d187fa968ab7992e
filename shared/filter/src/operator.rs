//! Comparison operators.

use std::cmp::Ordering;

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

impl Operator {
    /// Every operator.
    pub const ALL: [Self; 6] = [
        Self::Equal,
        Self::NotEqual,
        Self::Greater,
        Self::GreaterOrEqual,
        Self::Less,
        Self::LessOrEqual,
    ];

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

    /// Whether values with this ordering satisfy the operator; without one they are unequal.
    #[must_use]
    #[inline]
    pub fn holds(self, ordering: Option<Ordering>) -> bool {
        match self {
            Self::Equal => ordering == Some(Ordering::Equal),
            Self::NotEqual => ordering != Some(Ordering::Equal),
            Self::Greater => ordering.is_some_and(Ordering::is_gt),
            Self::GreaterOrEqual => ordering.is_some_and(Ordering::is_ge),
            Self::Less => ordering.is_some_and(Ordering::is_lt),
            Self::LessOrEqual => ordering.is_some_and(Ordering::is_le),
        }
    }
}
