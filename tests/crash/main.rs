//! The server killed, stopped, restarted, and on a disk that fails: acknowledged writes survive,
//! rejected ones do not exist, and every batch is whole or absent.
//!
//! Every test starts the real binary and calls it over gRPC.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod appends;
mod blob_disk;
mod blob_power;
mod blobs;
mod certified;
mod clock;
mod contents;
mod drain;
mod faults;
mod fixtures;
mod gateway;
mod half_uploads;
mod hung;
mod inserts;
mod kills;
mod logs;
mod overload;
mod progress;
mod queue;
mod rest_blobs;
mod restarts;
mod resume;
mod routes;
mod shares;
mod small_disk;
mod space;
mod syncs;
mod unread;
mod versions;
mod write_history;
mod writer;

use tempfile::TempDir;
use trestle_tests::Server;

/// Starts a server of all roles on a data directory.
fn start(data: &TempDir, settings: &[(&str, &str)]) -> Server {
    let path = data.path().to_str().expect("a path in UTF-8");
    Server::start(&["--data-dir", path], settings)
}
