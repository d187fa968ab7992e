//! The time of an engine, and the versions that it gives.
//!
//! Several processes share a store, so the time of all of them is that of the database server: each transaction reads
//! its clock once it has its locks, so that versions rise within a domain whichever process commits. Between
//! transactions the time is estimated by what elapsed here since; the estimate is never ahead of the server. Where the
//! server's clock steps, also because another server took over, service time follows slowly, as that of any engine
//! does. Tests give a clock of their own.
//!
//! No stored version is greater than the *floor*, a row in the store, which is raised by a second at a time: with the
//! changes of one group once versions are near, and with those of each group whose versions pass it. Whoever opens the
//! store starts after it, and waits for it where it is near. So it also says how far the time of the others is at
//! least: a process whose machine stood still without counting that follows it at once.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use trestle_kv::{
    service_clock::{ClockCheckpoint, ServiceClock},
    version::Versions,
};
use trestle_model::time::{Clock, SystemClock, Ticks};

use crate::{schema::StoreRow, transaction::ServerTime};

/// How far a new floor is past the clock, in ticks: one second.
const LEAD: u64 = 10_000_000;
/// How near versions come, in ticks, before a group raises it for the others, which would wait for its row.
const NEAR: u64 = LEAD / 2;
/// How far it is past the newest version at least, in ticks: 10 ms.
const LEAD_MIN: u64 = 100_000;
/// The share by which an estimate of the server's clock that is too high falls with each measurement: one of so many.
const FALL_SHARE: i64 = 16;

/// See the module.
pub(crate) struct EngineClock {
    service: ServiceClock,
    /// None where a clock was given.
    server: Option<Arc<ServerClock>>,
    /// What the time of another process has reached, in ticks.
    reached: AtomicU64,
    versions: Mutex<ProcessVersions>,
}

/// The versions of all changes of a process, and the floor that is stored.
pub(crate) struct ProcessVersions {
    pub(crate) versions: Versions,
    floor: Ticks,
    /// Whether a group is on its way with a new floor. If it fails, versions pass the stored one at last.
    is_raising: bool,
}

/// The floor that a group stores.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewFloor {
    pub(crate) floor: Ticks,
    pub(crate) checkpoint: Option<ClockCheckpoint>,
}

/// The wall clock of the database server, estimated.
pub(crate) struct ServerClock {
    /// It minus the elapsed time of this machine, in ticks.
    offset: AtomicI64,
}

/// How long until the clock of the server, which shows `now`, is past the floor, if that is near. Who opens the store
/// waits for it, rather than give versions of the future.
pub(crate) fn wait_for_floor(store: &StoreRow, now: Ticks) -> Option<Duration> {
    let is_near = now < store.floor && now.plus(LEAD) >= store.floor;
    is_near.then(|| store.floor.since(now))
}

impl EngineClock {
    /// The clock of the server, which showed `now` just now; or the one that is given.
    pub(crate) fn open(store: &StoreRow, now: Ticks, given: Option<Arc<dyn Clock>>) -> Self {
        let StoreRow { floor, checkpoint } = *store;
        let (service, server, first) = match given {
            Some(clock) => (ServiceClock::after(floor, checkpoint, clock), None, floor),
            None => {
                let server = Arc::new(ServerClock { offset: AtomicI64::new(offset(now)) });
                let first = now.max(floor);
                let clock: Arc<dyn Clock> = Arc::<ServerClock>::clone(&server);
                (ServiceClock::after(first, None, clock), Some(server), first)
            }
        };
        let versions =
            ProcessVersions { versions: Versions::after(first), floor, is_raising: false };
        let reached = AtomicU64::new(Ticks::MIN.get());
        Self { service, server, reached, versions: Mutex::new(versions) }
    }

    /// Service time.
    pub(crate) fn now(&self) -> Ticks {
        let reached = Ticks::new(self.reached.load(Relaxed)).unwrap_or(Ticks::MIN);
        self.service.now().max(reached)
    }

    /// How far it is ahead of the wall clock.
    pub(crate) fn offset_ms(&self) -> i64 {
        self.service.offset_ms()
    }

    /// The time of a transaction that read that of the server: its clock, unless service time does not follow that yet.
    pub(crate) fn time_of(&self, read: ServerTime) -> Ticks {
        let Some(server) = &self.server else { return self.now() };
        server.measure(read.now);
        self.reached.fetch_max(read.floor.get().saturating_sub(LEAD), Relaxed);
        let now = self.now();
        if read.now <= now.plus(LEAD) { now.max(read.now) } else { now }
    }

    /// The versions of this process.
    pub(crate) fn versions(&self) -> MutexGuard<'_, ProcessVersions> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The floor to store with a group, if its versions pass the stored one, or will soon.
    pub(crate) fn new_floor(&self) -> Option<NewFloor> {
        let newest = {
            let mut held = self.versions();
            let newest = held.versions.newest();
            let is_near = newest.plus(NEAR) > held.floor && !held.is_raising;
            if newest <= held.floor && !is_near {
                return None;
            }
            held.is_raising = true;
            newest
        };
        let floor = self.now().plus(LEAD).max(newest.plus(LEAD_MIN));
        Some(NewFloor { floor, checkpoint: self.service.checkpoint() })
    }

    /// A floor is stored.
    pub(crate) fn stored(&self, floor: Ticks) {
        let mut held = self.versions();
        held.floor = held.floor.max(floor);
        held.is_raising = false;
    }
}

impl ProcessVersions {
    /// Goes on after a version that is stored.
    pub(crate) fn raise(&mut self, stored: Ticks) {
        if stored > self.versions.newest() {
            self.versions = Versions::after(stored);
        }
    }
}

impl ServerClock {
    /// The server read its clock before now, so the estimate by that is not ahead of it.
    fn measure(&self, server_now: Ticks) {
        let measured = offset(server_now);
        let fall = |before: i64| match measured.checked_sub(before) {
            Some(behind) if behind < 0 => Some(before + behind / FALL_SHARE),
            _ => Some(measured),
        };
        // Always changes it.
        let _ = self.offset.fetch_update(Relaxed, Relaxed, fall);
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Ticks {
        let ticks = elapsed_ticks().saturating_add(self.offset.load(Relaxed));
        u64::try_from(ticks).ok().and_then(Ticks::new).unwrap_or(Ticks::MIN)
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed()
    }

    fn boot_id(&self) -> Option<u128> {
        None
    }
}

/// How far a time is ahead of the elapsed time of this machine, in ticks.
fn offset(now: Ticks) -> i64 {
    now.get().cast_signed().saturating_sub(elapsed_ticks())
}

fn elapsed_ticks() -> i64 {
    i64::try_from(SystemClock.elapsed().as_nanos() / 100).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
