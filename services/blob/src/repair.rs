//! What a repair changes in the rows of blobs, where rows were lost.

use trestle_kv::Entry;

use crate::keys;

/// The rows that give the next container, and with `has_contents` the next content, this id or a later one. Blobs of a
/// container whose record was lost are still there, and must not be those of a new one; and a content whose id is given
/// again replaces the objects of a blob.
#[must_use]
pub fn raised(first: u64, has_contents: bool) -> Vec<Entry> {
    let row = |key| Entry { key, value: keys::encode_number(first) };
    let contents = has_contents.then(keys::next_content_id);
    std::iter::once(keys::next_container_id()).chain(contents).map(row).collect()
}

/// Whether a repaired store has a row. By those that are left out, objects without a live content are deleted; but where
/// a blob is and its live content was lost, it has objects.
#[must_use]
pub fn is_kept(row: &Entry) -> bool {
    let blocks = keys::every_content_ids();
    row.key < blocks.start || blocks.end <= row.key
}
