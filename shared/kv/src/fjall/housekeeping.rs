//! The thread that maintains an open engine once a tick: measures space, requests heartbeats,
//! detects a database that failed in the background, and syncs at the interval if commits do not.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fjall::PersistMode;

use super::options::{SpaceProbe, SyncPolicy};
use super::point::CommitPoint;
use super::shared::{EngineState, error_text};

pub(super) struct Housekeeper {
    pub(super) shared: Arc<EngineState>,
    pub(super) probe: SpaceProbe,
    pub(super) tick: Duration,
    /// Whether the last probe failed, to log it once and not once a tick.
    pub(super) is_blind: bool,
}

impl Housekeeper {
    /// Runs until the sender of `stop` was dropped.
    pub(super) fn run(mut self, stop: &Receiver<()>) {
        let wait = match self.shared.durability {
            SyncPolicy::Interval(interval) => interval.min(self.tick),
            SyncPolicy::Always | SyncPolicy::Os => self.tick,
        };
        while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(wait) {
            self.persist();
            self.look_around();
        }
        // What was answered before a sync must not wait for the next start.
        self.persist();
    }

    /// Measures space and what scans have to pass, and requests heartbeats.
    pub(super) fn look_around(&mut self) {
        match (self.probe)(&self.shared.path) {
            Ok(free_bytes) => {
                self.is_blind = false;
                self.shared.space.measured(free_bytes);
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_blind, true) {
                    tracing::warn!(%error, "free disk space cannot be measured");
                }
            }
        }
        if let Ok(used_bytes) = self.shared.database.disk_space() {
            self.shared.space.measured_used(used_bytes);
        }
        self.shared.tombstones.measure(&self.shared.trees);
        self.shared.heartbeat_due.store(true, Relaxed);
    }

    fn persist(&self) {
        if self.shared.stopped().is_some() {
            return;
        }
        // Syncs nothing under the other policies, but still reports when a flush or a compaction
        // failed.
        let mode = match self.shared.durability {
            SyncPolicy::Interval(_) => PersistMode::SyncData,
            SyncPolicy::Always | SyncPolicy::Os => PersistMode::Buffer,
        };
        if let Err(reason) = self.shared.reach(CommitPoint::BeforeFlush) {
            self.shared.stop(reason);
            return;
        }
        let started = Instant::now();
        let persisted = self.shared.database.persist(mode);
        if matches!(mode, PersistMode::SyncData) {
            (self.shared.on_sync)(started.elapsed());
        }
        if let Err(error) = persisted {
            self.shared.stop(format!("background work failed: {}", error_text(&error)).into());
        }
    }
}
