//! Index tags of blobs: pairs of a key and a value by which blobs are found.
//!
//! Each tag of a blob has a row in the index, written by the change that writes the record. The row ends with the
//! container and the name, so it belongs to the domain of the blob. Past states and deleted blobs are not in the index.

pub(crate) mod expression;

use trestle_kv::Writes;

use crate::{blobs::BlobKey, keys, record::BlobRecord};

/// Keys and values, by key.
pub(crate) type Tags = Vec<(String, String)>;

/// Most tags of a blob. Azure.
pub(crate) const TAGS_MAX: usize = 10;
/// Longest key, in characters. Azure.
pub(crate) const KEY_CHARS_MAX: usize = 128;
/// Longest value, in characters. Azure.
pub(crate) const VALUE_CHARS_MAX: usize = 256;

/// Whether a key or a value may contain a character.
pub(crate) fn is_allowed(character: char) -> bool {
    character.is_ascii_alphanumeric() || " +-./:=_".contains(character)
}

/// Replaces the rows of the tags that a blob had by those of the tags that it has.
pub(crate) fn reindex(
    blob: &BlobKey,
    before: &[(String, String)],
    after: &[(String, String)],
    writes: &mut Writes,
) {
    for tag in before.iter().filter(|tag| !after.contains(tag)) {
        writes.delete(keys::tag_row(blob, tag));
    }
    for tag in after.iter().filter(|tag| !before.contains(tag)) {
        writes.put(keys::tag_row(blob, tag), keys::encode_number(0));
    }
}

/// The tags in the index of a stored record: none where it is deleted.
pub(crate) fn indexed(record: Option<&BlobRecord>) -> &[(String, String)] {
    record.filter(|record| record.deletion.is_none()).map_or(&[], |record| &record.tags)
}
