//! Tests of deduplication records.

use uuid::Uuid;

use super::*;

#[test]
fn a_deduplication_record_survives_encoding_and_expires() {
    let at = |ticks| Ticks::new(ticks).expect("in range");
    let state = MessageState {
        id: Uuid::from_u128(7),
        inserted_at: at(5),
        expires_at: None,
        generation: 0,
        nonce: 0,
        dequeue_count: 0,
        group: None,
    };
    let slot = Slot { visible_at: at(6), sequence: 9 };
    let of =
        |waits, is_duplicate| Some(Sent { sent: SentState { slot, state, waits }, is_duplicate });
    let (sent, waiting) = (of(false, false), of(true, false));
    let all = vec![sent, None, waiting, of(false, true), of(true, true)];
    let memory = DeduplicationRecord { until: at(100), sent: all };

    let value = memory.encode();

    assert_eq!(DeduplicationRecord::of(Some(&value), at(99)).ok(), Some(Some(memory)));
    assert_eq!(DeduplicationRecord::of(Some(&value), at(100)).ok(), Some(None));
    assert_eq!(DeduplicationRecord::of(None, at(0)).ok(), Some(None));
    assert!(DeduplicationRecord::decode(&value[..value.len() - 1]).is_err());
    assert!(DeduplicationRecord::decode(b"").is_err());
    let (until, message) = (&value[1..9], &value[10..72]);
    let old = [&[1][..], until, message].concat();
    let old = DeduplicationRecord::decode(&old).expect("written by an earlier server");
    assert_eq!(old.sent, [sent]);
    // Version 2 supported only the outcomes 0, 1 and 2 at first.
    let old = [&[2][..], until, &[0, 1], message, &[2], message].concat();
    let old = DeduplicationRecord::decode(&old).expect("written by an earlier server");
    assert_eq!(old.sent, [None, sent, waiting]);
    let unknown = [&[2][..], until, &[5], message].concat();
    assert!(DeduplicationRecord::decode(&unknown).is_err());
}
