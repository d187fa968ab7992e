//! Tests of the contract, on engines in memory.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod broken;
mod conform;
mod faulty;
