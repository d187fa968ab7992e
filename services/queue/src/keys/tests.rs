//! Tests of the keys.

use proptest::prelude::*;

use super::*;
use crate::{deleted_range::DeletedRange, slot::Cursor};

fn slot() -> impl Strategy<Value = Slot> {
    (0..4_u64, 0..4_u64).prop_map(|(ticks, sequence)| Slot {
        visible_at: Ticks::new(ticks).expect("in range"),
        sequence,
    })
}

proptest! {
    #[test]
    fn states_sort_by_queue_then_by_time_then_by_sequence(
        a in (0_u64..3, slot()), b in (0_u64..3, slot()),
    ) {
        let key = |(id, slot): &(u64, Slot)| state(QueueId(*id), *slot);

        prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
        prop_assert_eq!(slot_of(&key(&a)).ok(), Some(a.1));
    }

    #[test]
    fn a_range_holds_its_own_queue_from_its_start_on(
        id in 0_u64..3, from in slot(), other in (0_u64..3, slot()),
    ) {
        let span = states_from(QueueId(id), from);
        let key = state(QueueId(other.0), other.1);

        let inside = key >= span.start && key < span.end;

        prop_assert_eq!(inside, other.0 == id && other.1 >= from);
    }

    #[test]
    fn what_is_to_be_forgotten_names_what_is_remembered(
        id: u64, at in 0..=Ticks::MAX.get(), text in ".{1,20}", later in 0_u64..2,
    ) {
        let at = Ticks::new(at).expect("in range");
        let record = deduplication(QueueId(id), IdKind::Deduplication, &text);
        let expiry = deduplication_expiry(at, &record);
        let now = Ticks::new(at.get().saturating_sub(1 - later)).expect("in range");

        prop_assert_eq!(deduplication_of(&expiry).ok(), Some((QueueId(id), record)));
        let due = expired_deduplications(&Bytes::new(), now);
        prop_assert_eq!(expiry >= due.start && expiry < due.end, now >= at);
    }

    #[test]
    fn cursors_and_ranges_survive_and_noise_is_rejected(
        id: u64, slot in slot(), resume in proptest::collection::vec(any::<u8>(), 0..40),
        noise in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let cursor = Cursor { slot, sequence: id };
        let range = DeletedRange { deleted_at: slot.visible_at, resume: resume.into() };

        prop_assert_eq!(Cursor::decode(&cursor.encode()).ok(), Some(cursor));
        prop_assert_eq!(DeletedRange::decode(&range.encode()).ok(), Some(range));
        prop_assert_eq!(decode_number(&encode_number(id), "number").ok(), Some(id));
        if noise.first() != Some(&VERSION) {
            prop_assert!(Cursor::decode(&noise).is_err());
            prop_assert!(DeletedRange::decode(&noise).is_err());
            prop_assert!(decode_number(&noise, "number").is_err());
        }
    }
}

#[test]
fn queues_are_listed_by_account_and_prefix() {
    let account = AccountName::development();
    let other = AccountName::parse("devstoreaccount").expect("a name");
    let name = |text: &str| {
        let mut violations = trestle_model::fault::Violations::default();
        QueueName::parse(text.to_owned(), "queue", &mut violations).expect("a name")
    };
    let span = queues(&account, "ab");
    let inside = |key: Bytes| key >= span.start && key < span.end;

    assert!(inside(queue(&account, &name("abc"))));
    assert!(inside(queue(&account, &name("ab-c"))));
    assert!(!inside(queue(&account, &name("acb"))));
    assert!(!inside(queue(&other, &name("abc"))));
    assert!(queue(&account, &name("a-b")) < queue(&account, &name("a0b")));
    let names = (account.as_str().to_owned(), "abc".to_owned());
    assert_eq!(queue_of(&queue(&account, &name("abc"))).ok(), Some(names));
}

#[test]
fn each_kind_belongs_to_one_keyspace_and_none_is_used_twice() {
    let kinds = [
        QUEUE,
        DELETED,
        NEXT_QUEUE_ID,
        HEAD,
        CURSOR,
        DEDUPLICATION,
        DEDUPLICATION_EXPIRY,
        BODY,
        STATE,
        NEXT_IN_GROUP,
        GROUP,
        SERVICE_PROPERTIES,
    ];
    for (index, kind) in kinds.iter().enumerate() {
        let homes = KEYSPACES.iter().filter(|keyspace| keyspace.kinds.contains(kind)).count();
        assert_eq!(homes, 1, "kind {kind:#x}");
        assert!(!kinds.iter().skip(index + 1).any(|other| other == kind), "kind {kind:#x}");
    }
}

#[test]
fn every_key_of_a_queue_has_the_domain_of_the_queue_and_every_other_key_its_own() {
    let (id, slot) = (QueueId(7), Slot::FIRST);
    let record = deduplication(id, IdKind::Request, "an id");
    let of_queue = [
        head(id),
        cursor(id),
        deleted(id, QueuePart::Bodies),
        record.clone(),
        deduplication_expiry(Ticks::MAX, &record),
        body(id, 1),
        state(id, slot),
        next_in_group(id, 1),
        group(id, GroupId(2)),
    ];
    for key in &of_queue {
        assert_eq!(Domain::from(domain_of(key)), queue_domain(id), "{key:?}");
    }
    let account = AccountName::development();
    let name = crate::model::queue_name("jobs");
    let others = [queue(&account, &name), next_queue_id(), service_properties(&account)];
    for (index, key) in others.iter().enumerate() {
        assert_ne!(own_domain(key), queue_domain(id), "{key:?}");
        assert!(others.iter().skip(index + 1).all(|other| own_domain(other) != own_domain(key)));
    }
}
