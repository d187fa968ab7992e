//! The file `DURABILITY`: whether the groups of the journals were synced one by one.
//!
//! With durability `always` a group is written only after the one before is on stable storage. So damage
//! with a whole group behind it is damage to what was acknowledged. Otherwise the system writes several
//! groups in any order, and after a power loss an earlier one may be torn and a later one whole. The file
//! is there in the second case only, so that the default costs nothing.

use std::fs;
use std::io;
use std::path::Path;

use super::directory;
use super::options::SyncPolicy;

const FILE: &str = "DURABILITY";
const RELAXED: &str = "trestle-kv-durability 1\nnot-in-order\n";

/// Whether every group in the journals was synced before the next was written.
pub(super) fn was_in_order(directory: &Path) -> io::Result<bool> {
    // Whatever its content: only this program writes it, and an order must not be assumed.
    Ok(!directory.join(FILE).try_exists()?)
}

/// Notes how groups are synced from here on. Call it before the first one is written, and after what is
/// in the journals is durable.
pub(super) fn store(directory: &Path, durability: SyncPolicy) -> io::Result<()> {
    let is_in_order = matches!(durability, SyncPolicy::Always);
    if was_in_order(directory)? == is_in_order {
        return Ok(());
    }
    if is_in_order {
        fs::remove_file(directory.join(FILE))?;
        return directory::sync(directory);
    }
    trestle_kv::replace_file(directory, FILE, RELAXED.as_bytes())
}
