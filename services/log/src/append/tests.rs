mod requests;

use std::pin::pin;

use trestle_kv::stepped::SteppedEngine;
use trestle_model::fault::{Fault, Reason};
use trestle_rpc::layer::shares::SharePool;

use super::*;
use crate::fixture::{LogFixture, SECOND, record, texts};

#[tokio::test]
async fn records_get_sequences_without_gaps_and_are_read_at_once() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;

    let one = fixture.append(&stream, &[record(1, "a"), record(2, "b")]).await.unwrap();
    let two = fixture.append(&stream, &[record(0, "c")]).await.unwrap();

    assert_eq!((one.first_sequence, one.count, one.is_repeated), (0, 2, false));
    assert_eq!((two.first_sequence, two.count), (2, 1));
    let records = fixture.read_all(&stream).await.unwrap();
    assert_eq!(texts(&records), ["c", "a", "b"]);
    assert_eq!(records.iter().map(|it| it.sequence).collect::<Vec<_>>(), [2, 0, 1]);
}

#[tokio::test]
async fn the_parts_of_a_batch_are_appended_in_their_order() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let second = fixture.batch(&stream, &[record(0, "c"), record(0, "d")]).parts;
    let in_two = |batch: NewBatch| NewBatch {
        parts: [batch.parts, second].concat(),
        request_id: Some("one".to_owned()),
        ..batch
    };

    let first = [record(0, "a"), record(0, "b"), record(0, "bb")];
    let appended = fixture.append_as(&stream, &first, in_two.clone()).await.unwrap();
    let again = fixture.append_as(&stream, &first, in_two).await.unwrap();

    assert_eq!((appended.first_sequence, appended.count, appended.is_repeated), (0, 5, false));
    assert_eq!((again.first_sequence, again.count, again.is_repeated), (0, 5, true));
    let records = fixture.read_all(&stream).await.unwrap();
    assert_eq!(texts(&records), ["a", "b", "bb", "c", "d"]);
    assert_eq!(records.iter().map(|it| it.sequence).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!((head.next_sequence, head.unsealed_bytes), (5, appended.head.unsealed_bytes));
    assert_eq!(fixture.count(keys::StreamRow::Batch, stream.record.id).await, 2);
}

#[tokio::test]
async fn an_append_with_a_known_request_id_appends_nothing() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let with_id = |batch| NewBatch { request_id: Some("one".to_owned()), ..batch };

    let first = fixture.append_as(&stream, &[record(1, "a")], with_id).await.unwrap();
    fixture.append(&stream, &[record(2, "b")]).await.unwrap();
    let again = fixture.append_as(&stream, &[record(1, "a")], with_id).await.unwrap();

    assert!(!first.is_repeated && again.is_repeated);
    assert_eq!((again.first_sequence, again.count), (0, 1));
    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["a", "b"]);

    // After its time the id is a new one.
    fixture.advance(REQUEST_MEMORY + Duration::from_secs(1));
    fixture.sweep().await;
    let later = fixture.append_as(&stream, &[record(3, "c")], with_id).await.unwrap();
    assert_eq!((later.first_sequence, later.is_repeated), (2, false));
    assert_eq!(fixture.count(keys::StreamRow::RequestTime, stream.record.id).await, 1);
}

#[tokio::test]
async fn an_append_with_another_next_sequence_is_aborted() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let expecting = |next| move |batch| NewBatch { expected_next_sequence: Some(next), ..batch };

    fixture.append_as(&stream, &[record(1, "a")], expecting(0)).await.unwrap();
    let stale = fixture.append_as(&stream, &[record(2, "b")], expecting(0)).await;

    assert!(matches!(stale, Err(LogError::Sequence { next: 1, expected: 0 })), "{stale:?}");
    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["a"]);
}

#[tokio::test]
async fn batches_of_several_streams_are_appended_all_or_none() {
    let fixture = LogFixture::new();
    let one = fixture.plain_stream().await;
    let (account, other) = (crate::fixture::account(), crate::fixture::name("other"));
    let two = fixture.logs.open_or_create(&account, &other).await.unwrap();
    let pair = |stream: &Arc<crate::streams::OpenStream>, text: &str| {
        (Arc::clone(stream), fixture.batch(stream, &[record(SECOND, text)]))
    };

    fixture.logs.append(vec![pair(&one, "a"), pair(&two, "b")]).await.unwrap();
    fixture.logs.delete(&account, &other).await.unwrap();
    let failed = fixture.logs.append(vec![pair(&one, "c"), pair(&two, "d")]).await;

    assert!(matches!(failed, Err(LogError::StreamNotFound(name)) if name == other));
    assert_eq!(texts(&fixture.read_all(&one).await.unwrap()), ["a"]);
}

#[tokio::test]
async fn a_stream_with_too_many_unsealed_bytes_rejects_appends() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let head = Head { next_sequence: 1, unsealed_bytes: BACKLOG_BYTES_MAX, ..Head::default() };
    let mut spec = ChangeSpec::new(keys::stream_domain(stream.record.id));
    let key = spec.read(keys::head(stream.record.id));
    let stored = transact(&*fixture.logs.engine, spec, move |reads, _| {
        let mut writes = Writes::new();
        writes.put(reads.key(key).clone(), head.encode());
        Ok::<_, LogError>((writes, ()))
    });
    stored.await.unwrap().unwrap();

    let rejected = fixture.append(&stream, &[record(1, "a")]).await;

    let Err(error @ LogError::Backlog { .. }) = rejected else { panic!("{rejected:?}") };
    let fault = Fault::from(error);
    assert_eq!(fault.reason, Reason::LogBacklogFull);
    assert!(fault.retry_after.is_some());
    assert_eq!(fixture.head(stream.record.id).await.unwrap(), head);
}

#[tokio::test]
async fn bytes_that_wait_for_their_commit_are_bounded() {
    const MIB: usize = 1024 * 1024;
    let sound = LogFixture::new();
    let stream = sound.plain_stream().await;
    let (engine, steps) = SteppedEngine::new(Arc::clone(&sound.logs.engine));
    let mut fixture = sound.reopened_on(Arc::new(engine));
    let pool = SharePool::new("bytes of appends", MIB);
    fixture.logs.commit_bytes = Arc::clone(&pool);
    let large = [record(0, &"x".repeat(600_000))];

    let mut first = pin!(fixture.append(&stream, &large));
    assert!(steps.run(&mut first, 0).await.is_none());
    assert!(pool.free() < MIB - 600_000, "{}", pool.free());
    let mut second = pin!(fixture.append(&stream, &large));
    let refused = steps.run(&mut second, 0).await.expect("without a commit").unwrap_err();

    let fault = Fault::from(refused);
    assert_eq!(fault.reason, Reason::ServerBusy);
    assert!(fault.retry_after.is_some() && fault.message.contains("bytes of appends"));
    steps.run(&mut first, 1_000).await.expect("committed").unwrap();
    assert_eq!(pool.free(), MIB);
    let mut third = pin!(fixture.append(&stream, &large));
    steps.run(&mut third, 1_000).await.expect("committed").unwrap();
    assert_eq!(sound.head(stream.record.id).await.unwrap().next_sequence, 2);
}
