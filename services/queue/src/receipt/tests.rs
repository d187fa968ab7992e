//! Tests of receipts.

use proptest::prelude::*;
use trestle_model::time::Ticks;

use super::*;

proptest! {
    #[test]
    fn receipts_survive_as_text_that_needs_no_escapes(
        ticks in 0..=Ticks::MAX.get(), sequence: u64, generation: u32, is_in_group: bool,
        nonce: u64, has_nonce: bool, cut in 0..TEXT_BYTES_WITHOUT_NONCE,
    ) {
        let visible_at = Ticks::new(ticks).expect("in range");
        let slot = Slot { visible_at, sequence };
        let nonce = if has_nonce { nonce } else { 0 };
        let receipt = Receipt { slot, generation, nonce, is_in_group };

        let text = receipt.to_text();

        prop_assert_eq!(Receipt::parse(&text), Some(receipt));
        prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        prop_assert_eq!(Receipt::parse(&text[..cut]), None);
        prop_assert_eq!(Receipt::parse(&format!("{text}A")), None);
    }

    #[test]
    fn arbitrary_text_is_no_receipt(text in "[^A]{0,40}") {
        prop_assert_eq!(Receipt::parse(&text), None, "every receipt starts with A");
    }
}

#[test]
fn compares_message_ids_by_value() {
    let id = Uuid::from_u128(7);
    let slot = Slot { visible_at: Ticks::MAX, sequence: 0 };
    let receipt = Receipt { slot, generation: 0, nonce: 5, is_in_group: false };
    let claimed = |message_id: String| Claimed { message_id, receipt };

    assert!(claimed(id.to_string()).is_of(id));
    assert!(claimed(id.to_string().to_uppercase()).is_of(id));
    assert!(!claimed(Uuid::from_u128(8).to_string()).is_of(id));
    assert!(!claimed("hello".to_owned()).is_of(id));
}

#[test]
fn receipts_of_earlier_versions_are_valid_for_states_of_earlier_versions_only() {
    let (slot, id) = (Slot { visible_at: Ticks::MAX, sequence: 4 }, Uuid::from_u128(7));
    let state = |nonce| MessageState {
        id,
        inserted_at: Ticks::MIN,
        expires_at: None,
        generation: 2,
        nonce,
        dequeue_count: 2,
        group: None,
    };
    let text = Receipt::of(slot, &state(0)).to_text();
    assert_eq!(text.len(), TEXT_BYTES_WITHOUT_NONCE);
    let receipt = Receipt::parse(&text).expect("well-formed");
    let claimed = Claimed { message_id: id.to_string(), receipt };
    let is_valid = |nonce| {
        let stored = state(nonce).encode();
        valid_state(&claimed, Some(&stored), Ticks::MIN).expect("readable").is_some()
    };

    assert!(is_valid(0));
    // Whatever else is known of a message, its nonce is not.
    assert!(!is_valid(1) && !is_valid(u64::MAX));
}
