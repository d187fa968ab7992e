//! The filter language of queries: text to key range and residual predicate.
//!
//! [`Filter`] is a parsed condition that can be evaluated on encoded entities; [`QueryPlan`] is what a
//! query reads because of one. Evaluation and key ranges use the same order of text, by UTF-16
//! code unit, as the stored keys do.
//!
//! Parsing is bounded (bytes, tokens, depth) and never recurses deeper than the bound.

mod advice;
mod ast;
mod compare;
mod error;
mod eval;
mod interval;
mod lex;
mod names;
mod normal;
mod parse;
mod plan;
mod range;
mod region;
mod scope;
#[cfg(test)]
mod tests;

pub use ast::{Comparison, Expr, Literal, Operator};
pub use error::FilterError;
pub use eval::Filter;
pub use names::{NameBound, NameFilter, NameRange};
pub use plan::QueryPlan;
pub use range::{KeyBound, ScanRange};
pub use scope::QueryScope;
