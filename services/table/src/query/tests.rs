#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod grammar;
mod names;
mod no_match;
mod planning;
mod properties;
mod semantics;

use trestle_filter::{Comparison, Expr, Literal, Operator};

use super::*;

/// The condition of a filter that is not empty.
fn parse(text: &str) -> Expr {
    Filter::parse(text).unwrap().unwrap().expr().clone()
}
