//! The filter language of tables and logs: text to a syntax tree, and the order of values.
//!
//! A [`Dialect`] determines what a comparison may read and which functions exist. A filter is bounded in bytes; parsing
//! does not recurse, and the depth of trees is bounded.

mod ast;
mod compare;
mod dialect;
mod error;
mod joined;
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
