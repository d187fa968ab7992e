//! A clock that goes back while the server is down: no message is lost, doubled, or later than it would have been.

use std::time::Duration;

use trestle_proto::queue::v1::{CreateQueueRequest, OutgoingMessage, Queue as QueueMessage};
use trestle_tests::{Queue, Server, receipt_of, seconds, text, texts};

use crate::{faults::library, start};

/// Longer than the server takes to note the time.
const NOTED: Duration = Duration::from_secs(8);

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
    let (jobs, quiet) = (create(&server, "jobs").await, create(&server, "quiet").await);
    quiet.send(text("q")).await.unwrap();
    jobs.send_all(["0", "1", "2", "3", "4", "5"].map(text).to_vec()).await.unwrap();
    jobs.send_all(["g1", "g2", "g3"].map(grouped).to_vec()).await.unwrap();
    let held = jobs.receive(3, seconds(3600)).await.unwrap();
    assert_eq!(texts(&held), ["0", "1", "2"]);
    jobs.delete(receipt_of(&held[0])).await.unwrap();
    tokio::time::sleep(NOTED).await;
    server.kill();

    let server = start("-7200");
    let (jobs, quiet) = (create(&server, "jobs").await, create(&server, "quiet").await);
    assert_eq!(texts(&quiet.receive(32, seconds(3600)).await.unwrap()), ["q"], "at once");
    let received = jobs.receive(32, seconds(1)).await.unwrap();
    assert_eq!(texts(&received), ["3", "4", "5", "g1"], "nothing deleted, held or behind another");
    jobs.delete(receipt_of(&held[1])).await.expect("receipts of before still count");
    jobs.send(text("new")).await.unwrap();
    assert_eq!(texts(&jobs.receive(32, seconds(3600)).await.unwrap()), ["new"], "at once");
    tokio::time::sleep(NOTED).await;
    server.kill();

    let server = start("-90000");
    let jobs = create(&server, "jobs").await;
    let received = jobs.receive(32, seconds(600)).await.unwrap();
    assert_eq!(texts(&received), ["3", "4", "5", "g1"], "lapsed, and in their order");
    assert!(received.iter().all(|d| d.message.as_ref().unwrap().dequeue_count == 2));
    let receipts = received.iter().map(receipt_of).collect();
    assert!(jobs.delete_all(receipts).await.unwrap().iter().all(Result::is_ok));
    assert_eq!(texts(&jobs.receive(32, seconds(600)).await.unwrap()), ["g2"], "the group goes on");
    assert_eq!(jobs.count().await, 4, "held: 2, new, g2; behind: g3");
    assert_eq!(server.terminate(), Some(0));
}
