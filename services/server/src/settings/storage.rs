//! The store.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trestle_runtime::config::choice;

use super::outside;

/// Longest setting for the time between syncs: an hour.
const SYNC_EVERY_MS_MAX: u64 = 3_600_000;

/// The section `storage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StorageSettings {
    /// Data directory; created if it does not exist. Default: `./data`.
    pub data_dir: PathBuf,
    /// Store everything in memory; all data is lost when the process ends. Default: no.
    pub ephemeral: bool,
    /// When a write is answered. Default: `always`.
    #[serde(deserialize_with = "choice")]
    pub durability: Durability,
    /// With durability `interval`: time between syncs, in milliseconds, 1 to 3600000. Default:
    /// 1000.
    pub sync_every_ms: u64,
    /// Memory for the block cache, in bytes. Default: 128 MiB.
    pub cache_bytes: u64,
    /// Free disk space under which only deletes are accepted, in bytes. Default: 512 MiB.
    pub min_free_bytes: u64,
}

/// When a write is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// When it is on stable storage.
    Always,
    /// At once; it is on stable storage after the interval.
    Interval,
    /// At once; the operating system decides.
    Os,
}

impl Default for StorageSettings {
    fn default() -> Self {
        Self {
            data_dir: "./data".into(),
            ephemeral: false,
            durability: Durability::Always,
            sync_every_ms: 1000,
            cache_bytes: 128 * 1024 * 1024,
            min_free_bytes: 512 * 1024 * 1024,
        }
    }
}

impl StorageSettings {
    /// What is wrong with the section, each with its key.
    pub(super) fn problems(&self) -> Vec<String> {
        outside("storage", [("sync_every_ms", self.sync_every_ms, 1..=SYNC_EVERY_MS_MAX)])
    }
}
