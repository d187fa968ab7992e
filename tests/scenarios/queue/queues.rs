//! Queues themselves: their names, settings and policies.

use tonic::Code;
use trestle_proto::queue::v1::{self as proto, DeadLetterPolicy};
use trestle_proto::service::v1::{AccessPolicy, Durability};
use trestle_tests::{CallError, World, queue_scenario, seconds, text, texts};

queue_scenario!(
    recreating_a_queue_with_equal_settings_changes_nothing,
    recreating_a_queue_with_other_settings_fails,
    recreating_a_queue_compares_the_settings_that_are_set,
    queue_settings_are_read_and_updated,
    update_mask_selects_fields,
    delete_removes_messages_and_frees_the_name,
    operations_on_a_missing_queue_are_not_found,
    queues_are_listed_by_name_in_pages,
    a_listing_can_be_limited_to_a_prefix,
    queue_access_policies_round_trip,
    service_stats_report_durability_and_engine,
);

const NOT_FOUND: (Code, &str) = (Code::NotFound, "QUEUE_NOT_FOUND");

fn with_metadata(name: &str, metadata: &[(&str, &str)]) -> proto::Queue {
    let metadata = metadata.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    proto::Queue { name: name.to_owned(), metadata, ..Default::default() }
}

async fn create(world: &World, queue: proto::Queue) -> Result<bool, CallError> {
    let request = proto::CreateQueueRequest { queue: Some(queue) };
    Ok(world.queues().create_queue(request).await?.into_inner().created)
}

async fn list(
    world: &World,
    prefix: &str,
    page_size: Option<i32>,
    page_token: &str,
) -> Result<(Vec<String>, String), CallError> {
    let (prefix, page_token) = (prefix.to_owned(), page_token.to_owned());
    let request = proto::ListQueuesRequest { prefix, page_size, page_token };
    let page = world.queues().list_queues(request).await?.into_inner();
    Ok((page.queues.into_iter().map(|queue| queue.name).collect(), page.next_page_token))
}

async fn recreating_a_queue_with_equal_settings_changes_nothing(world: &World) {
    assert!(create(world, with_metadata("jobs", &[("Owner", "me"), ("x", "")])).await.unwrap());
    let queue = world.existing_queue("jobs");
    queue.send(text("a")).await.unwrap();

    let same = with_metadata("jobs", &[("X", ""), ("owner", "me")]);
    assert!(!create(world, same).await.unwrap());

    let (found, stats) = queue.get().await.unwrap();
    assert_eq!(found.metadata.get("Owner").map(String::as_str), Some("me"), "as first created");
    assert_eq!(stats.approximate_message_count, 1);
}

async fn recreating_a_queue_with_other_settings_fails(world: &World) {
    create(world, with_metadata("jobs", &[("owner", "me")])).await.unwrap();
    let window = Some(seconds(60));
    let other =
        proto::Queue { deduplication_window: window, ..with_metadata("jobs", &[("owner", "me")]) };

    for other in [with_metadata("jobs", &[]), with_metadata("jobs", &[("owner", "Me")]), other] {
        let error = create(world, other).await.unwrap_err();
        assert_eq!(error.kind(), (Code::AlreadyExists, "QUEUE_ALREADY_EXISTS"));
    }
    let (found, _) = world.existing_queue("jobs").get().await.unwrap();
    assert_eq!(found.metadata.len(), 1);
}

async fn recreating_a_queue_compares_the_settings_that_are_set(world: &World) {
    let letters = |max_dequeue_count| {
        let queue = "failed".to_owned();
        Some(DeadLetterPolicy { queue, max_dequeue_count })
    };
    let (window, plain) = (Some(seconds(60)), || with_metadata("jobs", &[("owner", "me")]));
    let full = || proto::Queue { dead_letter: letters(5), deduplication_window: window, ..plain() };
    create(world, full()).await.unwrap();

    let letters_alone = proto::Queue { dead_letter: letters(5), ..plain() };
    let window_alone = proto::Queue { deduplication_window: window, ..plain() };
    for same in [plain(), letters_alone, window_alone, full()] {
        let request = proto::CreateQueueRequest { queue: Some(same) };
        let answer = world.queues().create_queue(request).await.unwrap().into_inner();
        assert!(!answer.created);
        let returned = proto::Queue { create_time: None, ..answer.queue.unwrap() };
        assert_eq!(returned, full(), "the queue as it is");
    }
    let other_window = proto::Queue { deduplication_window: Some(seconds(61)), ..plain() };
    let other_letters = proto::Queue { dead_letter: letters(6), ..plain() };
    let other_metadata = proto::Queue { metadata: [].into(), ..full() };
    for other in [other_window, other_letters, other_metadata] {
        let error = create(world, other).await.unwrap_err();
        assert_eq!(error.kind(), (Code::AlreadyExists, "QUEUE_ALREADY_EXISTS"));
    }
}

