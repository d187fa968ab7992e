use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use trestle_kv::stepped::{SteppedEngine, Steps};

use crate::{
    fixture::{LogFixture, account, name, record},
    keys::StreamRow,
    logs::Logs,
    manifest::{self, ManifestChange},
    placement::StreamPlacement,
    stream::{RollPolicy, StreamId, StreamSettings},
};

/// The streams of another process.
#[derive(Default)]
struct Elsewhere(Mutex<HashSet<u64>>);

impl StreamPlacement for Elsewhere {
    fn is_elsewhere(&self, stream: u64) -> bool {
        self.0.lock().unwrap().contains(&stream)
    }
}

/// Two processes of one store, of which the first works on no stream of the set.
fn two() -> (LogFixture, LogFixture, Arc<Elsewhere>) {
    let (mut here, elsewhere) = (LogFixture::new(), Arc::<Elsewhere>::default());
    here.place(Arc::clone(&elsewhere) as _);
    let there = here.reopened();
    (here, there, elsewhere)
}

/// A process whose engine waits before each operation.
fn stepped(fixture: &LogFixture) -> (LogFixture, Arc<Steps>) {
    let (engine, steps) = SteppedEngine::new(Arc::clone(&fixture.logs.engine));
    (fixture.reopened_on(Arc::new(engine)), steps)
}

fn due(fixture: &LogFixture) -> Vec<StreamId> {
    let due = fixture.logs.unsealed.due(fixture.logs.engine.now(), |_| true);
    due.iter().map(|stream| stream.record.id).collect()
}

#[tokio::test]
async fn a_look_finds_what_another_process_appended_changed_and_deleted() {
    let (here, there, _) = two();
    let stream = here.plain_stream().await;
    let id = stream.record.id;
    let mut reader = here.logs.unsealed.watch(id, 0);
    there.append(&stream, &[record(0, "a"), record(1, "b")]).await.unwrap();
    here.advance(Duration::from_secs(200));
    here.logs.look().await.unwrap();
    assert!(reader.has_changed().unwrap());
    assert_eq!(*reader.borrow_and_update(), 2);
    assert_eq!(due(&here), [], "not yet");

    let roll = Some(RollPolicy { max_age: Duration::from_secs(100), ..RollPolicy::default() });
    let change = crate::streams::StreamSettingsChange { roll, ..Default::default() };
    there.logs.streams.update(&stream.account, &stream.name, change).await.unwrap();
    here.logs.look().await.unwrap();
    assert_eq!(due(&here), [id], "by the settings that it has now");
    there.logs.flush(&stream).await.unwrap();
    here.logs.look().await.unwrap();
    assert_eq!(due(&here), []);

    there.append(&stream, &[record(2, "c")]).await.unwrap();
    here.logs.look().await.unwrap();
    here.advance(Duration::from_secs(200));
    there.logs.delete(&stream.account, &stream.name).await.unwrap();
    here.logs.look().await.unwrap();
    assert_eq!(due(&here), []);
    assert!(reader.changed().await.is_ok() && reader.changed().await.is_err(), "its end");
}

