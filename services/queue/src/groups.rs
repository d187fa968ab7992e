//! Ordering groups: the messages of a group are delivered one at a time, in the order in which they were sent.
//!
//! Only the first message of a group has a state where consumers find it. Each of the others lies under the sequence of
//! the one before it. So whoever removes a message finds the one behind it with one read, and puts it where it is seen,
//! in the same commit; nobody ever searches. The group has a row with the sequence of its last message, while it has
//! any, so a send finds the end without a search too.
//!
//! ```text
//! follower: version (1) = 1 | sequence u64 | visible ticks u64 | state as stored
//! ```

use bytes::Bytes;
use trestle_kv::Write;
use trestle_service::clock::Ticks;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    error::QueueError,
    expiries::Standing,
    keys::{self, GroupId, Place, QueueId},
    stored::MessageState,
    wire::Fields,
};

const VERSION: u8 = 1;

/// A message that waits behind another one of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Follower {
    /// Its sequence, and when it may be received at the earliest.
    pub(crate) place: Place,
    /// How it stands.
    pub(crate) state: MessageState,
}

impl GroupId {
    /// The number of a group by its name. Two names that share a number share an order, which does no harm.
    pub(crate) fn of(name: &str) -> Self {
        Self(xxh3_64(name.as_bytes()))
    }
}

impl Follower {
    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.place.sequence.to_be_bytes());
        value.extend_from_slice(&self.place.visible_at.get().to_be_bytes());
        value.extend_from_slice(&self.state.encode());
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn decode(value: &[u8]) -> Result<Self, QueueError> {
        let fields = || {
            let mut fields = Fields::of(value, VERSION)?;
            let sequence = fields.u64()?;
            let place = Place { visible_at: fields.ticks()?, sequence };
            let state = MessageState::decode(fields.rest()).ok()?;
            Some(Self { place, state })
        };
        fields().ok_or_else(|| QueueError::corrupt("a message behind another one"))
    }
}

/// Adds what follows the removal of the first message of a group, which had this `sequence` and `group`: the one behind
/// it, if there is one, becomes visible; else the group is gone. `follower` is what is stored behind it.
///
/// # Errors
/// [`QueueError::Corrupt`].
pub(crate) fn succeed(
    id: QueueId,
    (sequence, group): (u64, GroupId),
    follower: Option<&Bytes>,
    now: Ticks,
    writes: &mut Vec<Write>,
) -> Result<Option<Standing>, QueueError> {
    let Some(follower) = follower else {
        writes.push(Write::Delete { key: keys::group(id, group) });
        return Ok(None);
    };
    let Follower { place, state } = Follower::decode(follower)?;
    // Not in the past: nothing may come to lie behind the cursor of the queue.
    let place = Place { visible_at: place.visible_at.max(now), ..place };
    writes.push(Write::Delete { key: keys::follower(id, sequence) });
    writes.push(Write::Put { key: keys::state(id, place), value: state.encode() });
    Ok(Some(Standing { place, expires_at: state.expires_at }))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const ID: QueueId = QueueId(3);
    const GROUP: GroupId = GroupId(9);

    fn at(ticks: u64) -> Ticks {
        Ticks::new(ticks).expect("in range")
    }

    fn follower(visible_at: u64) -> Follower {
        let state = MessageState {
            id: Uuid::from_u128(1),
            inserted_at: at(1),
            expires_at: Some(at(100)),
            generation: 0,
            dequeue_count: 0,
            group: Some(GROUP),
        };
        Follower { place: Place { visible_at: at(visible_at), sequence: 8 }, state }
    }

    #[test]
    fn the_message_behind_becomes_visible_now_or_when_its_delay_is_over() {
        for (due, visible) in [(20, 50), (70, 70)] {
            let (waiting, mut writes) = (follower(due), Vec::new());

            let promoted = succeed(ID, (5, GROUP), Some(&waiting.encode()), at(50), &mut writes);

            let place = Place { visible_at: at(visible), sequence: 8 };
            let expected = Standing { place, expires_at: Some(at(100)) };
            assert_eq!(promoted.expect("readable"), Some(expected));
            let put = Write::Put { key: keys::state(ID, place), value: waiting.state.encode() };
            assert_eq!(writes, [Write::Delete { key: keys::follower(ID, 5) }, put]);
        }
    }

    #[test]
    fn a_group_without_messages_is_gone() {
        let mut writes = Vec::new();
        assert_eq!(succeed(ID, (5, GROUP), None, at(50), &mut writes).expect("decided"), None);
        assert_eq!(writes, [Write::Delete { key: keys::group(ID, GROUP) }]);
    }

    #[test]
    fn followers_survive_and_noise_is_refused() {
        let value = follower(7).encode();
        assert_eq!(Follower::decode(&value).ok(), Some(follower(7)));
        for end in 0..value.len() {
            assert!(Follower::decode(&value[..end]).is_err(), "{end}");
        }
        assert!(Follower::decode(&[&value[..], b"x"].concat()).is_err());
    }
}
