//! The one binary of Trestle, as a library, so that tests build the very node that `trestle serve`
//! runs.
//!
//! `settings` is what an operator chooses, `compose` puts a node together without binding or
//! spawning anything, and `running` binds, spawns and drains. `main` tells the story.

pub mod args;
pub mod compose;
pub mod encryption;
pub mod failure;
pub mod healthcheck;
mod hot_partitions;
pub mod identity;
pub mod lost;
pub mod quotas;
mod reach;
pub mod reload;
pub mod roles;
pub mod running;
pub mod settings;
pub mod storage;
