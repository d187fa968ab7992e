//! The binary as separate processes, and nodes in process.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod access;
mod commands;
mod descriptors;
mod invalid_settings;
mod process;
mod roles;
mod serving;
mod upstream;
