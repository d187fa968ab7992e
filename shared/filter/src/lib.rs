//! The filter language of tables and logs: text to a syntax tree, and the order of values.
//!
//! A [`Dialect`] determines what a comparison may read and which functions exist. Parsing is bounded (bytes, tokens,
//! depth) and never recurses deeper than the bound.

mod ast;
mod compare;
mod dialect;
mod error;
mod lex;
mod literal;
mod name;
mod operator;
mod parse;
#[cfg(test)]
mod tests;

pub use ast::{Comparison, Expr};
pub use compare::{compare_numbers, holds, rank};
pub use dialect::{Dialect, FilterPath, Function, Plain};
pub use error::FilterError;
pub use literal::{EdmValueRef, Literal};
pub use name::{is_name_part, is_name_start, shown};
pub use operator::Operator;
pub use parse::{parse, position_of};
