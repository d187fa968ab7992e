//! Logs: appends to their acknowledgement and with sealing, stored bytes, reads, and memory of many streams.

mod appends;
mod open_loop;
mod points;
mod reads;
mod records;
mod size;
mod streams;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tonic::transport::Channel;
use trestle_proto::log::v1::{
    CreateStreamRequest, FlushStreamRequest, GetStreamRequest, LogStream, LogStreamStats,
    RollPolicy, log_service_client::LogServiceClient,
};

use self::records::LogLoad;
pub(crate) use self::{
    appends::{acknowledged, sealed},
    open_loop::open_loop,
    points::points,
    reads::reads,
    size::size,
    streams::memory,
};
use crate::{
    drive::{Connections, Done},
    server::Process,
};

const MIB: u64 = 1024 * 1024;
/// Clients that send batches of a thousand.
const CLIENTS: usize = 16;
/// Records of a large batch.
const BATCH: u64 = 1000;
/// How long a client waits after a rejection, and how often it tries.
const REFUSED_WAIT: Duration = Duration::from_millis(20);
const TRIES_MAX: u32 = 3000;

/// A server with connections to it.
struct LogBench {
    server: Process,
    connections: Connections,
    _data: TempDir,
}

impl LogBench {
    async fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let args = ["--data-dir", data.path().to_str().unwrap()];
        let server = Process::start(&mut Process::trestle(&args));
        let connections = Connections::open(&server.endpoint()).await;
        Self { server, connections, _data: data }
    }

    fn client(&self) -> LogServiceClient<Channel> {
        let client = LogServiceClient::new(self.connections.pick(0));
        client.max_decoding_message_size(16 << 20)
    }

    /// Creates a stream whose records are sealed by age or size.
    async fn create(&self, stream: &str, max_age: Duration, max_bytes: u64) {
        let max_age = Some(prost_types::Duration::try_from(max_age).unwrap());
        let stream = LogStream {
            name: stream.to_owned(),
            roll_policy: Some(RollPolicy { max_age, max_bytes }),
            ..Default::default()
        };
        let request = CreateStreamRequest { stream: Some(stream) };
        self.client().create_stream(request).await.unwrap();
    }

    /// Creates a stream that seals nothing while less than 256 MiB are appended.
    async fn create_unsealed(&self, stream: &str) {
        self.create(stream, Duration::from_secs(86_400), 256 * MIB).await;
    }

    /// Creates a stream with the default policy.
    async fn create_default(&self, stream: &str) {
        self.create(stream, Duration::from_secs(300), 64 * MIB).await;
    }

    /// Seals what is not sealed; the statistics afterwards.
    async fn flush(&self, stream: &str) -> LogStreamStats {
        let request = FlushStreamRequest { stream: stream.to_owned() };
        self.client().flush_stream(request).await.unwrap();
        let request = GetStreamRequest { stream: stream.to_owned() };
        self.client().get_stream(request).await.unwrap().into_inner().stats.unwrap()
    }

    /// Sends the batches of a load from `first` on, for a time, at most so many. Counts records that were acknowledged.
    async fn send(&self, load: &Arc<LogLoad>, clients: usize, first: u64, end: LoadEnd) -> Done {
        let (next, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let tasks: Vec<_> = (0..clients)
            .map(|_| {
                let (connections, load) = (self.connections.clone(), Arc::clone(load));
                let next = Arc::clone(&next);
                tokio::spawn(async move {
                    let mut records = 0;
                    while began.elapsed() < end.time {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= end.batches {
                            break;
                        }
                        append(&connections, &load, first + number).await;
                        records += load.batch;
                    }
                    records
                })
            })
            .collect();
        let mut operations = 0;
        for task in tasks {
            operations += task.await.unwrap();
        }
        Done { operations, seconds: began.elapsed().as_secs_f64() }
    }
}

/// When a load ends.
#[derive(Clone, Copy)]
struct LoadEnd {
    time: Duration,
    batches: u64,
}

/// Appends a batch, again where it is refused: more wait to be sealed than the server keeps.
async fn append(connections: &Connections, load: &LogLoad, number: u64) {
    for _ in 0..TRIES_MAX {
        if connections.call(number, load.path, load.message(number)).await.is_ok() {
            return;
        }
        tokio::time::sleep(REFUSED_WAIT).await;
    }
    panic!("a batch was refused for too long");
}

/// The value below which this share of sorted values is, in percent.
fn percentile(sorted: &[f64], share: usize) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * share / 100).copied().unwrap_or(f64::NAN)
}
