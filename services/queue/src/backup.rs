//! What a restore changes in the rows of queues.

use trestle_kv::Entry;

use crate::{head::QueueHead, keys};

/// How many take-overs a restored queue is ahead. The store that was lost may have had as many since the backup, one
/// for each start of the server, and a sequence number that it gave a message must not be given again: its clients
/// may still have receipts.
const AHEAD: u32 = 1024;

/// The row as a restored store has it.
///
/// # Errors
/// A corrupt head, or one that was restored too often, in words.
pub fn restored(row: Entry) -> Result<Entry, String> {
    if !keys::is_head(&row.key) {
        return Ok(row);
    }
    let head = QueueHead::decode(&row.value).map_err(|error| error.to_string())?;
    let head = head.ahead_by(AHEAD).ok_or("a queue was restored too often: no token is left")?;
    Ok(Entry { value: head.encode(), ..row })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        head::{FencingToken, OwnerId},
        keys::QueueId,
    };

    fn row(head: &QueueHead) -> Entry {
        Entry { key: keys::head(QueueId(7)), value: head.encode() }
    }

    #[test]
    fn the_head_of_a_restored_queue_is_ahead_of_the_lost_one() {
        let head = QueueHead::empty(Some(OwnerId(9)), 5).with_added(3);
        let restored = QueueHead::decode(&restored(row(&head)).unwrap().value).unwrap();
        assert!(restored.token.first_sequence() > head.token.first_sequence() + (1000 << 40));
        assert_eq!(QueueHead { token: head.token, ..restored }, head);
    }

    #[test]
    fn other_rows_stay_and_the_last_token_is_an_error() {
        let other = Entry { key: b"\x30a".as_slice().into(), value: b"b".as_slice().into() };
        assert_eq!(restored(other.clone()), Ok(other));

        let last = QueueHead { token: FencingToken::LAST, ..QueueHead::empty(Some(OwnerId(1)), 0) };
        assert!(restored(row(&last)).unwrap_err().contains("too often"));
        let corrupt = Entry { value: b"x".as_slice().into(), ..row(&last) };
        assert!(restored(corrupt).is_err());
    }
}
