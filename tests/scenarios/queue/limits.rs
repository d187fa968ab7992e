//! Every limit of the queue service, at its bound and past it.

use prost_types::Duration;
use tonic::Code;
use trestle_proto::queue::v1::{self as proto, DeadLetterPolicy, ReceiveMessagesRequest};
use trestle_tests::{
    CallError, Queue, World, data, delayed, queue_scenario, receipt_of_sent, seconds, text, unique,
    with_ttl,
};

queue_scenario!(
    queue_names_are_validated,
    metadata_is_validated,
    settings_are_limited,
    message_is_limited_to_64_kib,
    ttl_and_delay_are_limited,
    receive_parameters_are_limited,
    update_parameters_are_limited,
    batches_are_limited,
    ids_are_limited_in_length,
    redrive_is_validated,
);

const RANGE: (Code, &str) = (Code::InvalidArgument, "OUT_OF_RANGE_QUERY_PARAMETER_VALUE");
const TOO_LARGE: (Code, &str) = (Code::InvalidArgument, "REQUEST_BODY_TOO_LARGE");
const INVALID: (Code, &str) = (Code::InvalidArgument, "INVALID_INPUT");
const WEEK: i64 = 7 * 24 * 3600;

async fn create(world: &World, queue: proto::Queue) -> Result<(), CallError> {
    let request = proto::CreateQueueRequest { queue: Some(queue) };
    Ok(world.queues().create_queue(request).await.map(drop)?)
}

/// Replaces every setting of a queue.
async fn update(world: &World, queue: proto::Queue) -> Result<(), CallError> {
    let paths = ["metadata", "dead_letter", "deduplication_window"].map(str::to_owned).into();
    let update_mask = Some(prost_types::FieldMask { paths });
    let request = proto::UpdateQueueRequest { queue: Some(queue), update_mask };
    Ok(world.queues().update_queue(request).await.map(drop)?)
}

fn named(name: &str) -> proto::Queue {
    proto::Queue { name: name.to_owned(), ..Default::default() }
}

async fn queue_names_are_validated(world: &World) {
    for name in ["abc", "a-b-c", "0-9", &"a".repeat(63)] {
        create(world, named(name)).await.unwrap();
    }
    let cases = [
        ("", "PROPERTIES_NEED_VALUE"),
        ("ab", "OUT_OF_RANGE_INPUT"),
        (&"a".repeat(64), "OUT_OF_RANGE_INPUT"),
        ("Abc", "INVALID_RESOURCE_NAME"),
        ("a--b", "INVALID_RESOURCE_NAME"),
        ("-abc", "INVALID_RESOURCE_NAME"),
        ("abc-", "INVALID_RESOURCE_NAME"),
        ("a_b", "INVALID_RESOURCE_NAME"),
        ("caf\u{e9}", "INVALID_RESOURCE_NAME"),
    ];
    for (name, reason) in cases {
        let error = create(world, named(name)).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, reason), "{name}");
        assert_eq!(error.fields, ["queue.name"]);
        let error = world.existing_queue(name).get().await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, reason), "{name}");
    }
    let request = proto::CreateQueueRequest { queue: None };
    let error = CallError::from(world.queues().create_queue(request).await.unwrap_err());
    assert_eq!(error.kind(), (Code::InvalidArgument, "PROPERTIES_NEED_VALUE"));
}

async fn metadata_is_validated(world: &World) {
    let with = |pairs: &[(&str, &str)]| proto::Queue {
        metadata: pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        ..named("jobs")
    };
    let full = "x".repeat(8192 - 1);
    create(world, with(&[("a", &full)])).await.unwrap();

    let past = "x".repeat(8192);
    let cases = [
        (with(&[("a", &past)]), "METADATA_TOO_LARGE"),
        (with(&[("", "x")]), "EMPTY_METADATA_KEY"),
        (with(&[("1a", "x")]), "INVALID_METADATA"),
        (with(&[("a-b", "x")]), "INVALID_METADATA"),
        (with(&[("a", "line\nbreak")]), "INVALID_METADATA"),
        (with(&[("a", "caf\u{e9}")]), "INVALID_METADATA"),
        (with(&[("same", "1"), ("SAME", "2")]), "INVALID_METADATA"),
    ];
    for (queue, reason) in cases {
        for error in [create(world, queue.clone()).await, update(world, queue).await] {
            let error = error.unwrap_err();
            assert_eq!(error.kind(), (Code::InvalidArgument, reason));
            assert_eq!(error.fields, ["queue.metadata"]);
        }
    }
    update(world, with(&[("b", &full)])).await.unwrap();
}

