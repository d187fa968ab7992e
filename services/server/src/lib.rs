//! The one binary of Trestle, as a library, so that tests build the very node that `trestle serve`
//! runs.
//!
//! `settings` is the configuration, `roles` the list of roles, `compose` builds
//! a node from both without binding or spawning anything, and `running` binds, spawns and drains.
//! `main` puts these steps in order.

pub mod args;
mod backlogs;
pub mod backup;
mod backups;
pub mod banner;
mod changed_keys;
pub mod compact;
pub mod compose;
pub mod continuous_backups;
mod count;
mod data_files;
mod database;
pub mod descriptors;
pub mod doctor;
pub mod encryption;
mod gateway_secret;
pub mod healthcheck;
mod hot_partitions;
pub mod huge_pages;
pub mod identity;
pub mod ingress;
mod key_sets;
mod measured;
mod members;
pub mod named_files;
mod observed_stats;
pub mod process_error;
mod published_keys;
pub mod quotas;
pub mod reload;
pub mod repair;
pub mod roles;
pub mod running;
pub mod scheduled_backups;
pub mod serve;
pub mod settings;
mod shown_backup;
mod slow;
pub mod storage;
mod storage_quota;
pub mod store_copy;
mod store_id;
mod streams;
mod upstreams;
pub mod watchdog;
