//! Removes whole files whose keys are no longer needed, such as those of a dropped table.

use std::sync::Arc;

use fjall::AbstractTree as _;

use super::marks;
use super::reclaim_run::{SNAPSHOTS_WITHIN, flush_heartbeat};
use super::shared::{EngineState, Tree};
use trestle_kv::Span;

/// Files of a range are removed if they are at least this big together; less is left to its deletes.
const BYTES_MIN: u64 = 4 * 1024 * 1024;

/// Removes the files of a keyspace that lie in the span as a whole. Keys in other files stay.
pub(super) fn discard(
    shared: &Arc<EngineState>,
    tree: &Tree,
    span: &Span,
) -> Result<(), fjall::Error> {
    if dead_bytes(tree, span) < BYTES_MIN {
        return Ok(());
    }
    // The journals show nothing of it otherwise.
    if shared.marks_groups && !marks::log_discard(shared, span)? {
        return Ok(());
    }
    let persisted = tree.handle.tree.get_highest_persisted_seqno();
    let range = span.start.as_ref()..span.end.as_ref();
    tree.handle.tree.drop_range(range)?;
    if tree.handle.tree.get_highest_persisted_seqno() < persisted {
        // A recovery reads the journal from what the files say is persisted. Without a newer file it would bring
        // back rows of those that were removed.
        flush_heartbeat(shared, tree)?;
    }
    shared.release_files(SNAPSHOTS_WITHIN);
    Ok(())
}

fn dead_bytes(tree: &Tree, span: &Span) -> u64 {
    let version = tree.handle.tree.current_version();
    let is_dead = |range: &(&[u8], &[u8])| span.start <= range.0 && range.1 < span.end;
    let tables = version.iter_tables().map(|table| {
        let keys = &table.metadata.key_range;
        ((keys.min().as_ref(), keys.max().as_ref()), table.metadata.file_size)
    });
    tables.filter(|(range, _)| is_dead(range)).map(|(_, bytes)| bytes).sum()
}
