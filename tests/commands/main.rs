//! The client commands of the real binary against a real server: what they leave behind, what they
//! reject, and what they report when they end early.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod addresses;
mod client;
mod drained;
mod ends;
mod repair;
mod resumed;
mod shown;
mod signed;
mod targets;
