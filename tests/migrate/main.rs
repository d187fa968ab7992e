//! Tables, queues and blobs copied from elsewhere by the real binary into a real server: whole, damaged,
//! interrupted, and rejected.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod azure;
mod azurite;
mod blob_workspace;
mod blobs;
mod command;
mod divided;
mod from_server;
mod interrupted;
mod moved;
mod workspace;
