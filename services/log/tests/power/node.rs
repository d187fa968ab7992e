//! The service on a directory: what it does before a cut, and what must be there after it.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

use prost::Message as _;
use tonic::Code;
use trestle_kv_fjall::{FjallEngine, FjallOptions};
use trestle_log::{KEYSPACES, LogApi, LogDeps, LogRole};
use trestle_model::time::{Clock, ManualClock, Ticks};
use trestle_objects::ObjectArea;
use trestle_proto::{
    log::v1::{
        self as proto, Record, log_service_client::LogServiceClient,
        log_service_server::LogServiceServer,
    },
    opentelemetry::proto::common::v1::{AnyValue, any_value::Value},
};

use crate::progress::LogProgress;

/// When it begins, in seconds since 1970: noon of a day.
const START: i64 = 1_800_014_400;
const SECOND: u64 = 1_000_000_000;
const HOUR: Duration = Duration::from_secs(3_600);
/// How long records are kept.
const RETENTION: Duration = Duration::from_secs(7_200);
/// Records of an append, and appends before a merge: as many segments.
const BATCH: u64 = 3;
const APPENDS: u64 = 9;
/// Most steps of the background work.
const SWEEPS_MAX: usize = 100;

/// A service, and its clock. The wall clock is that of the records; service time is ahead of it, where time passes for
/// the background work only.
struct Node {
    role: LogRole,
    client: LogServiceClient<LogServiceServer<LogApi>>,
    clock: Arc<ManualClock>,
    next: u64,
}

impl Node {
    fn open(root: &Path) -> Result<Self, String> {
        let clock = Arc::new(ManualClock::new(Ticks::from_unix(START, 0).unwrap()));
        let options = FjallOptions {
            cache_bytes: 8 * 1024 * 1024,
            min_free_bytes: 0,
            memtable_bytes: 64 * 1024,
            tick: Duration::from_millis(20),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ..FjallOptions::new(root.join("kv"), KEYSPACES.to_vec())
        };
        let engine = FjallEngine::open(options).map_err(|error| error.to_string())?;
        let area = ObjectArea::in_directory(&root.join("log"), None);
        let role = LogRole::new(LogDeps {
            engine: Arc::new(engine),
            area: area.map_err(|error| error.to_string())?,
            random: || 7,
            meter: opentelemetry::global::meter("log"),
            export_bytes_max: trestle_model::limits::MESSAGE_BYTES_MAX,
            storage: trestle_rpc::quota::StorageQuotas::default(),
            placement: None,
        });
        let client = LogServiceClient::new(role.server());
        Ok(Self { role, client, clock, next: 0 })
    }

    /// Time passes for the background work: the wall clock stays.
    fn elapse(&self, by: Duration) {
        let wall = self.clock.now();
        self.clock.advance(by);
        self.clock.set(wall);
    }

    async fn create(&mut self) {
        let stream = proto::LogStream {
            name: "web".to_owned(),
            retention: Some(prost_types::Duration::try_from(RETENTION).unwrap()),
            ..proto::LogStream::default()
        };
        let request = proto::CreateStreamRequest { stream: Some(stream) };
        self.client.create_stream(request).await.unwrap();
        LogProgress::print("created", 1);
    }

    /// Appends records with the numbers of their sequences.
    async fn append(&mut self) -> Result<(), String> {
        let (seconds, _) = self.clock.now().to_unix();
        let record = |number: u64| Record {
            // Times of different appends overlap.
            time_unix_nano: seconds.cast_unsigned() * SECOND - number % 7,
            body: Some(AnyValue { value: Some(Value::StringValue(number.to_string())) }),
            ..Record::default()
        };
        let records = (self.next..self.next + BATCH).map(record);
        let request = proto::AppendRecordsRequest {
            stream: "web".to_owned(),
            records: records.map(|record| record.encode_to_vec().into()).collect(),
            ..proto::AppendRecordsRequest::default()
        };
        let appended = self.client.append_records(request).await;
        let appended = appended.map_err(|error| format!("append: {error}"))?.into_inner();
        if appended.first_sequence != self.next {
            return Err(format!(
                "{} is not the next sequence, {}",
                appended.first_sequence, self.next
            ));
        }
        self.next += BATCH;
        self.clock.advance(Duration::from_secs(1));
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), String> {
        let request = proto::FlushStreamRequest { stream: "web".to_owned() };
        let flushed = self.client.flush_stream(request).await;
        flushed.map(drop).map_err(|error| format!("seal: {error}"))
    }