async fn settings_are_limited(world: &World) {
    let letters = |queue: &str, max_dequeue_count| proto::Queue {
        dead_letter: Some(DeadLetterPolicy { queue: queue.to_owned(), max_dequeue_count }),
        ..named("jobs")
    };
    let window =
        |window: Duration| proto::Queue { deduplication_window: Some(window), ..named("jobs") };
    for fine in
        [letters("dead", 1), letters("dead", 1000), window(seconds(1)), window(seconds(WEEK))]
    {
        create(world, fine).await.unwrap();
        world.existing_queue("jobs").drop_queue().await.unwrap();
    }
    let queue = world.queue("jobs").await;
    let cases = [
        (letters("dead", 0), "OUT_OF_RANGE_INPUT"),
        (letters("dead", 1001), "OUT_OF_RANGE_INPUT"),
        (letters("dead", u32::MAX), "OUT_OF_RANGE_INPUT"),
        (letters("", 5), "PROPERTIES_NEED_VALUE"),
        (letters("jobs", 5), "INVALID_INPUT"),
        (window(seconds(0)), "OUT_OF_RANGE_INPUT"),
        (window(seconds(WEEK + 1)), "OUT_OF_RANGE_INPUT"),
        (window(seconds(-1)), "OUT_OF_RANGE_INPUT"),
        (window(Duration { seconds: 0, nanos: 999_999_999 }), "OUT_OF_RANGE_INPUT"),
        (window(Duration { seconds: WEEK, nanos: 1 }), "OUT_OF_RANGE_INPUT"),
    ];
    for (settings, reason) in cases {
        let error = create(world, settings.clone()).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, reason), "{}", error.message);
        let error = update(world, settings).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, reason), "{}", error.message);
    }
    let (kept, _) = queue.get().await.unwrap();
    assert_eq!(kept, proto::Queue { create_time: kept.create_time, ..named("jobs") });
}

async fn message_is_limited_to_64_kib(world: &World) {
    let queue = world.queue("jobs").await;
    let whole = "\u{e9}".repeat(32_768);

    let sent = queue.send(text(&whole)).await.unwrap();
    queue.send(data(vec![7; 65_536])).await.unwrap();
    let error = queue.send(text(&format!("{whole}x"))).await.unwrap_err();
    assert_eq!(error.kind(), TOO_LARGE);
    assert_eq!(queue.send(data(vec![7; 65_537])).await.unwrap_err().kind(), TOO_LARGE);

    let receipt = queue.update(receipt_of_sent(&sent), seconds(0), Some(&whole)).await.unwrap();
    let more = format!("{whole}x");
    let error = queue.update(receipt.clone(), seconds(0), Some(&more)).await.unwrap_err();
    assert_eq!((error.kind(), &error.fields[..]), (TOO_LARGE, &["body".to_owned()][..]));
    let request = proto::UpdateMessageRequest {
        queue: queue.name(),
        receipt: Some(receipt),
        visibility_timeout: Some(seconds(0)),
        body: Some(proto::update_message_request::Body::Data(vec![7; 65_537].into())),
    };
    let error = CallError::from(queue.client().update_message(request).await.unwrap_err());
    assert_eq!(error.kind(), TOO_LARGE);
    let received = queue.receive(2, seconds(30)).await.unwrap();
    let lengths: Vec<_> = received
        .iter()
        .map(|d| match d.message.as_ref().unwrap().body.as_ref().unwrap() {
            proto::message::Body::Text(text) => text.len(),
            proto::message::Body::Data(data) => data.len(),
        })
        .collect();
    assert_eq!(lengths, [65_536, 65_536]);
}

