//! A stream against a model: random appends, seals, merges, sweeps, restarts and faults of both stores, after each of
//! which a read returns exactly what was acknowledged.

mod interleaved;

use std::{sync::Arc, time::Duration};
use trestle_model::read_grace::READ_GRACE;

use proptest::{collection::vec, prelude::*, sample::select};
use trestle_kv::faulty::{FaultRates, FaultyEngine};
use trestle_objects::{
    ObjectArea,
    faulty::{FaultyObjects, ObjectFault},
};
use trestle_proto::log::v1::Record;

use crate::{
    append::NewBatch,
    fixture::{LogFixture, SECOND, START, plan, record, texts},
    keys::StreamRow,
    read::ReadPlan,
    record::RecordFields,
    streams::OpenStream,
    sweep::ANNOUNCED_GRACE,
    tail::FollowFrom,
};

/// Most tries of an append: each fails with a chance of one in four.
const TRIES_MAX: usize = 200;

/// Bytes of unsealed records that a read holds.
const SLICE_BYTES: usize = 500;

/// What happens to a stream.
#[derive(Debug, Clone)]
enum Event {
    /// Records of these times, in seconds after the start, are appended.
    Append(Vec<u8>),
    /// Records of many seals, which are small.
    ManySeals,
    /// A seal whose next call of the object store goes so.
    Seal(ObjectFault),
    /// Small segments are merged.
    Merge(ObjectFault),
    /// The background work runs.
    Sweep,
    /// Time passes.
    Advance(u16),
    /// The process is restarted.
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let fault = || {
        select(
            &[
                ObjectFault::None,
                ObjectFault::None,
                ObjectFault::Failed,
                ObjectFault::Full,
                ObjectFault::Unacknowledged,
            ][..],
        )
    };
    prop_oneof![
        6 => vec(0..40_u8, 1..6).prop_map(Event::Append),
        1 => Just(Event::ManySeals),
        4 => fault().prop_map(Event::Seal),
        2 => fault().prop_map(Event::Merge),
        2 => Just(Event::Sweep),
        1 => (0..8_000_u16).prop_map(Event::Advance),
        1 => Just(Event::Restart),
    ]
}

/// A stream on stores that fail, and what it must have.
struct Modelled {
    /// The process.
    faulty: LogFixture,
    /// A process on the same stores, whose engine does not fail.
    sound: LogFixture,
    objects: Arc<FaultyObjects>,
    stream: Arc<OpenStream>,
    /// Every acknowledged record: seconds after the start, and text; by sequence.
    acknowledged: Vec<(u64, String)>,
    snapshot: u64,
}

impl Modelled {
    async fn new(seed: u64) -> Self {
        let rates = FaultRates { unavailable: 0.1, unknown: 0.1, ..FaultRates::default() };
        let objects = Arc::new(FaultyObjects::default());
        let mut inner = None;
        let faulty = LogFixture::wrapped(ObjectArea::of(Arc::clone(&objects) as _), |engine| {
            inner = Some(Arc::clone(&engine));
            Arc::new(FaultyEngine::new(engine, seed, rates))
        });
        let mut sound = faulty.reopened_on(inner.expect("wrapped"));
        // A few records: reads need many slices.
        sound.logs.slice_bytes = SLICE_BYTES;
        let stream = sound.plain_stream().await;
        Self { faulty, sound, objects, stream, acknowledged: Vec::new(), snapshot: 0 }
    }

    /// Appends under one request id until the append is acknowledged.
    async fn append(&mut self, times: &[u8]) {
        let first = self.acknowledged.len() as u64;
        let records: Vec<_> = (first..)
            .zip(times)
            .map(|(sequence, time)| record(u64::from(*time) * SECOND, &sequence.to_string()))
            .collect();
        for _ in 0..TRIES_MAX {
            let with_id = |batch| NewBatch { request_id: Some(first.to_string()), ..batch };
            let appended = self.faulty.append_as(&self.stream, &records, with_id).await;
            if let Ok(appended) = appended {
                assert_eq!(appended.first_sequence, first);
                assert_eq!(appended.count as usize, times.len());
                let times = times.iter().map(|time| u64::from(*time));
                self.acknowledged
                    .extend((first..).zip(times).map(|(at, time)| (time, at.to_string())));
                return;
            }
        }
        panic!("an append fails {TRIES_MAX} times");
    }

    async fn run(&mut self, event: &Event) {
        match event {
            Event::Append(times) => self.append(times).await,
            Event::ManySeals => {
                for time in 0..9 {
                    self.append(&[time * 4, 39 - time]).await;
                    let _ = self.faulty.logs.flush(&self.stream).await;
                }
            }
            // Whether it fails does not matter: nothing is lost.
            Event::Seal(fault) => {
                self.objects.plan([*fault]);
                let _ = self.faulty.logs.flush(&self.stream).await;
            }
            Event::Merge(fault) => {
                self.objects.plan([ObjectFault::None, *fault]);
                let _ = self.faulty.logs.merge_small(&self.stream).await;
            }
            Event::Sweep => {
                for _ in 0..3 {
                    let _ = self.faulty.sweeper.tick().await;
                }
            }
            Event::Advance(seconds) => self.faulty.advance(Duration::from_secs((*seconds).into())),
            Event::Restart => self.faulty = self.faulty.reopened(),
        }
        self.objects.plan([]);
    }

