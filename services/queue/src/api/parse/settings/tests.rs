//! Requests on queues and their settings at the bounds of every rule.

use prost_types::FieldMask;

use super::*;

const DAY: i64 = 24 * 3600;

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

fn queue(name: &str) -> proto::Queue {
    proto::Queue { name: name.to_owned(), ..Default::default() }
}

fn policy(queue: &str, max_dequeue_count: u32) -> Option<proto::DeadLetterPolicy> {
    Some(proto::DeadLetterPolicy { queue: queue.to_owned(), max_dequeue_count })
}

fn update(queue: proto::Queue, paths: &[&str]) -> Result<(QueueName, SettingsChange), Fault> {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    let update_mask = Some(FieldMask { paths });
    queue_update(proto::UpdateQueueRequest { queue: Some(queue), update_mask })
}

/// The fields that an error names, with the reason of each.
fn named(fault: &Fault) -> Vec<(&str, Reason)> {
    fault.violations.iter().map(|it| (it.field.as_str(), it.reason)).collect()
}

#[test]
fn a_queue_needs_no_more_than_a_name() {
    let (name, settings) = new_queue(Some(queue("orders"))).expect("a queue");
    assert_eq!((name.as_str(), settings), ("orders", QueueSettings::default()));

    let absent = new_queue(None).expect_err("required");
    assert_eq!(named(&absent), [("queue", Reason::PropertiesNeedValue)]);
    for name in ["", "ab", "Orders", "-orders", "orders-", "a--b", "a_b", &"a".repeat(64)] {
        let fault = new_queue(Some(queue(name))).expect_err(name);
        assert!(named(&fault).iter().all(|(field, _)| *field == "queue.name"), "{name}: {fault:?}");
    }
}

#[test]
fn a_deduplication_window_is_one_second_to_a_week() {
    let of = |window| {
        let queue = proto::Queue { deduplication_window: window, ..queue("orders") };
        new_queue(Some(queue)).map(|(_, settings)| settings.deduplication_window)
    };
    assert_eq!(of(None).expect("none"), None);
    assert_eq!(of(seconds(1)).expect("the least"), Some(Duration::from_secs(1)));
    assert_eq!(of(seconds(7 * DAY)).expect("the most"), Some(Duration::from_secs(604_800)));
    for window in [seconds(0), seconds(-1), seconds(7 * DAY + 1)] {
        let fault = of(window).expect_err("rejected");
        assert_eq!(named(&fault), [("queue.deduplication_window", Reason::OutOfRangeInput)]);
    }
}

#[test]
fn dead_letters_go_to_another_queue_after_1_to_1000_deliveries() {
    let of = |dead_letter| {
        new_queue(Some(proto::Queue { dead_letter, ..queue("orders") }))
            .map(|(_, settings)| settings.dead_letter.map(|policy| policy.dequeue_count_max))
    };
    assert_eq!(of(policy("dead", 1)).expect("the least"), Some(1));
    assert_eq!(of(policy("dead", 1000)).expect("the most"), Some(1000));

    for count in [0, 1001] {
        let fault = of(policy("dead", count)).expect_err("rejected");
        let expected = [("queue.dead_letter.max_dequeue_count", Reason::OutOfRangeInput)];
        assert_eq!(named(&fault), expected);
        assert!(fault.message.contains(&format!("value=`{count}`")), "{}", fault.message);
    }
    for name in ["orders", "Dead", ""] {
        let fault = of(policy(name, 5)).expect_err(name);
        assert_eq!(named(&fault)[0].0, "queue.dead_letter.queue", "{name}");
    }
}

#[test]
fn every_violation_of_a_queue_is_reported() {
    let metadata = [("1x".to_owned(), "v".to_owned())].into();
    let broken = proto::Queue {
        name: "Orders".to_owned(),
        metadata,
        dead_letter: policy("Dead", 0),
        deduplication_window: seconds(0),
        ..Default::default()
    };
    let fault = new_queue(Some(broken)).expect_err("rejected");
    let fields: Vec<&str> = named(&fault).into_iter().map(|(field, _)| field).collect();
    let expected = [
        "queue.name",
        "queue.metadata",
        "queue.dead_letter.queue",
        "queue.dead_letter.max_dequeue_count",
        "queue.deduplication_window",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn an_update_changes_what_its_mask_names() {
    let full = proto::Queue {
        metadata: [("k".to_owned(), "new".to_owned())].into(),
        deduplication_window: seconds(60),
        ..queue("orders")
    };
    let before = QueueSettings {
        metadata: vec![("k".to_owned(), "old".to_owned())],
        dead_letter: Some(DeadLetter {
            queue: QueueName::parse("dead".to_owned(), "q", &mut Violations::default())
                .expect("a name"),
            dequeue_count_max: 3,
        }),
        deduplication_window: Some(Duration::from_secs(5)),
    };
    let after = |paths: &[&str]| {
        let mut settings = before.clone();
        update(full.clone(), paths).expect("an update").1.apply(&mut settings);
        settings
    };

    let metadata = vec![("k".to_owned(), "new".to_owned())];
    assert_eq!(after(&["metadata"]), QueueSettings { metadata, ..before.clone() });
    let deduplication_window = Some(Duration::from_secs(60));
    let expected = QueueSettings { deduplication_window, ..before.clone() };
    assert_eq!(after(&["deduplication_window"]), expected);
    let expected = QueueSettings { dead_letter: None, ..before.clone() };
    assert_eq!(after(&["dead_letter"]), expected, "an absent one that is named is removed");
    let all = after(&["metadata", "dead_letter", "deduplication_window"]);
    assert_eq!(all, new_queue(Some(full.clone())).expect("a queue").1);
}

#[test]
fn an_update_needs_a_mask_of_known_settings() {
    let none = update(queue("orders"), &[]).expect_err("no mask");
    assert_eq!(named(&none), [("update_mask", Reason::PropertiesNeedValue)]);
    let unknown = update(queue("orders"), &["metadata", "name", "*"]).expect_err("unknown");
    assert_eq!(named(&unknown), [("update_mask", Reason::InvalidInput); 2]);
    assert!(unknown.message.contains("value=`name`"), "{}", unknown.message);
    let absent = queue_update(proto::UpdateQueueRequest::default()).expect_err("nothing");
    let fields: Vec<&str> = named(&absent).into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["update_mask", "queue"]);
}

#[test]
fn a_page_of_queues_has_at_most_5000() {
    let of = |page_size, prefix: &str| {
        list(&proto::ListQueuesRequest {
            page_size,
            prefix: prefix.to_owned(),
            ..Default::default()
        })
    };
    assert_eq!(of(None, "").expect("a page"), 5000);
    assert_eq!(of(Some(0), "").expect("a page"), 0);
    assert_eq!(of(Some(7), &"p".repeat(63)).expect("a page"), 7);
    assert_eq!(of(Some(i32::MAX), "").expect("capped"), 5000);
    let fault = of(Some(-1), &"p".repeat(64)).expect_err("both are rejected");
    let expected = [("prefix", Reason::OutOfRangeInput), ("page_size", Reason::InvalidInput)];
    assert_eq!(named(&fault), expected);
}