async fn queue_settings_are_read_and_updated(world: &World) {
    let policy = DeadLetterPolicy { queue: "failed".to_owned(), max_dequeue_count: 5 };
    let settings = proto::Queue {
        dead_letter: Some(policy),
        deduplication_window: Some(seconds(300)),
        ..with_metadata("jobs", &[("a", "1"), ("b", "2")])
    };
    let queue = world.queue_with(settings.clone()).await;

    let (found, _) = queue.get().await.unwrap();
    assert!(found.create_time.is_some());
    assert_eq!(proto::Queue { create_time: None, ..found.clone() }, settings);

    let changed = with_metadata("jobs", &[("c", "3")]);
    let paths = ["metadata", "dead_letter", "deduplication_window"].map(str::to_owned);
    let request = proto::UpdateQueueRequest {
        queue: Some(changed.clone()),
        update_mask: Some(prost_types::FieldMask { paths: paths.into() }),
    };
    let updated = queue.client().update_queue(request).await.unwrap().into_inner().queue.unwrap();

    assert_eq!(updated, proto::Queue { create_time: found.create_time, ..changed });
    assert_eq!(queue.get().await.unwrap().0, updated);
}

async fn update_mask_selects_fields(world: &World) {
    let window = Some(seconds(60));
    let settings = with_metadata("jobs", &[("a", "1")]);
    let queue = world.queue_with(proto::Queue { deduplication_window: window, ..settings }).await;
    let update = async |paths: &[&str], queue: proto::Queue| {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        let update_mask = Some(prost_types::FieldMask { paths });
        let request = proto::UpdateQueueRequest { queue: Some(queue), update_mask };
        let response = world.queues().update_queue(request).await;
        response.map(tonic::Response::into_inner).map_err(CallError::from)
    };

    update(&["metadata"], with_metadata("jobs", &[])).await.unwrap();
    let (found, _) = queue.get().await.unwrap();
    assert_eq!((found.metadata.len(), found.deduplication_window), (0, window));

    let error = update(&["name"], with_metadata("jobs", &[])).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    let error = update(&[], with_metadata("jobs", &[])).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "PROPERTIES_NEED_VALUE"));
    let error = update(&["metadata"], with_metadata("nothing", &[])).await.unwrap_err();
    assert_eq!(error.kind(), NOT_FOUND);
}

async fn delete_removes_messages_and_frees_the_name(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send(text("old")).await.unwrap();

    queue.drop_queue().await.unwrap();
    assert_eq!(queue.send(text("late")).await.unwrap_err().kind(), NOT_FOUND);
    let again = world.queue("jobs").await;

    assert_eq!(again.count().await, 0);
    again.send(text("new")).await.unwrap();
    assert_eq!(texts(&again.receive(32, seconds(30)).await.unwrap()), ["new"]);
}

async fn operations_on_a_missing_queue_are_not_found(world: &World) {
    let queue = world.existing_queue("nothing");
    let receipt = proto::ReceiptRef {
        message_id: "x".to_owned(),
        pop_receipt: "AQ".to_owned() + &"A".repeat(26),
    };

    let errors = [
        queue.send(text("a")).await.unwrap_err(),
        queue.send_all(vec![text(&"x".repeat(70_000))]).await.unwrap_err(),
        queue.receive(1, seconds(30)).await.unwrap_err(),
        queue.wait(seconds(20)).await.unwrap_err(),
        queue.peek(1).await.unwrap_err(),
        queue.delete(receipt.clone()).await.unwrap_err(),
        queue.update(receipt, seconds(1), None).await.unwrap_err(),
        queue.clear().await.unwrap_err(),
        queue.redrive("", 1).await.unwrap_err(),
        queue.get().await.unwrap_err(),
        queue.drop_queue().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), NOT_FOUND);
        assert!(error.message.contains("nothing"), "{}", error.message);
    }
}

