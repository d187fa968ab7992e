//! Keeps versions rising across restarts, whatever the clock shows then.
//!
//! A row in the engine's own kind holds the floor: no stored version is greater. A group whose versions pass the floor
//! is written with a new one, [`LEAD`] ticks further, so that the row costs at most one write a second under load and
//! nothing in between. A clean close writes the newest version itself. So after a crash versions start at most a second
//! past the newest one, and follow the clock again once it is there; after a clean close there is no gap.

use fjall::OwnedWriteBatch;

use super::shared::{Tree, error_text};
use crate::time::Ticks;
use crate::version::Versions;

/// Kind 0 belongs to no keyspace, so no read or scan of a service is ever routed to it. The heartbeat has the kind
/// alone.
const KEY: [u8; 2] = [0, 1];

/// How far a new floor is past the newest version: one second.
const LEAD: u64 = 10_000_000;

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
    pub(super) fn raise(&mut self, batch: &mut OwnedWriteBatch, trees: &[Tree]) {
        let newest = self.versions.newest();
        if newest > self.stored {
            self.put(newest.plus(LEAD), batch, trees);
        }
    }

    /// Adds the exact floor to a batch; whether it was needed.
    pub(super) fn settle(&mut self, batch: &mut OwnedWriteBatch, trees: &[Tree]) -> bool {
        let newest = self.versions.newest();
        let is_needed = newest != self.stored;
        if is_needed {
            self.put(newest, batch, trees);
        }
        is_needed
    }

    fn put(&mut self, floor: Ticks, batch: &mut OwnedWriteBatch, trees: &[Tree]) {
        if let Some(tree) = trees.first() {
            batch.insert(&tree.handle, KEY, floor.get().to_be_bytes());
            self.stored = floor;
        }
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
