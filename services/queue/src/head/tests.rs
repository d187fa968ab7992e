//! Tests of the head row.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn heads_survive_and_noise_is_rejected(
        count: u64, token in 0..=FencingToken::LAST.0, owner: u128, record_version: u64,
        noise in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let token = FencingToken(token);
        let owner = Some(OwnerId(owner)).filter(|_| token > FencingToken::NONE);
        let head = QueueHead { count, token, owner, record_version };

        let value = head.encode();

        prop_assert_eq!(QueueHead::decode(&value).ok(), Some(head));
        prop_assert!(QueueHead::decode(&value[..value.len() - 1]).is_err());
        let _ = QueueHead::decode(&noise);
    }
}

#[test]
fn sequences_rise_from_token_to_token_up_to_the_last_one() {
    let before_last = FencingToken(FencingToken::LAST.0 - 1);
    for token in [FencingToken::FIRST, FencingToken(77), before_last] {
        let next = token.next().expect("not the last");
        let last_sequence = token.first_sequence() + ((1 << SEQUENCE_BITS) - 1);
        assert_eq!(next.first_sequence(), last_sequence + 1);
    }

    assert_eq!(FencingToken::LAST.0, 0xFF_FFFF, "24 bits");
    assert_eq!(FencingToken::LAST.first_sequence() + ((1 << SEQUENCE_BITS) - 1), u64::MAX);
}

#[test]
fn rejects_a_take_over_after_the_last_token() {
    let owner = OwnerId(7);
    let head = QueueHead::empty(None, 1);
    assert_eq!(head.acquired_by(owner), Some(QueueHead::empty(Some(owner), 1)));

    let exhausted = QueueHead { token: FencingToken::LAST, ..head };
    assert_eq!(exhausted.acquired_by(owner), None);
    let value = [&[VERSION][..], &[0; 8], &[1, 0, 0, 0], &[0; 24]].concat();
    assert!(QueueHead::decode(&value).is_err(), "a token of 25 bits");
}

#[test]
fn a_count_never_falls_below_zero() {
    let head = QueueHead::empty(None, 1).with_added(3);
    assert_eq!((head.with_removed(2).count, head.with_removed(9).count), (1, 0));
}
