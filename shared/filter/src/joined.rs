//! Conditions joined by `and` or `or` while they are parsed.
//!
//! A list is only moved into a tree once it is complete, and of two lists that become one the shorter is moved. So
//! parsing costs about as much as the text has bytes, however its parentheses are placed: clients that build a filter
//! one condition at a time put another pair around the whole of it each time.

use std::collections::VecDeque;

use crate::Expr;

/// A condition, or a list of conditions that has not become one yet, and its depth as a tree.
pub(crate) struct Joined<C> {
    parts: Parts<C>,
    depth: usize,
}

enum Parts<C> {
    One(Expr<C>),
    All(VecDeque<Expr<C>>),
    Any(VecDeque<Expr<C>>),
}

/// What joins two conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Junction {
    And,
    Or,
}

impl<C> Joined<C> {
    /// One condition on a property, or a constant.
    pub(crate) fn one(expr: Expr<C>) -> Self {
        Self { parts: Parts::One(expr), depth: 1 }
    }

    /// The depth of the tree: how often `and`, `or` and `not` are inside of another one, which parentheses alone are
    /// not.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The opposite; of the opposite of a condition, the condition.
    pub(crate) fn negated(self) -> Self {
        match self.parts {
            Parts::One(Expr::Not(inner)) => Self { parts: as_parts(*inner), depth: self.depth - 1 },
            parts => {
                let inner = Self { parts, depth: self.depth };
                let depth = inner.depth + 1;
                Self { parts: Parts::One(Expr::Not(Box::new(inner.into_expr()))), depth }
            }
        }
    }

    /// This condition and the next one.
    pub(crate) fn join(self, junction: Junction, next: Self) -> Self {
        let (mut first, first_depth) = self.into_list(junction);
        let (mut second, second_depth) = next.into_list(junction);
        let joined = if first.len() < second.len() {
            while let Some(part) = first.pop_back() {
                second.push_front(part);
            }
            second
        } else {
            first.append(&mut second);
            first
        };
        let parts = match junction {
            Junction::And => Parts::All(joined),
            Junction::Or => Parts::Any(joined),
        };
        Self { parts, depth: first_depth.max(second_depth) }
    }

    /// The conditions that are joined by this junction, and the depth of a list with them.
    fn into_list(self, junction: Junction) -> (VecDeque<Expr<C>>, usize) {
        match (self.parts, junction) {
            (Parts::All(list), Junction::And) | (Parts::Any(list), Junction::Or) => {
                (list, self.depth)
            }
            (parts, _) => {
                let expr = Self { parts, depth: self.depth }.into_expr();
                (VecDeque::from([expr]), self.depth + 1)
            }
        }
    }

    /// The tree.
    pub(crate) fn into_expr(self) -> Expr<C> {
        match self.parts {
            Parts::One(expr) => expr,
            Parts::All(list) => Expr::And(list.into()),
            Parts::Any(list) => Expr::Or(list.into()),
        }
    }
}

fn as_parts<C>(expr: Expr<C>) -> Parts<C> {
    match expr {
        Expr::And(list) => Parts::All(list.into()),
        Expr::Or(list) => Parts::Any(list.into()),
        other => Parts::One(other),
    }
}
