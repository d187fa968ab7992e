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

/// Whether a repaired store has a row. By those that are left out, objects without a live content are deleted; but a
/// blob whose live content was lost has objects.
#[must_use]
pub fn is_kept(row: &Entry) -> bool {
    let blocks = keys::every_content_ids();
    row.key < blocks.start || blocks.end <= row.key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ContentId;

    #[test]
    fn the_next_ids_are_those_and_contents_only_where_they_are_asked_for() {
        let rows = raised(700, true);
        let keys: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();

        assert_eq!(keys, [keys::next_container_id(), keys::next_content_id()]);
        for row in &rows {
            assert_eq!(keys::decode_number(&row.value, "next id").unwrap(), 700);
        }
        assert_eq!(raised(700, false), rows[..1]);
    }

    #[test]
    fn only_blocks_of_content_ids_are_left_out() {
        let row = |key| Entry { key, value: keys::encode_number(1) };

        assert!(!is_kept(&row(keys::content_ids(ContentId(1)))));
        assert!(!is_kept(&row(keys::content_ids(ContentId(u64::MAX)))));
        assert!(is_kept(&row(keys::live(ContentId(1)))));
        assert!(is_kept(&row(keys::next_content_id())));
    }
}
