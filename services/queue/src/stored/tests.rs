//! Tests of the stored forms of a message.

use proptest::prelude::*;

use super::*;

fn ticks() -> impl Strategy<Value = Ticks> {
    (0..=Ticks::MAX.get()).prop_map(|ticks| Ticks::new(ticks).expect("in range"))
}

proptest! {
    #[test]
    fn states_and_bodies_survive_and_noise_does_not_panic(
        id: u128, inserted_at in ticks(), expires_at in proptest::option::of(ticks()),
        generation: u32, nonce: u64, has_nonce: bool, dequeue_count: u32, is_text: bool,
        origin in proptest::option::of(("[a-z]{3,63}", any::<u32>())),
        group in proptest::option::of(".{1,9}"),
        payload in ".{0,40}", noise in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let id = Uuid::from_u128(id);
        let in_group = group.as_deref().map(GroupId::of);
        let nonce = if has_nonce { nonce } else { 0 };
        let state = MessageState {
            id, inserted_at, expires_at, generation, nonce, dequeue_count, group: in_group,
        };
        let payload = Bytes::from(payload.into_bytes());
        let payload = if is_text { Payload::Text(payload) } else { Payload::Data(payload) };
        let origin = origin.map(|(queue, dequeue_count)| Origin { queue, dequeue_count });
        let body = Body { inserted_at, origin, group, payload };

        prop_assert_eq!(MessageState::decode(&state.encode()).ok(), Some(state));
        prop_assert_eq!(Body::decode(&body.encode()).ok(), Some(body));
        let _ = MessageState::decode(&noise);
        let _ = Body::decode(&noise.into());
    }
}

#[test]
fn a_message_expires_exactly_at_its_expiration() {
    let at = |ticks| Ticks::new(ticks).expect("in range");
    let state = |expires_at| MessageState {
        id: Uuid::nil(),
        inserted_at: at(1),
        expires_at,
        generation: 0,
        nonce: 1,
        dequeue_count: 0,
        group: None,
    };

    assert!(!state(Some(at(10))).is_expired(at(9)));
    assert!(state(Some(at(10))).is_expired(at(10)));
    assert!(!state(None).is_expired(Ticks::MAX));
}