async fn queues_are_listed_by_name_in_pages(world: &World) {
    for name in ["b-c", "abc", "b0c", "b1c", "zzz"] {
        world.queue(name).await;
    }

    let (all, end) = list(world, "", None, "").await.unwrap();
    assert_eq!(
        (all, end),
        (
            vec!["abc", "b-c", "b0c", "b1c", "zzz"].into_iter().map(str::to_owned).collect(),
            String::new()
        )
    );

    let (mut listed, mut token) = (Vec::new(), String::new());
    loop {
        let (names, next) = list(world, "", Some(2), &token).await.unwrap();
        assert!(names.len() <= 2);
        listed.extend(names);
        if next.is_empty() {
            break;
        }
        token = next;
    }
    assert_eq!(listed, ["abc", "b-c", "b0c", "b1c", "zzz"]);
    assert_eq!(list(world, "", Some(0), "").await.unwrap().0, Vec::<String>::new());
    assert_eq!(list(world, "", Some(i32::MAX), "").await.unwrap().0.len(), 5, "acts as 5,000");

    for (prefix, token) in [("b", token.as_str()), ("", "damaged")] {
        let error = list(world, prefix, None, token).await.unwrap_err();
        let expected = (Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE");
        assert_eq!(error.kind(), expected);
        assert_eq!(error.fields, ["page_token"]);
    }
    let error = list(world, "", Some(-1), "").await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
}

async fn a_listing_can_be_limited_to_a_prefix(world: &World) {
    for name in ["abc", "abd", "ab-c", "acd"] {
        world.queue(name).await;
    }

    assert_eq!(list(world, "ab", None, "").await.unwrap().0, ["ab-c", "abc", "abd"]);
    assert_eq!(list(world, "abc", None, "").await.unwrap().0, ["abc"]);
    assert_eq!(list(world, "b", None, "").await.unwrap().0, Vec::<String>::new());
    let error = list(world, &"a".repeat(64), None, "").await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "OUT_OF_RANGE_INPUT"));
}

async fn queue_access_policies_round_trip(world: &World) {
    let queue = world.queue("jobs").await;
    let set = async |policies: Vec<AccessPolicy>| {
        let request = proto::SetQueueAccessPoliciesRequest { queue: queue.name(), policies };
        let response = queue.client().set_queue_access_policies(request).await;
        response.map(drop).map_err(CallError::from)
    };
    let get = async || {
        let request = proto::GetQueueAccessPoliciesRequest { queue: queue.name() };
        let response = queue.client().get_queue_access_policies(request).await;
        response.unwrap().into_inner().policies
    };
    let policy = |id: &str, permissions: Option<&str>| AccessPolicy {
        id: id.to_owned(),
        start_time: None,
        expiry_time: Some(prost_types::Timestamp { seconds: 2_000_000_000, nanos: 0 }),
        permissions: permissions.map(str::to_owned),
    };
    assert_eq!(get().await, []);

    let policies =
        vec![policy("one", Some("raup")), policy("two", None), policy("three", Some(""))];
    set(policies.clone()).await.unwrap();
    queue.clear().await.unwrap();
    assert_eq!(get().await, policies, "also after the messages were cleared");

    let six: Vec<_> = (0..6).map(|n| policy(&n.to_string(), None)).collect();
    let long = "x".repeat(65);
    let broken = [
        six,
        vec![policy("", None)],
        vec![policy(&long, None)],
        vec![policy("same", None), policy("same", None)],
        vec![policy("x", Some("par"))],
        vec![policy("x", Some("d"))],
    ];
    for policies in broken {
        let error = set(policies).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_ACCESS_POLICY"));
    }
    for odd in ["a\u{1}b", "\0", "\u{ffff}"] {
        let error = set(vec![policy(odd, None)]).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
        assert_eq!(error.fields, ["policies[0].id"]);
    }
    assert_eq!(get().await, policies, "nothing has changed");
    let longest = |n: usize| policy(&format!("{n}{}", "\u{e9}".repeat(63)), None);
    let five: Vec<_> = (0..5).map(longest).collect();
    set(five.clone()).await.unwrap();
    assert_eq!(get().await, five);
    set(Vec::new()).await.unwrap();
    assert_eq!(get().await, []);
}

async fn service_stats_report_durability_and_engine(world: &World) {
    let stats = world.queues().get_service_stats(proto::GetServiceStatsRequest {}).await;

    let stats = stats.unwrap().into_inner();
    assert_eq!(stats.durability(), Durability::Always);
    assert_eq!(stats.engine, "fjall");
    assert!(stats.start_time.is_some() && stats.free_bytes.is_some());
}
