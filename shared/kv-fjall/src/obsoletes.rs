//! Entries of the database that a change makes obsolete, which scans pass until a compaction drops them.

use bytes::Bytes;

use trestle_kv::Write;

/// How many entries the writes make obsolete, or add without their ever being read. A delete leaves a tombstone beside
/// what it deletes. A put obsoletes what was stored; it does not, if the change read that nothing was.
pub(super) fn obsoletes(writes: &[Write], keys: &[Bytes], current: &[Option<Bytes>]) -> u64 {
    // Writes are mostly in the order of the reads, so each is looked for behind the one before it.
    let mut start = 0;
    let mut is_new = |key: &Bytes| {
        let (before, behind) = keys.split_at(start.min(keys.len()));
        let found = behind.iter().position(|read| read == key).map(|index| start + index);
        let found = found.or_else(|| before.iter().position(|read| read == key));
        found.is_some_and(|index| {
            start = index + 1;
            current.get(index).is_some_and(Option::is_none)
        })
    };
    let count = |write: &Write| match write {
        Write::Delete { .. } => 2,
        Write::Put { key, .. } => u64::from(!is_new(key)),
    };
    writes.iter().map(count).sum()
}
