//! What a repair changes in the rows of tables, where rows were lost.

use trestle_kv::Entry;

use crate::keys::{self, TableId};

/// The row that gives the next table this id or a later one. Entities of a table whose record was lost are still
/// there, and must not be those of a new table.
#[must_use]
pub fn raised(first: u64) -> Vec<Entry> {
    vec![Entry { key: keys::next_table_id(), value: keys::encode_next_id(TableId(first)) }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_table_has_this_id() {
        let [row] = &raised(700)[..] else { panic!("one row") };

        assert_eq!(row.key, keys::next_table_id());
        assert_eq!(keys::decode_next_id(Some(&row.value)).unwrap(), TableId(700));
    }
}
