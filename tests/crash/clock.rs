//! A wall clock that steps, while the server runs and while it is down: no message is lost, delivered twice, expired
//! early, or later than it would have been.

use std::{fs, path::Path, time::Duration};

use trestle_proto::log::v1::LogStream as StreamMessage;
use trestle_proto::queue::v1::{CreateQueueRequest, OutgoingMessage, Queue as QueueMessage};
use trestle_tests::{
    LogStream, Queue, Server, log_record, log_texts, metric, receipt_of, seconds, text, texts,
    with_ttl,
};

use crate::{faults::library, start};

/// Longer than the interval at which the server stores its time.
const STORED_WITHIN: Duration = Duration::from_secs(8);

async fn create(server: &Server, name: &str) -> Queue {
    let queue = Queue::over(&server.channel(), name);
    let settings = QueueMessage { name: name.to_owned(), ..Default::default() };
    let request = CreateQueueRequest { queue: Some(settings) };
    queue.client().create_queue(request).await.unwrap();
    queue
}

fn grouped(body: &str) -> OutgoingMessage {
    OutgoingMessage { ordering_group: "g".to_owned(), ..text(body) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_set_back_over_a_restart_delays_and_repeats_nothing() {
    let Some(library) = library() else { return };
    let (data, triggers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let triggers = triggers.path().to_str().unwrap().to_owned();
    let start = |step: &str| {
        let settings =
            [("LD_PRELOAD", library), ("KVFAULT_DIR", &*triggers), ("KVFAULT_CLOCK_STEP_S", step)];
        start(&data, &settings)
    };
    let server = start("0");
    let (jobs, idle) = (create(&server, "jobs").await, create(&server, "idle").await);
    idle.send(text("q")).await.unwrap();
    jobs.send_all(["0", "1", "2", "3", "4", "5"].map(text).to_vec()).await.unwrap();
    jobs.send_all(["g1", "g2", "g3"].map(grouped).to_vec()).await.unwrap();
    let held = jobs.receive(3, seconds(3600)).await.unwrap();
    assert_eq!(texts(&held), ["0", "1", "2"]);
    jobs.delete(receipt_of(&held[0])).await.unwrap();
    tokio::time::sleep(STORED_WITHIN).await;
    server.kill();

    let server = start("-7200");
    let (jobs, idle) = (create(&server, "jobs").await, create(&server, "idle").await);
    assert_eq!(texts(&idle.receive(32, seconds(3600)).await.unwrap()), ["q"], "at once");
    let received = jobs.receive(32, seconds(1)).await.unwrap();
    assert_eq!(texts(&received), ["3", "4", "5", "g1"], "nothing deleted, held or behind another");
    jobs.delete(receipt_of(&held[1])).await.expect("receipts of before still count");
    jobs.send(text("new")).await.unwrap();
    assert_eq!(texts(&jobs.receive(32, seconds(3600)).await.unwrap()), ["new"], "at once");
    tokio::time::sleep(STORED_WITHIN).await;
    server.kill();

    let server = start("-90000");
    let jobs = create(&server, "jobs").await;
    let received = jobs.receive(32, seconds(600)).await.unwrap();
    assert_eq!(texts(&received), ["3", "4", "5", "g1"], "lapsed, and in their order");
    assert!(received.iter().all(|d| d.message.as_ref().unwrap().dequeue_count == 2));
    let receipts = received.iter().map(receipt_of).collect();
    assert!(jobs.delete_all(receipts).await.unwrap().iter().all(Result::is_ok));
    assert_eq!(
        texts(&jobs.receive(32, seconds(600)).await.unwrap()),
        ["g2"],
        "the group continues"
    );
    assert_eq!(jobs.count().await, 4, "held: 2, new, g2; behind: g3");
    assert_eq!(server.terminate(), Some(0));
}

/// How far service time is ahead of the wall clock, in seconds.
async fn offset(server: &Server) -> f64 {
    metric(&server.page("/metrics").await, "trestle_clock_offset").expect("the gauge is exported")
}

/// Sets the wall clock to so many seconds from that of the machine.
fn step(triggers: &Path, seconds: i64) {
    // Atomically: the server reads it at any time.
    let draft = triggers.join("draft");
    fs::write(&draft, seconds.to_string()).unwrap();
    fs::rename(draft, triggers.join("clock-step")).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stepping_clock_expires_no_message_early_and_delivers_none_twice() {
    let Some(library) = library() else { return };
    let (data, triggers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log = triggers.path().join("log");
    let directory = triggers.path().to_str().unwrap();
    let settings = [("LD_PRELOAD", library), ("KVFAULT_DIR", directory)];
    let arguments = ["--data-dir", data.path().to_str().unwrap()];
    let server = Server::start_logging(&log, &arguments, &settings);
    let (kept, invisible) = (create(&server, "kept").await, create(&server, "invisible").await);
    let bodies: Vec<_> = (0..20).map(|number| text(&number.to_string())).collect();
    let expiring = bodies.iter().cloned().map(|message| with_ttl(message, seconds(1800)));
    kept.send_all(expiring.collect()).await.unwrap();
    invisible.send_all(bodies).await.unwrap();
    assert_eq!(invisible.receive(32, seconds(1800)).await.unwrap().len(), 20);

    for hour in [-3600, 3600] {
        step(triggers.path(), hour);
        let ended = tokio::time::Instant::now() + Duration::from_secs(2);
        while tokio::time::Instant::now() < ended {
            kept.peek(1).await.unwrap();
            assert_eq!(invisible.receive(32, seconds(1800)).await.unwrap(), [], "{hour}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!((offset(&server).await + hour as f64).abs() < 10.0, "{}", offset(&server).await);
        step(triggers.path(), 0);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(invisible.receive(32, seconds(1800)).await.unwrap(), [], "{hour}");
        assert!(offset(&server).await.abs() < 1.0, "{}", offset(&server).await);
    }
    // Longer than the sweeper takes to remove what has expired.
    tokio::time::sleep(STORED_WITHIN).await;
    assert_eq!(kept.receive(32, seconds(30)).await.unwrap().len(), 20, "none expired early");
    let log = fs::read_to_string(log).unwrap();
    assert_eq!(log.matches("service time is away from the wall clock").count(), 2, "{log}");
    assert_eq!(log.matches("service time is near the wall clock again").count(), 2, "{log}");
    assert_eq!(server.terminate(), Some(0));
}

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// Seconds of a day.
const DAY: i64 = 86_400;

/// The time of the machine, in nanoseconds since 1970.
fn machine_nanos() -> u64 {
    let (seconds, nanos) =
        trestle_model::time::Clock::now(&trestle_model::time::SystemClock).to_unix();
    u64::try_from(seconds).unwrap() * SECOND + u64::try_from(nanos).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stepping_clock_removes_no_log_record_and_refuses_none_with_the_right_time() {
    let Some(library) = library() else { return };
    let (data, triggers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let directory = triggers.path().to_str().unwrap();
    let server = start(&data, &[("LD_PRELOAD", library), ("KVFAULT_DIR", directory)]);
    let stream = LogStream::over(&server.channel(), "web");
    let settings = StreamMessage {
        name: stream.name(),
        retention: Some(seconds(7 * DAY)),
        ..StreamMessage::default()
    };
    stream.create(settings).await.unwrap();
    let append = async |body: &str| stream.append(&[log_record(machine_nanos(), body)]).await;
    append("right").await.unwrap();
    stream.flush().await.unwrap();

    for (days, body) in [(8, "ahead"), (-3, "behind")] {
        step(triggers.path(), days * DAY);
        // Longer than the sweeper waits between two rounds.
        tokio::time::sleep(STORED_WITHIN).await;
        append(body).await.unwrap();
    }
    step(triggers.path(), 0);

    let read = stream.read().await.unwrap();
    assert_eq!(log_texts(&read.records), ["right", "ahead", "behind"]);
    assert_eq!(server.terminate(), Some(0));
}