#[tokio::test]
async fn a_look_forgets_no_stream_that_is_created_behind_it() {
    let (here, _, _) = two();
    // More than one step reads.
    for number in 0..1001 {
        let name = name(&format!("stream-{number}"));
        here.logs.streams.create(&account(), &name, StreamSettings::default()).await.unwrap();
    }
    let (slow, steps) = stepped(&here);
    let mut look = Box::pin(slow.logs.look());
    assert!(steps.run(&mut look, 1).await.is_none(), "a part of the heads was read");
    let first = Logs::new(Arc::clone(&here.logs.engine), here.logs.area.clone(), || 0);
    first.streams.create(&account(), &name("new"), StreamSettings::default()).await.unwrap();
    let reader = slow.logs.unsealed.watch(StreamId(0), 0);
    steps.run(&mut look, 100).await.expect("it ends").unwrap();
    assert!(reader.has_changed().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_process_seals_and_sweeps_only_its_own_streams() {
    let (here, there, elsewhere) = two();
    let roll = RollPolicy { max_age: Duration::from_secs(10), ..RollPolicy::default() };
    let retention = Some(Duration::from_secs(60));
    let stream = here.stream(StreamSettings { roll, retention, ..Default::default() }).await;
    let id = stream.record.id;
    elsewhere.0.lock().unwrap().insert(id.0);
    here.append(&stream, &[record(0, "a")]).await.unwrap();
    here.advance(Duration::from_secs(30));
    here.logs.seal_due().await.unwrap();
    assert_eq!(here.head(id).await.unwrap().sealed_before, 0);
    // The other process was not told.
    there.logs.seal_due().await.unwrap();
    assert_eq!(here.head(id).await.unwrap().sealed_before, 0);
    there.logs.look().await.unwrap();
    there.logs.seal_due().await.unwrap();
    assert_eq!(here.head(id).await.unwrap().sealed_before, 1);

    here.advance(Duration::from_secs(100));
    here.sweep().await;
    assert_eq!(here.count(StreamRow::Batch, id).await, 1);
    assert_eq!(here.head(id).await.unwrap().segments, 1);
    there.sweep().await;
    assert_eq!(here.count(StreamRow::Batch, id).await, 0);
    assert_eq!(here.head(id).await.unwrap().segments, 0, "past its retention");

    there.logs.delete(&stream.account, &stream.name).await.unwrap();
    here.advance(Duration::from_secs(100));
    here.sweep().await;
    assert_eq!(here.count(StreamRow::Expired, id).await, 1);
    elsewhere.0.lock().unwrap().clear();
    here.sweep().await;
    assert_eq!(here.count(StreamRow::Expired, id).await, 0, "its own from now on");
}

#[tokio::test(start_paused = true)]
async fn records_that_another_process_does_not_seal_are_sealed_by_any() {
    let (here, _, elsewhere) = two();
    let stream = here.plain_stream().await;
    elsewhere.0.lock().unwrap().insert(stream.record.id.0);
    here.append(&stream, &[record(0, "a")]).await.unwrap();
    here.advance(RollPolicy::default().max_age + Duration::from_secs(29));
    here.logs.seal_due().await.unwrap();
    assert_eq!(here.head(stream.record.id).await.unwrap().segments, 0);
    here.advance(Duration::from_secs(2));
    here.logs.seal_due().await.unwrap();
    assert_eq!(here.head(stream.record.id).await.unwrap().segments, 1);
}

#[tokio::test]
async fn a_flush_goes_on_where_another_process_sealed_a_part_first() {
    let (here, _, _) = two();
    let stream = here.plain_stream().await;
    let [(first, first_steps), (second, second_steps)] = [stepped(&here), stepped(&here)];
    here.append(&stream, &[record(0, "a")]).await.unwrap();
    let mut of_one = Box::pin(first.logs.flush(&stream));
    // The position for the call, that and the batches for the seal, the announcement; not the publication.
    assert!(first_steps.run(&mut of_one, 4).await.is_none());
    here.append(&stream, &[record(1, "b")]).await.unwrap();
    let mut of_both = Box::pin(second.logs.flush(&stream));
    assert!(second_steps.run(&mut of_both, 4).await.is_none());

    first_steps.run(&mut of_one, 100).await.expect("it ends").unwrap();
    let flushed = second_steps.run(&mut of_both, 100).await.expect("it ends").unwrap();
    assert_eq!((flushed.records, flushed.segments, flushed.snapshot), (1, 1, 2));
    assert_eq!(here.objects().await.len(), 2, "that of the refused publication is gone");
    assert_eq!(here.read_all(&stream).await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_a_process_does_after_it_stood_still_is_dated_by_the_commit() {
    let (here, _, _) = two();
    let stream = here.plain_stream().await;
    let id = stream.record.id;
    let (slow, steps) = stepped(&here);
    let hour = Duration::from_secs(3600);
    let named = |batch| crate::append::NewBatch { request_id: Some("r".to_owned()), ..batch };

    let records = [record(0, "a")];
    let mut appended = Box::pin(slow.append_as(&stream, &records, named));
    assert!(steps.run(&mut appended, 0).await.is_none(), "before its commit");
    here.advance(hour);
    steps.run(&mut appended, 1).await.expect("it ends").unwrap();
    let again = here.append_as(&stream, &records, named).await.unwrap();
    assert!(again.is_repeated, "the id is remembered from the commit on");
    assert_eq!(here.head(id).await.unwrap().unsealed_since, here.logs.engine.now().get());

    here.logs.flush(&stream).await.unwrap();
    let page = here.logs.segments(&stream, 0..u64::MAX, 100, "").await.unwrap();
    let change = ManifestChange { removed: page.segments, ..ManifestChange::default() };
    let mut removed = Box::pin(manifest::publish(&*slow.logs.engine, id, change));
    assert!(steps.run(&mut removed, 0).await.is_none(), "before its commit");
    here.advance(hour * 2);
    steps.run(&mut removed, 1).await.expect("it ends").unwrap().expect("published");
    here.sweep().await;
    assert_eq!(here.objects().await.len(), 1, "kept for reads from the commit on");

    let mut deleted = Box::pin(slow.logs.delete(&stream.account, &stream.name));
    assert!(steps.run(&mut deleted, 1).await.is_none(), "before its commit");
    here.advance(hour);
    steps.run(&mut deleted, 1).await.expect("it ends").unwrap();
    here.sweep().await;
    assert_eq!(here.objects().await.len(), 1, "kept for calls in flight from the commit on");
}
