//! Tests of the fence.

use super::*;
use crate::head::OwnerId;

const ID: QueueId = QueueId(3);

fn cause(fence: Fence, stored: Option<&QueueHead>) -> Option<FenceCause> {
    let stored = stored.map(QueueHead::encode);
    match fence.check(stored.as_deref()) {
        Ok(head) => {
            assert_eq!(stored, Some(head.encode()));
            None
        }
        Err(AttemptError::Fenced(Fenced { id, token, cause })) => {
            assert_eq!((id, token), (fence.id, fence.token));
            Some(cause)
        }
        Err(AttemptError::Failed(error)) => panic!("{error}"),
    }
}

#[test]
fn accepts_a_change_only_with_the_head_that_it_was_prepared_for() {
    let head = QueueHead::empty(Some(OwnerId(1)), 5).with_added(9);
    let fence = Fence { id: ID, token: head.token, record_version: Some(5) };
    let after = head.acquired_by(OwnerId(2)).expect("the first token");
    let changed = QueueHead { record_version: 6, ..head };

    assert_eq!(cause(fence, Some(&head)), None);
    assert_eq!(cause(fence, Some(&head.with_removed(4))), None, "the count is not a part of it");
    assert_eq!(cause(fence, None), Some(FenceCause::QueueReplaced));
    assert_eq!(cause(fence, Some(&after)), Some(FenceCause::NotOwner));
    assert_eq!(cause(fence, Some(&changed)), Some(FenceCause::StaleRecord));

    let any_record = Fence { record_version: None, ..fence };
    assert_eq!(cause(any_record, Some(&changed)), None);
    let former = Fence { token: FencingToken::NONE, ..any_record };
    assert_eq!(cause(former, Some(&head)), Some(FenceCause::NotOwner), "an older token");
    assert!(matches!(fence.check(Some(b"?")), Err(AttemptError::Failed(QueueError::Corrupt(_)))));
}
