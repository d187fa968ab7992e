//! The language in both of its forms: that of tables, and one with paths and functions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod canonical;
mod grammar;
mod limits;
mod literals;
mod order;

use std::fmt;

use super::*;

/// A language with paths, functions and a rule on properties, as logs have one.
#[derive(Debug)]
struct Paths;

/// A condition of [`Paths`].
#[derive(Debug, Clone, PartialEq)]
enum PathCondition {
    Compare(FilterPath, Operator, Literal),
    Call(Function, FilterPath, String),
}

impl fmt::Display for PathCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare(path, operator, literal) => {
                write!(f, "{path} {} {literal}", operator.text())
            }
            Self::Call(function, path, text) => {
                write!(f, "{}({path}, {})", function.text(), Literal::String(text.clone()))
            }
        }
    }
}

impl Dialect for Paths {
    type Condition = PathCondition;

    const HAS_PATHS: bool = true;
    const FUNCTIONS: &[Function] = &[Function::Contains, Function::StartsWith];

    fn check(path: &FilterPath) -> Result<(), String> {
        if path.name == "absent" { Err("No such property".to_owned()) } else { Ok(()) }
    }

    fn compare(
        path: FilterPath,
        operator: Operator,
        literal: Literal,
    ) -> Result<Expr<PathCondition>, String> {
        match literal {
            Literal::Guid(_) => Err("No guids".to_owned()),
            literal => Ok(Expr::Compare(PathCondition::Compare(path, operator, literal))),
        }
    }

    fn call(
        function: Function,
        path: FilterPath,
        text: String,
    ) -> Result<Expr<PathCondition>, String> {
        match text.is_empty() {
            true => Err("No empty texts".to_owned()),
            false => Ok(Expr::Compare(PathCondition::Call(function, path, text))),
        }
    }
}

/// The tree of a filter of tables.
fn plain(text: &str) -> Expr {
    parse::<Plain>(text).unwrap_or_else(|error| panic!("{text}: {error}")).unwrap()
}

/// The tree of a filter with paths.
fn with_paths(text: &str) -> Expr<PathCondition> {
    parse::<Paths>(text).unwrap_or_else(|error| panic!("{text}: {error}")).unwrap()
}

/// The position and the message of the error of a filter of tables.
fn plain_error(text: &str) -> (usize, String) {
    let error = parse::<Plain>(text).expect_err(text);
    (error.position, error.message)
}

/// The position and the message of the error of a filter with paths.
fn path_error(text: &str) -> (usize, String) {
    let error = parse::<Paths>(text).expect_err(text);
    (error.position, error.message)
}

/// A comparison with a number.
fn equals(property: &str, number: i32) -> Expr {
    Expr::compare(property, Operator::Equal, Literal::Int32(number))
}
