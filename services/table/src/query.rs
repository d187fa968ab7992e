//! Filters of queries: from the parsed text to key range and residual predicate.
//!
//! [`Filter`] is a parsed condition that can be evaluated on encoded entities; [`QueryPlan`] is what a
//! query reads because of one. Evaluation and key ranges use the same order of text, by UTF-16
//! code unit, as the stored keys do.

mod advice;
mod eval;
mod interval;
mod names;
mod nearest_name;
mod no_match;
mod normal;
mod plan;
mod range;
mod region;
mod scope;
#[cfg(test)]
mod tests;

pub use eval::Filter;
pub use names::{NameBound, NameFilter, NameRange};
pub(crate) use no_match::MatchTrial;
pub use plan::QueryPlan;
pub use range::{KeyBound, ScanRange};
pub use scope::QueryScope;
