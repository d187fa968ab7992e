//! `kill -9` at random instants while records are appended, sealed, merged and read.

use std::time::Duration;

use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tempfile::TempDir;
use tonic::transport::Channel;
use trestle_proto::log::v1::{self as proto, Record};
use trestle_tests::{CallError, LogStream, Server, log_record, log_texts};

use crate::{
    kills::{lengthened, seed},
    start,
};

/// Kills of a run.
const KILLS: usize = 10;
/// Writers, of two streams in turn.
const WRITERS: usize = 6;
/// Fewer acknowledged appends in all would make the test mean little: it continues until then.
const ACKNOWLEDGED_MIN: u64 = 300;
/// A machine that is this slow is not working.
const KILLS_MAX: usize = 10 * KILLS;
/// Records of an append.
const BATCH: u64 = 20;
/// The time of the first record: long ago, and in one day.
const TIME: u64 = 1_700_006_400_000_000_000;

/// Appends batches, each of which is recognised by its number.
struct LogWriter {
    index: usize,
    /// How many appends were acknowledged.
    acknowledged: u64,
}

impl LogWriter {
    /// The records of an append.
    fn records(&self, number: u64) -> Vec<Record> {
        let record = |position: u64| {
            // Times of different appends overlap.
            let time = TIME + (number % 50) * 1_000_000 + position * 7_000;
            log_record(time, &format!("{}/{number}/{position}", self.index))
        };
        (0..BATCH).map(record).collect()
    }

    /// Appends until a call fails.
    async fn run(&mut self, stream: &LogStream) -> CallError {
        loop {
            // An append that failed may have been stored; the same request id makes its repetition harmless.
            let request = proto::AppendRecordsRequest {
                request_id: format!("{}-{}", self.index, self.acknowledged),
                ..stream.appending(&self.records(self.acknowledged))
            };
            match stream.append_with(request).await {
                Ok(_) => self.acknowledged += 1,
                Err(error) => return error,
            }
        }
    }

    /// Asserts that every acknowledged append is there whole and once, and the one in flight whole or absent.
    fn check(&self, texts: &[String]) {
        let own = format!("{}/", self.index);
        let mut found: Vec<_> = texts.iter().filter(|text| text.starts_with(&own)).collect();
        let expected = |appends: u64| {
            let records = (0..appends).flat_map(|number| self.records(number));
            let mut texts = log_texts(&records.collect::<Vec<_>>());
            texts.sort();
            texts
        };
        found.sort();
        let acknowledged = expected(self.acknowledged);
        let with_next = expected(self.acknowledged + 1);
        let is_expected =
            found.iter().copied().eq(&acknowledged) || found.iter().copied().eq(&with_next);
        assert!(
            is_expected,
            "writer {}: {} records of {} acknowledged ones",
            self.index,
            found.len(),
            acknowledged.len()
        );
    }
}

fn streams(channel: &Channel) -> [LogStream; 2] {
    ["one", "two"].map(|name| LogStream::over(channel, name))
}

/// A stream that is sealed after a second, or earlier.
async fn create(stream: &LogStream) {
    let second = prost_types::Duration { seconds: 1, nanos: 0 };
    let roll_policy = Some(proto::RollPolicy { max_age: Some(second), max_bytes: 65_536 });
    let settings = proto::LogStream { name: stream.name(), roll_policy, ..Default::default() };
    stream.create(settings).await.unwrap();
}

/// Seals and reads until a call fails.
async fn disturb(stream: &LogStream) {
    while stream.flush().await.is_ok() && stream.read().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn work_and_kill(writers: &mut [LogWriter], server: Server, after: Duration) {
    let streams = streams(&server.channel());
    let work = join_all(writers.iter_mut().map(|writer| {
        let stream = streams[writer.index % 2].clone();
        async move { writer.run(&stream).await }
    }));
    let (errors, (), ()) = tokio::join!(work, disturb(&streams[0]), async {
        tokio::time::sleep(after).await;
        server.kill();
    });
    for error in errors {
        assert_eq!(error.reason, "", "the server rejected: {error:?}");
    }
}

async fn check(writers: &[LogWriter], server: &Server) {
    for (index, stream) in streams(&server.channel()).iter().enumerate() {
        let read = stream.read().await.unwrap();
        let times: Vec<_> =
            read.records.iter().map(|it| (it.time_unix_nano, it.sequence)).collect();
        assert!(times.is_sorted(), "records are in order");
        let stats = stream.get().await.unwrap().stats.unwrap();
        assert_eq!(stats.next_sequence, read.records.len() as u64, "no gap, none twice");
        let texts = log_texts(&read.records);
        writers.iter().filter(|writer| writer.index % 2 == index).for_each(|it| it.check(&texts));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_records_survive_random_kills_once() {
    let seed = seed();
    println!("to repeat: CRASH_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let data = TempDir::new().unwrap();
    let new = |index| LogWriter { index, acknowledged: 0 };
    let mut writers: Vec<_> = (0..WRITERS).map(new).collect();
    let mut server = start(&data, &[]);
    for stream in &streams(&server.channel()) {
        create(stream).await;
    }
    let total = |writers: &[LogWriter]| writers.iter().map(|it| it.acknowledged).sum::<u64>();

    let mut kills = 0;
    while kills < KILLS || total(&writers) < ACKNOWLEDGED_MIN {
        assert!(kills < KILLS_MAX, "only {} acknowledged appends", total(&writers));
        let after = Duration::from_micros(random.random_range(50_000..1_500_000));
        let after = lengthened(after, kills / KILLS);
        work_and_kill(&mut writers, server, after).await;
        server = start(&data, &[]);
        check(&writers, &server).await;
        kills += 1;
    }

    let sealed = streams(&server.channel())[0].get().await.unwrap().stats.unwrap();
    assert!(sealed.segments > 0 && sealed.segment_records > 0, "{sealed:?}");
    println!("{kills} kills, {} acknowledged appends", total(&writers));
    assert_eq!(server.terminate(), Some(0));
    server = start(&data, &[]);
    check(&writers, &server).await;
}
