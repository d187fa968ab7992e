//! Filters over the names of tables.
//!
//! A table has one property, `TableName`, which is never missing. Names differ in more than case,
//! so they are compared, listed and bounded in lower case.

use trestle_filter::{EdmValueRef, Expr, FilterError, Literal, Plain, holds, position_of};

use super::interval::{Cut, TextInterval};

const NAME: &str = "TableName";

/// A filter over `TableName`; names compare in lower case.
#[derive(Debug, Clone, PartialEq)]
pub struct NameFilter {
    expr: Expr,
    range: Option<NameRange>,
}

/// The lower-case names between two bounds, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameRange {
    /// Where it starts; none for the first name.
    pub start: Option<NameBound>,
    /// Where it ends; none for the last name.
    pub end: Option<NameBound>,
}

/// One end of a range of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameBound {
    /// The name, in lower case.
    pub name: String,
    /// Whether the name itself belongs to the range.
    pub inclusive: bool,
}

impl NameFilter {
    /// Parses a filter; none for the empty one, which every table matches.
    ///
    /// # Errors
    /// When it is not in the language, exceeds its bounds, or reads anything but `TableName`.
    pub fn parse(text: &str) -> Result<Option<Self>, FilterError> {
        let Some(expr) = trestle_filter::parse::<Plain>(text)? else {
            return Ok(None);
        };
        let mut other = None;
        expr.for_each_comparison(&mut |c| {
            if c.property != NAME {
                other.get_or_insert(c.property.as_str());
            }
        });
        if let Some(other) = other {
            return Err(FilterError {
                position: position_of(other, text),
                message: format!("Expected `{NAME}`, the only property of a table"),
                filter: text.to_owned(),
            });
        }
        let expr = lower_case(expr);
        let texts = texts(&expr, false).filter(|texts| !texts.is_empty());
        Ok(Some(Self { expr, range: texts.map(range) }))
    }

    /// The names to read; none when the filter contradicts itself and nothing can match.
    #[must_use]
    pub fn range(&self) -> Option<&NameRange> {
        self.range.as_ref()
    }

    /// Whether a table matches.
    #[must_use]
    pub fn matches(&self, lower_case_name: &str) -> bool {
        eval(&self.expr, lower_case_name)
    }
}

fn lower_case(expr: Expr) -> Expr {
    let list = |parts: Vec<Expr>| parts.into_iter().map(lower_case).collect();
    match expr {
        Expr::Compare(mut comparison) => {
            if let Literal::String(text) = &mut comparison.literal {
                // Names are ASCII; other letters cannot match and keep their case.
                text.make_ascii_lowercase();
            }
            Expr::Compare(comparison)
        }
        Expr::Not(inner) => Expr::Not(Box::new(lower_case(*inner))),
        Expr::And(parts) => Expr::And(list(parts)),
        Expr::Or(parts) => Expr::Or(list(parts)),
        constant @ Expr::Constant(_) => constant,
    }
}

fn eval(expr: &Expr, name: &str) -> bool {
    match expr {
        Expr::Constant(truth) => *truth,
        Expr::Compare(c) => holds(EdmValueRef::String(name), c.operator, c.literal.as_value()),
        Expr::Not(inner) => !eval(inner, name),
        Expr::And(parts) => parts.iter().all(|part| eval(part, name)),
        Expr::Or(parts) => parts.iter().any(|part| eval(part, name)),
    }
}

/// The names that can match; none if no name can match.
fn texts(expr: &Expr, negated: bool) -> Option<TextInterval> {
    let both = |a: TextInterval, b: TextInterval| {
        Some(a.intersection(b)).filter(|texts| !texts.is_empty())
    };
    match expr {
        Expr::Constant(truth) => (*truth != negated).then_some(TextInterval::ALL),
        Expr::Not(inner) => texts(inner, !negated),
        Expr::Compare(c) => {
            let operator = if negated { c.operator.inverted() } else { c.operator };
            let found = match &c.literal {
                Literal::String(text) => TextInterval::of(operator, text),
                _ => None,
            };
            Some(found.unwrap_or(TextInterval::ALL))
        }
        Expr::And(parts) | Expr::Or(parts) => {
            let is_and = matches!(expr, Expr::And(_)) != negated;
            let mut found = parts.iter().map(|part| texts(part, negated));
            if is_and {
                found.try_fold(TextInterval::ALL, |all, part| both(all, part?))
            } else {
                found.flatten().reduce(TextInterval::hull)
            }
        }
    }
}

fn range(texts: TextInterval) -> NameRange {
    let bound = |name, inclusive| Some(NameBound { name, inclusive });
    NameRange {
        start: match texts.start {
            Cut::Before(name) => bound(name, true),
            Cut::After(name) => bound(name, false),
            Cut::First | Cut::Last => None,
        },
        end: match texts.end {
            Cut::Before(name) => bound(name, false),
            Cut::After(name) => bound(name, true),
            Cut::First | Cut::Last => None,
        },
    }
}