    async fn sweep(&self) -> Result<(), String> {
        for _ in 0..SWEEPS_MAX {
            match self.role.sweep().await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(fault) => return Err(format!("background work: {fault:?}")),
            }
        }
        Err("the background work does not end".to_owned())
    }

    async fn stats(&mut self) -> Result<Option<proto::LogStreamStats>, String> {
        let request = proto::GetStreamRequest { stream: "web".to_owned() };
        match self.client.get_stream(request).await {
            Ok(stream) => Ok(stream.into_inner().stats),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(format!("get: {status}")),
        }
    }

    /// The sequences of all records, each with how often it is there; texts and order are as expected.
    async fn sequences(&mut self) -> Result<BTreeMap<u64, u32>, String> {
        let request = proto::ReadRecordsRequest { stream: "web".to_owned(), ..Default::default() };
        let failed = |error: tonic::Status| format!("read: {error}");
        let mut responses = self.client.read_records(request).await.map_err(failed)?.into_inner();
        let (mut found, mut last) = (BTreeMap::new(), (0, 0));
        while let Some(response) = responses.message().await.map_err(failed)? {
            for record in response.records {
                let record = Record::decode(record).map_err(|error| error.to_string())?;
                let Some(Value::StringValue(text)) = record.body.and_then(|body| body.value) else {
                    return Err("a record has no text".to_owned());
                };
                let position = (record.time_unix_nano, record.sequence);
                if text != record.sequence.to_string() || position < last {
                    return Err(format!("{text} at {position:?} behind {last:?}"));
                }
                last = position;
                *found.entry(record.sequence).or_insert(0) += 1;
            }
        }
        Ok(found)
    }
}

/// What the process does until it is killed.
pub(crate) async fn live(root: &Path) {
    let mut node = Node::open(root).unwrap();
    LogProgress::print("step", "create");
    node.create().await;
    for round in 0..2 {
        for _ in 0..APPENDS {
            LogProgress::print("step", "append");
            node.append().await.unwrap();
            LogProgress::print("acknowledged", node.next);
            LogProgress::print("step", "seal");
            node.flush().await.unwrap();
        }
        LogProgress::print("step", "merge");
        node.sweep().await.unwrap();
        LogProgress::print("step", "append");
        node.append().await.unwrap();
        LogProgress::print("acknowledged", node.next);
        LogProgress::print("step", "delete");
        node.elapse(2 * HOUR);
        node.sweep().await.unwrap();
        if round == 0 {
            // All but what is not sealed.
            LogProgress::print("expired", node.next - BATCH);
            LogProgress::print("step", "retention");
            node.clock.advance(RETENTION + Duration::from_secs(1));
            node.sweep().await.unwrap();
            // Removed segments can be restored for a day.
            node.elapse(26 * HOUR);
            node.sweep().await.unwrap();
        }
    }
}

/// Checks what a cut left.
pub(crate) async fn check(root: &Path, progress: &LogProgress) -> Result<(), String> {
    let mut node = Node::open(root)?;
    // Later than all that happened before.
    node.elapse(60 * HOUR);
    let Some(stats) = node.stats().await? else {
        let is_lost = progress.is_created;
        return if is_lost { Err("the stream is lost".to_owned()) } else { Ok(()) };
    };
    let next = stats.next_sequence;
    if next != progress.acknowledged && next != progress.acknowledged + BATCH {
        return Err(format!("{next} records of {} acknowledged ones", progress.acknowledged));
    }
    let found = node.sequences().await?;
    verify(&found, progress.expired..next)?;
    let records = stats.segment_records + stats.unsealed_records;
    if records != found.len() as u64 {
        return Err(format!("the stream counts {records} records, {} are read", found.len()));
    }
    // It works on, and what the cut interrupted is completed or cleared away.
    node.next = next;
    node.append().await?;
    node.flush().await?;
    for _ in 0..3 {
        node.sweep().await?;
        node.elapse(26 * HOUR);
    }
    node.sweep().await?;
    let after = node.sequences().await?;
    verify(&after, progress.expired..next + BATCH)?;
    if after.len() != found.len() + BATCH as usize {
        return Err(format!("{} records were {}", after.len(), found.len()));
    }
    let segments = node.stats().await?.unwrap_or_default().segments;
    let files = files(&root.join("log")).map_err(|error| error.to_string())?;
    if files.len() as u64 != segments {
        return Err(format!("{segments} segments, but files {files:?}"));
    }
    Ok(())
}

/// Every record of a range is there, and each is there once.
fn verify(found: &BTreeMap<u64, u32>, due: std::ops::Range<u64>) -> Result<(), String> {
    if let Some((sequence, count)) = found.iter().find(|(_, count)| **count > 1) {
        return Err(format!("record {sequence} is there {count} times"));
    }
    if let Some(sequence) = found.keys().find(|sequence| **sequence >= due.end) {
        return Err(format!("record {sequence} was never appended"));
    }
    match due.into_iter().find(|sequence| !found.contains_key(sequence)) {
        Some(sequence) => Err(format!("record {sequence} is lost")),
        None => Ok(()),
    }
}

fn files(directory: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path.display().to_string());
        }
    }
    Ok(found)
}
