//! Tests of the engine on disk from outside.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod change_log;
mod change_log_damage;
mod checkpoints;
mod child;
mod conform;
mod crash;
mod damage;
mod damaged_tables;
mod faults;
mod filling;
mod fixture_files;
mod fixtures;
mod journal;
mod load;
mod model;
mod opening;
mod pressure;
mod recovery;
mod replaying;
mod scans;
mod small_disk;
mod space;
mod versions;
mod world;

/// The bound of a wait for a condition: what takes longer hangs, also on a machine that is busy with other programs.
pub(crate) const HANG: std::time::Duration = std::time::Duration::from_secs(120);