    /// The texts in the order of time, and of arrival within a time, of seconds from one to another.
    fn expected(&self, seconds: std::ops::Range<u64>) -> Vec<&str> {
        let mut expected: Vec<_> = (0..)
            .zip(&self.acknowledged)
            .filter(|(_, (time, _))| seconds.contains(time))
            .map(|(sequence, (time, text))| (*time, sequence, text.as_str()))
            .collect::<Vec<(u64, u64, &str)>>();
        expected.sort_unstable();
        expected.into_iter().map(|(_, _, text)| text).collect()
    }

    async fn read(&self, plan: ReadPlan) -> Vec<Record> {
        self.sound.read(&self.stream, plan).await.expect("a read")
    }

    /// Reads return what was acknowledged, and the counts of the stream are right.
    async fn check(&mut self) {
        let all = self.read(plan()).await;
        assert_eq!(texts(&all), self.expected(0..u64::MAX));
        let id = self.stream.record.id;
        let head = self.sound.head(id).await.expect("the stream exists");
        let count = self.acknowledged.len() as u64;
        assert_eq!(head.next_sequence, count);
        assert_eq!(head.segment_records + head.unsealed_records(), count);
        assert_eq!(head.unsealed_bytes == 0, head.unsealed_records() == 0, "{head:?}");
        assert_eq!(head.segments, self.sound.count(StreamRow::Segment, id).await as u64);
        assert!(head.snapshot >= self.snapshot, "snapshots have rising numbers");
        self.snapshot = head.snapshot;
    }

    /// Windows in both directions, in parts that continue behind each other.
    async fn check_windows(&self) {
        for (from, to) in [(0, 40), (5, 20), (12, 13), (39, 60), (60, 70)] {
            let times = START + from * SECOND..START + to * SECOND;
            for is_backward in [false, true] {
                let mut expected = self.expected(from..to);
                if is_backward {
                    expected.reverse();
                }
                let mut found = Vec::new();
                let mut behind = None;
                loop {
                    let (times, limit) = (times.clone(), 3);
                    let part = ReadPlan { times, is_backward, behind, limit, ..plan() };
                    let part = self.read(part).await;
                    let Some(last) = part.last() else { break };
                    assert!(part.len() <= 3);
                    behind = Some((last.time_unix_nano, last.sequence));
                    found.extend(texts(&part).into_iter().map(str::to_owned));
                }
                assert_eq!(found, expected, "{from} to {to}, backward: {is_backward}");
            }
        }
    }

    /// A follower gets every record in the order of arrival.
    async fn check_tail(&self) {
        let (stream, from) = (Arc::clone(&self.stream), FollowFrom::Sequence(0));
        let follower = self.sound.logs.follow(stream, from, None, RecordFields::ALL).await;
        let mut follower = follower.expect("a follower");
        let mut sequences = Vec::new();
        while follower.next_sequence() < self.acknowledged.len() as u64 {
            let rows = follower.next().await.expect("records");
            sequences.extend(rows.into_iter().map(|row| row.sequence));
        }
        assert!(sequences.into_iter().eq(0..self.acknowledged.len() as u64));
    }

    /// After the faults nothing is left behind: every object is one of a segment.
    async fn check_end(&mut self) {
        self.sound.logs.flush(&self.stream).await.expect("sealed");
        self.sound.advance(ANNOUNCED_GRACE + READ_GRACE);
        self.sound.sweep().await;
        self.sound.advance(READ_GRACE + Duration::from_secs(1));
        self.sound.sweep().await;
        self.check().await;
        let id = self.stream.record.id;
        let head = self.sound.head(id).await.expect("the stream exists");
        assert_eq!(head.unsealed_records(), 0);
        assert_eq!(self.sound.objects().await.len() as u64, head.segments);
        for row in [StreamRow::Announced, StreamRow::Retired, StreamRow::Batch, StreamRow::Request]
        {
            assert_eq!(self.sound.count(row, id).await, 0, "{row:?}");
        }
        self.check_windows().await;
        self.check_tail().await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn acknowledged_records_are_read_once_whatever_fails(
        events in vec(event(), 4..16),
        seed in any::<u64>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let mut modelled = Modelled::new(seed).await;
            for event in &events {
                modelled.run(event).await;
                modelled.check().await;
            }
            modelled.check_windows().await;
            modelled.check_end().await;
        });
    }
}
