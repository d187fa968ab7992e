//! Tests of records of queues.

use proptest::prelude::*;

use super::*;

fn settings() -> impl Strategy<Value = QueueSettings> {
    let metadata = proptest::collection::vec(("[a-z]{1,5}", "[ -~]{0,5}"), 0..4);
    let dead_letter = proptest::option::of(("[a-z]{3,9}", 1..1000_u32));
    let window = proptest::option::of(1..604_800_u64);
    (metadata, dead_letter, window).prop_map(|(metadata, dead_letter, window)| {
        let dead_letter = dead_letter.map(|(queue, dequeue_count_max)| {
            let queue = QueueName::parse(queue, "", &mut Violations::default());
            DeadLetter { queue: queue.expect("a name"), dequeue_count_max }
        });
        let deduplication_window = window.map(Duration::from_secs);
        QueueSettings { metadata, dead_letter, deduplication_window }
    })
}

proptest! {
    #[test]
    fn records_survive_and_noise_does_not_panic(
        id: u64, settings in settings(), policies in proptest::collection::vec(any::<u8>(), 0..9),
        noise in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let created_at = Ticks::new(id % Ticks::MAX.get()).expect("in range");
        let record =
            QueueRecord { id: QueueId(id), version: 3, created_at, settings, policies: policies.into() };

        prop_assert_eq!(QueueRecord::decode(&record.encode()).ok(), Some(record));
        let _ = QueueRecord::decode(&[&[VERSION], &noise[..]].concat().into());
    }
}

#[test]
fn settings_are_the_same_whatever_the_case_and_order_of_names() {
    let of = |pairs: &[(&str, &str)]| QueueSettings {
        metadata: pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        ..Default::default()
    };

    assert!(of(&[("A", "1"), ("b", "2")]).fits(&of(&[("B", "2"), ("a", "1")])));
    assert!(!of(&[("a", "1")]).fits(&of(&[("a", "2")])));
    assert!(!of(&[("a", "x")]).fits(&of(&[("a", "X")])));
    assert!(!of(&[("a", "1")]).fits(&of(&[])));
    assert!(!of(&[]).fits(&of(&[("a", "1")])));
}

#[test]
fn a_window_and_a_dead_letter_policy_are_compared_only_if_requested() {
    let of = |window: Option<u64>, dequeue_count_max: Option<u32>| {
        let queue = QueueName::parse("dead".to_owned(), "", &mut Violations::default());
        let queue = queue.expect("a name");
        let letters = |dequeue_count_max| DeadLetter { queue, dequeue_count_max };
        QueueSettings {
            dead_letter: dequeue_count_max.map(letters),
            deduplication_window: window.map(Duration::from_secs),
            ..Default::default()
        }
    };
    let full = of(Some(1), Some(5));

    for same in [of(None, None), of(Some(1), None), of(None, Some(5)), full.clone()] {
        assert!(full.fits(&same), "{same:?}");
    }
    for other in [of(Some(2), None), of(None, Some(6)), of(Some(1), Some(6))] {
        assert!(!full.fits(&other), "{other:?}");
    }
    assert!(!of(None, None).fits(&of(Some(1), None)));
    assert!(!of(None, None).fits(&of(None, Some(5))));
}
