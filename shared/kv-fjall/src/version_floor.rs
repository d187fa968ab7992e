//! Keeps versions rising and service time continuing across restarts, whatever the clock shows then.
//!
//! A row in the engine's own kind holds the floor: no stored version is greater. A group whose versions pass the floor
//! is written with a new one, [`LEAD`] ticks past the clock, so that the row costs at most one write a second under
//! load and nothing in between. A clean close writes the newest version itself. So after a crash versions start at most
//! a second past the newest one, and follow the clock again once it is there; after a clean close there is no gap. A
//! second row, written together with the first, is the checkpoint of service time.

use fjall::OwnedWriteBatch;

use super::readable_rows::{JournaledRows, ReadableRows};
use super::shared::{Tree, error_text};
use trestle_kv::after_key;
use trestle_kv::service_clock::{ClockCheckpoint, ServiceClock};
use trestle_kv::version::Versions;
use trestle_model::time::Ticks;

/// Kind 0 belongs to no keyspace, so no read or scan of a service is ever routed to it. The heartbeat has the kind
/// alone.
const KEY: [u8; 2] = [0, 1];

/// The row with the checkpoint of service time: time, elapsed time, boot.
const CHECKPOINT_KEY: [u8; 2] = [0, 2];

/// How far a new floor is past the clock: one second.
const LEAD: u64 = 10_000_000;

/// How far it is past the newest version at least, where that is ahead of the clock: 10 ms, less than a restart takes,
/// so that a process that crashes again and again does not run further ahead each time.
const LEAD_MIN: u64 = 100_000;

/// The versions of the committer, and the floor that is stored for them.
pub(super) struct FlooredVersions {
    pub(super) versions: Versions,
    stored: Ticks,
}

impl FlooredVersions {
    /// Goes on after the stored floor.
    pub(super) fn after(stored: Ticks) -> Self {
        Self { versions: Versions::after(stored), stored }
    }

    /// Adds a new floor to a group that is about to be written, if its versions pass the stored one.
    pub(super) fn raise(
        &mut self,
        batch: &mut OwnedWriteBatch,
        trees: &[Tree],
        clock: &ServiceClock,
    ) {
        let newest = self.versions.newest();
        if newest > self.stored {
            let floor = clock.now().plus(LEAD).max(newest.plus(LEAD_MIN));
            self.put(floor, batch, trees, clock);
        }
    }

    /// Adds the exact floor to a batch: the newest version, or the time, by which more may have become visible. Whether
    /// that was needed: an engine that wrote nothing leaves its files as they are.
    pub(super) fn store(
        &mut self,
        batch: &mut OwnedWriteBatch,
        trees: &[Tree],
        clock: &ServiceClock,
    ) -> bool {
        let newest = self.versions.newest();
        let is_needed = newest != self.stored;
        if is_needed {
            self.put(newest.max(clock.now()), batch, trees, clock);
        }
        is_needed
    }

    fn put(
        &mut self,
        floor: Ticks,
        batch: &mut OwnedWriteBatch,
        trees: &[Tree],
        clock: &ServiceClock,
    ) {
        put(floor, batch, trees);
        self.stored = floor;
        let Some(tree) = trees.first() else { return };
        if let Some(checkpoint) = clock.checkpoint() {
            batch.insert(&tree.handle, CHECKPOINT_KEY, encode(checkpoint));
        }
    }
}

/// Adds a floor to a batch for a store that is new.
pub(super) fn put(floor: Ticks, batch: &mut OwnedWriteBatch, trees: &[Tree]) {
    if let Some(tree) = trees.first() {
        batch.insert(&tree.handle, KEY, floor.get().to_be_bytes());
    }
}

/// The stored floor: the greatest one, should the order of keyspaces have changed.
///
/// # Errors
/// A row that cannot be read, for people.
pub(super) fn read(trees: &[Tree]) -> Result<Ticks, String> {
    let mut floor = Ticks::MIN;
    for tree in trees {
        let stored = tree.handle.get(KEY).map_err(|error| error_text(&error))?;
        let Some(stored) = stored else { continue };
        let ticks = <[u8; 8]>::try_from(&*stored).ok().map(u64::from_be_bytes);
        let ticks = ticks.and_then(Ticks::new).ok_or("the version floor is not a time")?;
        floor = floor.max(ticks);
    }
    Ok(floor)
}

/// The floor in what can be read of a damaged keyspace; the lowest, if it is lost.
pub(super) fn readable(tree: &Tree, journaled: &JournaledRows) -> Ticks {
    let own = journaled.get_key_value(KEY.as_slice());
    let own = own.map(|(key, newest)| (key.clone(), newest.clone())).into_iter().collect();
    let mut rows = ReadableRows::between(tree, (&KEY, &after_key(&KEY)), own, |_| true);
    let row = rows.next_row().and_then(|row| <[u8; 8]>::try_from(&*row.value).ok());
    row.and_then(|row| Ticks::new(u64::from_be_bytes(row))).unwrap_or(Ticks::MIN)
}

fn encode(ClockCheckpoint { time, elapsed, boot_id }: ClockCheckpoint) -> Vec<u8> {
    let numbers = [time.get().to_be_bytes(), elapsed.to_be_bytes()];
    [numbers.as_flattened(), &boot_id.to_be_bytes()].concat()
}

fn decode(row: &[u8]) -> Option<ClockCheckpoint> {
    let (time, rest) = row.split_first_chunk()?;
    let (elapsed, boot_id) = rest.split_first_chunk()?;
    Some(ClockCheckpoint {
        time: Ticks::new(u64::from_be_bytes(*time))?,
        elapsed: u64::from_be_bytes(*elapsed),
        boot_id: u128::from_be_bytes(boot_id.try_into().ok()?),
    })
}

/// The stored checkpoint of service time: the newest one, should the order of keyspaces have changed. One of another
/// form counts as none: the floor is enough to start from.
///
/// # Errors
/// A row that cannot be read, for people.
pub(super) fn read_checkpoint(trees: &[Tree]) -> Result<Option<ClockCheckpoint>, String> {
    let mut newest: Option<ClockCheckpoint> = None;
    for tree in trees {
        let stored = tree.handle.get(CHECKPOINT_KEY).map_err(|error| error_text(&error))?;
        let checkpoint = stored.and_then(|row| decode(&row));
        newest = newest.into_iter().chain(checkpoint).max_by_key(|checkpoint| checkpoint.time);
    }
    Ok(newest)
}
