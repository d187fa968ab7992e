//! The two gates before a write: free disk space, and how far compaction lags behind.
//!
//! Both answer from numbers that are cheap to read. Free space is measured by the housekeeper and
//! only remembered here. fjall itself sleeps inside a write, without bound, when a keyspace has 30
//! runs in level 0 or 4 sealed memtables; the one commit thread must never get there, so the gate
//! closes earlier and gives up after a bounded time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use fjall::AbstractTree as _;

use super::shared::Tree;
use crate::{CommitError, Write};

/// A change that removes keys may put this much, such as a counter, and still goes on when space
/// is short. In bytes of keys and values.
const RECLAIM_PUT_BYTES_MAX: usize = 1024;

const L0_RUNS_MAX: usize = 24;
const SEALED_MEMTABLES_MAX: usize = 2;
const PRESSURE_POLL: Duration = Duration::from_millis(5);
const PRESSURE_POLLS_MAX: usize = 400;

/// Remembers how much space is free.
#[derive(Debug)]
pub(super) struct SpaceGuard {
    free_bytes: AtomicU64,
    used_bytes: AtomicU64,
    reserve_bytes: u64,
}

impl SpaceGuard {
    pub(super) fn new(reserve_bytes: u64) -> Self {
        Self { free_bytes: AtomicU64::new(u64::MAX), used_bytes: AtomicU64::new(0), reserve_bytes }
    }

    pub(super) fn measured(&self, free_bytes: u64) {
        self.free_bytes.store(free_bytes, Relaxed);
    }

    pub(super) fn measured_used(&self, used_bytes: u64) {
        self.used_bytes.store(used_bytes, Relaxed);
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.free_bytes.load(Relaxed)
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Relaxed)
    }

    /// Whether the writes may go on with the space there is.
    pub(super) fn admit(&self, writes: &[Write]) -> Result<(), CommitError> {
        let free_bytes = self.free_bytes();
        if free_bytes >= self.reserve_bytes || reclaims(writes) {
            return Ok(());
        }
        Err(CommitError::Full { free_bytes, reserve_bytes: self.reserve_bytes })
    }
}

/// Whether the writes remove something, and put no more than a note about it.
fn reclaims(writes: &[Write]) -> bool {
    let (mut put_bytes, mut removed_bytes) = (0_usize, 0_usize);
    let mut deletes = false;
    for write in writes {
        match write {
            Write::Put { key, value } => {
                put_bytes = put_bytes.saturating_add(key.len()).saturating_add(value.len());
            }
            Write::Delete { key } => {
                deletes = true;
                removed_bytes = removed_bytes.saturating_add(key.len());
            }
        }
    }
    // A note may name one of the removed keys, which can be long; so their length counts for it.
    deletes && put_bytes <= removed_bytes.saturating_add(RECLAIM_PUT_BYTES_MAX)
}

/// How waiting for compaction ended.
#[derive(Debug)]
pub(super) struct WriteStall {
    /// Zero where there was nothing to wait for.
    pub(super) waited: Duration,
    pub(super) outcome: Result<(), CommitError>,
}

/// Waits, within bounds, until compaction has caught up.
#[expect(
    clippy::disallowed_methods,
    reason = "the commit thread is no async worker, and has nothing else to do meanwhile"
)]
pub(super) fn wait_for_compaction(trees: &[Tree]) -> WriteStall {
    wait_until_calm(
        || {
            trees.iter().any(|tree| {
                let (tree, handle) = (&tree.handle.tree, &tree.handle);
                is_pressed(tree.l0_run_count(), handle.sealed_memtable_count())
            })
        },
        std::thread::sleep,
    )
}

fn is_pressed(l0_runs: usize, sealed_memtables: usize) -> bool {
    l0_runs > L0_RUNS_MAX || sealed_memtables > SEALED_MEMTABLES_MAX
}

fn wait_until_calm(pressed: impl Fn() -> bool, mut sleep: impl FnMut(Duration)) -> WriteStall {
    let mut waited = Duration::ZERO;
    for _ in 0..PRESSURE_POLLS_MAX {
        if !pressed() {
            return WriteStall { waited, outcome: Ok(()) };
        }
        sleep(PRESSURE_POLL);
        waited += PRESSURE_POLL;
    }
    let outcome = Err(CommitError::Busy { reason: "compaction lags behind the writes".into() });
    WriteStall { waited, outcome }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use bytes::Bytes;

    use super::*;

    fn put(bytes: usize) -> Write {
        Write::Put { key: Bytes::new(), value: Bytes::from(vec![0; bytes]) }
    }

    fn delete() -> Write {
        Write::Delete { key: Bytes::from_static(b"k") }
    }

    #[test]
    fn admits_every_change_at_the_reserve_and_only_reclaiming_ones_below() {
        let space = SpaceGuard::new(1_000);

        space.measured(1_000);
        assert!(space.admit(&[put(1)]).is_ok());

        space.measured(999);
        assert!(matches!(
            space.admit(&[put(1)]),
            Err(CommitError::Full { free_bytes: 999, reserve_bytes: 1_000 })
        ));
        assert!(space.admit(&[delete()]).is_ok());
        // 1,024 bytes, and as many as the removed key has: one.
        assert!(space.admit(&[delete(), put(1_025)]).is_ok());
        assert!(space.admit(&[delete(), put(1_026)]).is_err());
        assert!(space.admit(&[put(0)]).is_err(), "a put alone reclaims nothing");
    }

    #[test]
    fn stalls_before_the_database_blocks_on_its_own() {
        assert!(!is_pressed(24, 2));
        assert!(is_pressed(25, 0));
        assert!(is_pressed(0, 3));
    }

    #[test]
    fn a_write_stall_ends_with_the_pressure() {
        let left = Cell::new(3);
        let pressed = || left.get() > 0;

        let stall = wait_until_calm(pressed, |_| left.set(left.get() - 1));

        assert!(stall.outcome.is_ok());
        assert_eq!(stall.waited, 3 * PRESSURE_POLL);
        assert_eq!(wait_until_calm(pressed, |_| {}).waited, Duration::ZERO);
        assert_eq!(left.get(), 0);
    }

    #[test]
    fn a_write_stall_is_bounded_and_ends_busy() {
        let slept = Cell::new(Duration::ZERO);

        let stall = wait_until_calm(|| true, |time| slept.set(slept.get() + time));

        assert_eq!(stall.waited, slept.get());
        assert!(matches!(stall.outcome, Err(CommitError::Busy { .. })));
        assert_eq!(slept.get(), Duration::from_secs(2));
    }
}