async fn ttl_and_delay_are_limited(world: &World) {
    let queue = world.queue("jobs").await;
    let long = with_ttl(text("a"), seconds(WEEK + 1));
    let fine = [
        with_ttl(text("a"), seconds(1)),
        with_ttl(text("a"), seconds(100 * 365 * 24 * 3600)),
        with_ttl(text("a"), seconds(i64::MAX)),
        delayed(text("a"), seconds(0)),
        delayed(long.clone(), seconds(WEEK)),
        delayed(with_ttl(text("a"), seconds(10)), seconds(9)),
    ];
    for message in fine {
        queue.send(message).await.unwrap();
    }
    let half = Duration { seconds: 0, nanos: 500_000_000 };
    let odd = Duration { seconds: 5, nanos: -5 };
    let out = [
        with_ttl(text("a"), seconds(0)),
        with_ttl(text("a"), half),
        with_ttl(text("a"), seconds(-1)),
        delayed(text("a"), seconds(-1)),
        delayed(long, seconds(WEEK + 1)),
        delayed(text("a"), odd),
        delayed(text("a"), Duration { seconds: i64::MAX, nanos: i32::MAX }),
    ];
    for message in out {
        assert_eq!(queue.send(message.clone()).await.unwrap_err().kind(), RANGE, "{message:?}");
    }
    // The TTL must exceed the delay, also the default TTL.
    for message in [
        delayed(with_ttl(text("a"), seconds(10)), seconds(10)),
        delayed(with_ttl(text("a"), seconds(10)), seconds(11)),
        delayed(text("a"), seconds(WEEK)),
    ] {
        let error = queue.send(message).await.unwrap_err();
        let expected = (Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE");
        assert_eq!(error.kind(), expected);
        assert_eq!(error.fields, ["messages[0].visibility_delay"]);
    }
    let both = queue.send(delayed(with_ttl(text("a"), seconds(10)), seconds(11))).await;
    let rule = "must be less than time_to_live: visibility_delay=`11s`, time_to_live=`10s`";
    assert!(both.unwrap_err().message.ends_with(rule));
}

async fn receive_parameters_are_limited(world: &World) {
    let queue = world.queue("jobs").await;
    for (max, timeout) in [(1, 1), (32, WEEK)] {
        queue.receive(max, seconds(timeout)).await.unwrap();
        queue.peek(max).await.unwrap();
    }
    for (max, timeout, field) in [
        (0, 30, "max_messages"),
        (33, 30, "max_messages"),
        (1, 0, "visibility_timeout"),
        (1, WEEK + 1, "visibility_timeout"),
        (1, -1, "visibility_timeout"),
    ] {
        let error = queue.receive(max, seconds(timeout)).await.unwrap_err();
        assert_eq!(error.kind(), RANGE);
        assert_eq!(error.fields, [field]);
    }
    for max in [0, 33, u32::MAX] {
        assert_eq!(queue.peek(max).await.unwrap_err().kind(), RANGE);
    }
    for wait in [-1, 21, i64::MAX] {
        let error = queue.wait(seconds(wait)).await.unwrap_err();
        assert_eq!((error.kind(), &error.fields[..]), (RANGE, &["wait".to_owned()][..]));
    }
    let half = Duration { seconds: 20, nanos: 500_000_000 };
    for (wait, text) in [(seconds(30), "30s"), (half, "20.5s")] {
        let error = queue.wait(wait).await.unwrap_err();
        assert_eq!(error.message, format!("wait: must be 0 to 20 seconds: value=`{text}`"));
    }
    queue.send(text("a")).await.unwrap();
    let wait = Some(seconds(20));
    queue.receive_as(ReceiveMessagesRequest { wait, ..Default::default() }).await.unwrap();
}

async fn update_parameters_are_limited(world: &World) {
    let queue = world.queue("jobs").await;
    let receipt = receipt_of_sent(&queue.send(text("a")).await.unwrap());

    for timeout in [-1, WEEK + 1] {
        let error = queue.update(receipt.clone(), seconds(timeout), None).await.unwrap_err();
        assert_eq!(error.kind(), RANGE);
    }
    let request = proto::UpdateMessageRequest {
        queue: queue.name(),
        receipt: Some(receipt.clone()),
        ..Default::default()
    };
    let error = CallError::from(queue.client().update_message(request).await.unwrap_err());
    let expected = (Code::InvalidArgument, "MISSING_REQUIRED_QUERY_PARAMETER");
    assert_eq!(
        (error.kind(), &error.fields[..]),
        (expected, &["visibility_timeout".to_owned()][..])
    );
    let receipt = queue.update(receipt, seconds(WEEK), None).await.unwrap();
    queue.update(receipt, seconds(0), None).await.unwrap();
}

async fn batches_are_limited(world: &World) {
    let queue = world.queue("jobs").await;
    let count = |count: usize| (0..count).map(|_| text("a")).collect::<Vec<_>>();

    let sent = queue.send_all(count(100)).await.unwrap();
    let receipts: Vec<_> = sent.iter().map(|s| receipt_of_sent(s.as_ref().unwrap())).collect();
    for messages in [count(0), count(101), count(10_000)] {
        let error = queue.send_all(messages).await.unwrap_err();
        assert_eq!((error.kind(), &error.fields[..]), (INVALID, &["messages".to_owned()][..]));
    }
    let error = queue.send_all(vec![Default::default(); 1_000_000]).await.unwrap_err();
    assert_eq!(error.kind(), INVALID);
    assert!(error.message.contains("at most 300000 elements"), "{}", error.message);
    let error = queue.delete_all(vec![Default::default(); 1_000_000]).await.unwrap_err();
    assert_eq!(error.kind(), INVALID);
    let big = |count: usize| (0..count).map(|_| data(vec![7; 65_536])).collect::<Vec<_>>();
    queue.send_all(big(64)).await.unwrap();
    let mut past = big(64);
    past.push(text("x"));
    assert_eq!(queue.send_all(past).await.unwrap_err().kind(), TOO_LARGE);

    let mut too_many = receipts.clone();
    too_many.push(receipts[0].clone());
    for receipts in [Vec::new(), too_many] {
        let error = queue.delete_all(receipts).await.unwrap_err();
        assert_eq!((error.kind(), &error.fields[..]), (INVALID, &["receipts".to_owned()][..]));
    }
    assert!(queue.delete_all(receipts).await.unwrap().iter().all(Result::is_ok));
    assert_eq!(queue.count().await, 64);
}

async fn ids_are_limited_in_length(world: &World) {
    let settings = proto::Queue { deduplication_window: Some(seconds(60)), ..named("jobs") };
    let queue: Queue = world.queue_with(settings).await;

    queue.send(unique(text("a"), &"x".repeat(128))).await.unwrap();
    let error = queue.send(unique(text("a"), &"x".repeat(129))).await.unwrap_err();
    assert_eq!(error.kind(), INVALID);
    queue.send_as(&"x".repeat(64), vec![text("b")]).await.unwrap();
    let error = queue.send_as(&"x".repeat(65), vec![text("b")]).await.unwrap_err();
    assert_eq!((error.kind(), &error.fields[..]), (INVALID, &["request_id".to_owned()][..]));
}

async fn redrive_is_validated(world: &World) {
    let queue = world.queue("jobs").await;
    world.queue("other").await;

    queue.redrive("other", 1).await.unwrap();
    queue.redrive("other", 1000).await.unwrap();
    for max in [0, 1001] {
        assert_eq!(queue.redrive("other", max).await.unwrap_err().kind(), RANGE);
    }
    assert_eq!(queue.redrive("jobs", 1).await.unwrap_err().kind(), INVALID);
    let error = queue.redrive("No", 1).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_RESOURCE_NAME"));
}
