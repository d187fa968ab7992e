//! What writes take of the disk, and whether they give back more.

use trestle_kv::{Write, limits::RECLAIM_PUT_BYTES_MAX};

/// What the journal adds to a key and its value, at most, in bytes.
const JOURNAL_ENTRY_BYTES: u64 = 64;

/// What the journal takes for the writes, in bytes.
pub(super) fn journal_bytes(writes: &[Write]) -> u64 {
    let bytes = |write: &Write| match write {
        Write::Put { key, value } => key.len().saturating_add(value.len()),
        Write::Delete { key } => key.len(),
    };
    let to_u64 = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
    let add = |sum: u64, write| {
        sum.saturating_add(to_u64(bytes(write))).saturating_add(JOURNAL_ENTRY_BYTES)
    };
    writes.iter().fold(0, add)
}

/// Whether the writes remove something, and put no more than a counter.
pub(super) fn reclaims(writes: &[Write]) -> bool {
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
    // A put may name one of the removed keys, which can be long; so their length counts for it.
    deletes && put_bytes <= removed_bytes.saturating_add(RECLAIM_PUT_BYTES_MAX)
}
