//! A disk with less free space than the reserve: writes are rejected, reads and deletes are served.

use std::time::Duration;

use tonic::Code;
use trestle_proto::{
    queue::v1::{CreateQueueRequest, DeadLetterPolicy, Queue as NewQueue},
    table::v1::{
        CreateTableRequest, Table as NewTable, WriteMode, table_service_client::TableServiceClient,
    },
};
use trestle_tests::{Queue, Table, delete_op, entity, insert_op, int, seconds, text, texts};

use crate::{contents::MAIN, start, writer::create};

/// More than any disk has.
const SHORT: (&str, &str) = ("TRESTLE__STORAGE__MIN_FREE_BYTES", "4000000000000000000");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_rejects_writes_and_accepts_deletes_until_space_is_freed() {
    let data = tempfile::tempdir().unwrap();
    let server = start(&data, &[]);
    let table = Table::over(&server.channel(), MAIN);
    create(&table).await.unwrap();
    for row in ["a", "b", "c", "d"] {
        table.insert(entity("p", row, [int("n", 1)])).await.unwrap();
    }
    assert_eq!(server.terminate(), Some(0));

    let server = start(&data, &[SHORT]);
    let table = Table::over(&server.channel(), MAIN);
    let row = |row| entity("p", row, [int("n", 2)]);
    let errors = [
        table.insert(row("e")).await.err(),
        table.upsert(row("a"), WriteMode::Merge).await.err(),
        table.update(row("a"), WriteMode::Replace, None).await.err(),
        table.batch(vec![insert_op(row("e"))]).await.err(),
        create(&Table::over(&server.channel(), "another")).await.err(),
    ];

    for (index, error) in errors.into_iter().enumerate() {
        let error = error.unwrap_or_else(|| panic!("operation {index} was accepted"));
        let expected = (Code::ResourceExhausted, "INSUFFICIENT_STORAGE");
        assert_eq!(error.kind(), expected, "operation {index}");
        assert_eq!(error.retry_after, None, "operation {index}: a retry does not free space");
    }
    let mut client = TableServiceClient::new(server.channel());
    let another = NewTable { name: "another".to_owned(), ..NewTable::default() };
    let request = CreateTableRequest { table: Some(another) };
    let rejected = client.create_table(request).await.unwrap_err();
    let pushback = rejected.metadata().get("grpc-retry-pushback-ms").unwrap();
    assert_eq!(pushback.to_str().unwrap(), "-1", "a service config does not retry");
    assert_eq!(table.rows("n eq 1").await.unwrap(), ["a", "b", "c", "d"]);
    table.delete("p", "b", None).await.unwrap();
    table.batch(vec![delete_op("p", "c", None)]).await.unwrap();
    assert_eq!(table.rows("").await.unwrap(), ["a", "d"]);
    assert_eq!(server.terminate(), Some(0));

    let server = start(&data, &[]);
    let table = Table::over(&server.channel(), MAIN);
    assert_eq!(table.rows("n eq 1").await.unwrap(), ["a", "d"]);
    table.insert(row("e")).await.unwrap();
}

/// Messages that were delivered too often are larger together than what is written while space is short.
const EXHAUSTED: usize = 40;

/// A queue on a server, and that of its dead letters.
fn queues(server: &trestle_tests::Server) -> [Queue; 2] {
    ["jobs", "failed"].map(|name| Queue::over(&server.channel(), name))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_behind_exhausted_ones_are_received_while_space_is_short() {
    let data = tempfile::tempdir().unwrap();
    let server = start(&data, &[]);
    let [jobs, failed] = queues(&server);
    let policy = DeadLetterPolicy { queue: failed.name(), max_dequeue_count: 1 };
    for (queue, dead_letter) in [(&failed, None), (&jobs, Some(policy))] {
        let queue = NewQueue { name: queue.name(), dead_letter, ..NewQueue::default() };
        let request = CreateQueueRequest { queue: Some(queue) };
        jobs.client().create_queue(request).await.unwrap();
    }
    let letter = || text(&"x".repeat(1000));
    jobs.send_all((0..EXHAUSTED).map(|_| letter()).collect()).await.unwrap();
    let (first, second) = (jobs.receive(32, seconds(1)).await, jobs.receive(32, seconds(1)).await);
    assert_eq!(first.unwrap().len() + second.unwrap().len(), EXHAUSTED);
    tokio::time::sleep(Duration::from_millis(1200)).await;
    jobs.send(text("fresh")).await.unwrap();
    assert_eq!(server.terminate(), Some(0));

    let server = start(&data, &[SHORT]);
    let [jobs, failed] = queues(&server);
    let received = jobs.receive(32, seconds(600)).await.unwrap();
    assert_eq!(texts(&received), ["fresh"]);
    // What is held blocks neither this call nor the shutdown.
    assert_eq!(jobs.receive(32, seconds(600)).await.unwrap(), []);
    assert_eq!((jobs.count().await, failed.count().await), (EXHAUSTED as u64 + 1, 0));
    assert_eq!(server.terminate(), Some(0));

    let server = start(&data, &[]);
    let [jobs, failed] = queues(&server);
    assert_eq!(jobs.receive(32, seconds(600)).await.unwrap(), []);
    assert_eq!((jobs.count().await, failed.count().await), (1, EXHAUSTED as u64));
    drop(server);
}
