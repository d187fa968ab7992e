//! Rows in a group that a reader of the journals needs, and the database does not: which version it has, and what was
//! discarded with it.
//!
//! Both are of kind 0, which belongs to no keyspace, in the first keyspace. Each replaces the one before it.

use bytes::Bytes;
use fjall::OwnedWriteBatch;

use super::shared::{EngineState, Tree};
use trestle_kv::Span;
use trestle_model::time::Ticks;

/// The row with the newest version of the group, as 8 bytes, big endian.
pub(super) const MARK_KEY: [u8; 2] = [0, 3];

/// The row with the span whose files are removed: the length of its start, as 4 bytes, big endian, its start, its end.
pub(super) const DISCARD_KEY: [u8; 2] = [0, 4];

/// Adds the newest version of a group to it.
pub(super) fn mark(newest: Ticks, batch: &mut OwnedWriteBatch, trees: &[Tree]) {
    if let Some(tree) = trees.first() {
        batch.insert(&tree.handle, MARK_KEY, newest.get().to_be_bytes());
    }
}

/// Writes a group that records a discard. It has the newest version that was written, so it comes after the group with
/// that version, and before every other one. False where the engine stopped, and nothing is to be discarded.
pub(super) fn log_discard(shared: &EngineState, span: &Span) -> Result<bool, fjall::Error> {
    let mut batch = shared.database.batch().durability(Some(shared.persist_mode()));
    if let Some(tree) = shared.trees.first() {
        batch.insert(&tree.handle, DISCARD_KEY, encode(span));
    }
    let in_order = shared.written.lock();
    if shared.stopped().is_some() {
        return Ok(false);
    }
    mark(in_order.newest(), &mut batch, &shared.trees);
    batch.commit()?;
    Ok(true)
}

fn encode(Span { start, end, .. }: &Span) -> Vec<u8> {
    let length = u32::try_from(start.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], start, end].concat()
}

/// The version in a mark.
pub(super) fn decode_mark(value: &[u8]) -> Option<Ticks> {
    Ticks::new(u64::from_be_bytes(value.try_into().ok()?))
}

/// The span of a discard.
pub(super) fn decode_discard(value: &Bytes) -> Option<Span> {
    let (length, keys) = value.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (start, end) = keys.split_at_checked(length)?;
    Some(Span::new(value.slice_ref(start), value.slice_ref(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_they_were_written_and_cut_ones_are_not() {
        for (start, end) in [("", ""), ("a", ""), ("", "b"), ("\0\u{1}abc", "\0\u{1}b")] {
            let span = Span::new(start, end);
            let row = Bytes::from(encode(&span));
            assert_eq!(decode_discard(&row), Some(span));
            for cut in 0..4 + start.len() {
                assert_eq!(decode_discard(&row.slice(..cut)), None, "{cut}");
            }
        }
    }

    #[test]
    fn a_mark_is_a_time() {
        let newest = Ticks::MAX.get();
        assert_eq!(decode_mark(&newest.to_be_bytes()), Some(Ticks::MAX));
        assert_eq!(decode_mark(&(newest + 1).to_be_bytes()), None);
        assert_eq!(decode_mark(&newest.to_be_bytes()[1..]), None);
    }
}
