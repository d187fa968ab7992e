//! What a repair changes in the rows of queues, where rows were lost.

use trestle_kv::Entry;

use crate::{backup, keys};

/// The row that gives the next queue this id or a later one. Messages of a queue whose record was lost are still there,
/// and must not be those of a new queue.
#[must_use]
pub fn raised(first: u64) -> Vec<Entry> {
    vec![Entry { key: keys::next_queue_id(), value: keys::encode_number(first) }]
}

/// The row as a repaired store has it: a head may be an earlier one than that which was lost, as that of a backup is.
/// One that cannot be read stays.
#[must_use]
pub fn repaired(row: Entry) -> Entry {
    backup::restored(row.clone()).unwrap_or(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        head::{OwnerId, QueueHead},
        keys::QueueId,
    };

    #[test]
    fn the_next_queue_has_this_id() {
        let [row] = &raised(700)[..] else { panic!("one row") };

        assert_eq!(row.key, keys::next_queue_id());
        assert_eq!(keys::decode_number(&row.value, "next queue id").unwrap(), 700);
    }

    #[test]
    fn heads_are_ahead_and_what_cannot_be_read_stays() {
        let head = QueueHead::empty(Some(OwnerId(9)), 5);
        let row = Entry { key: keys::head(QueueId(7)), value: head.encode() };

        let ahead = QueueHead::decode(&repaired(row.clone()).value).unwrap();

        assert!(ahead.token.first_sequence() > head.token.first_sequence());
        let corrupt = Entry { value: b"x".as_slice().into(), ..row };
        assert_eq!(repaired(corrupt.clone()), corrupt);
    }
}
