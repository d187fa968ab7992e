//! A service on stores in memory, for tests.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use object_store::ObjectStore;
use opentelemetry::metrics::{Meter, MeterProvider as _, noop::NoopMeterProvider};
use prost::Message as _;
use trestle_kv::{ChangeSpec, Engine, MemoryEngine, Reads, Writes, transact};
use trestle_model::name::AccountName;
use trestle_model::time::{Clock, ManualClock, Ticks};
use trestle_objects::ObjectArea;
use trestle_proto::{
    log::v1::{AppendRecordsRequest, Record},
    opentelemetry::proto::common::v1::{AnyValue, KeyValue, any_value::Value},
};

use crate::{
    append::{AppendOutcome, NewBatch},
    batch::batch_of_append,
    error::LogError,
    keys,
    keys::{KEYSPACES, StreamRow},
    logs::Logs,
    names::StreamName,
    placement::StreamPlacement,
    read::ReadPlan,
    record::RecordFields,
    stream::{Head, StreamId, StreamSettings},
    streams::OpenStream,
    sweep::LogSweeper,
};

/// A second in nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// When a fixture begins, in nanoseconds since 1970: noon of a day.
pub(crate) const START: u64 = 1_800_014_400 * SECOND;

/// Streams on stores in memory, and their clock.
pub(crate) struct LogFixture {
    pub(crate) logs: Logs,
    pub(crate) sweeper: LogSweeper,
    clock: Arc<ManualClock>,
}

/// A meter that records nothing.
pub(crate) fn meter() -> Meter {
    NoopMeterProvider::new().meter("log")
}

/// Numbers that differ.
fn next_id() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed).into()
}

impl LogFixture {
    pub(crate) fn new() -> Self {
        Self::on(ObjectArea::in_memory())
    }

    /// With this object store.
    pub(crate) fn on_store(store: Arc<dyn ObjectStore>) -> Self {
        Self::on(ObjectArea::of(store))
    }

    /// With this area of objects.
    pub(crate) fn on(area: ObjectArea) -> Self {
        Self::wrapped(area, |engine| engine)
    }

    /// With this area of objects, on an engine around the one in memory.
    pub(crate) fn wrapped(
        area: ObjectArea,
        wrap: impl FnOnce(Arc<dyn Engine>) -> Arc<dyn Engine>,
    ) -> Self {
        let clock = clock_at_start();
        let engine = Arc::new(MemoryEngine::with_clock(KEYSPACES, Arc::clone(&clock) as _));
        Self::with_clock(area, wrap(engine), clock)
    }

    /// With this area of objects, on an engine that has this clock.
    pub(crate) fn with_clock(
        area: ObjectArea,
        engine: Arc<dyn Engine>,
        clock: Arc<ManualClock>,
    ) -> Self {
        let logs = Logs::new(engine, area, next_id);
        Self { sweeper: LogSweeper::new(logs.clone()), logs, clock }
    }

    /// Another process on the same stores.
    pub(crate) fn reopened(&self) -> Self {
        self.reopened_on(Arc::clone(&self.logs.engine))
    }

    /// Another process on the same objects and this engine.
    pub(crate) fn reopened_on(&self, engine: Arc<dyn Engine>) -> Self {
        let logs = Logs::new(engine, self.logs.area.clone(), next_id);
        Self { sweeper: LogSweeper::new(logs.clone()), logs, clock: Arc::clone(&self.clock) }
    }

    /// Works in the background on the streams that are placed here.
    pub(crate) fn place(&mut self, placement: Arc<dyn StreamPlacement>) {
        self.logs.placement = Some(placement);
        self.sweeper = LogSweeper::new(self.logs.clone());
    }

    /// Time passes.
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// The wall clock steps by so many seconds while no time passes.
    pub(crate) fn step(&self, seconds: i64) {
        let by = Duration::from_secs(seconds.unsigned_abs());
        let now = self.clock.now();
        self.clock.set(if seconds < 0 { now.before(by) } else { now.after(by) });
    }

    pub(crate) async fn stream(&self, settings: StreamSettings) -> Arc<OpenStream> {
        let (account, name) = (account(), name("web"));
        self.logs.streams.create(&account, &name, settings).await.expect("created");
        self.logs.open(&account, &name).await.expect("opened")
    }

    /// A stream with the default settings.
    pub(crate) async fn plain_stream(&self) -> Arc<OpenStream> {
        self.stream(StreamSettings::default()).await
    }

    /// Appends records.
    pub(crate) async fn append(
        &self,
        stream: &Arc<OpenStream>,
        records: &[Record],
    ) -> Result<AppendOutcome, LogError> {
        self.append_as(stream, records, |batch| batch).await
    }

    /// Appends records in a batch that differs.
    pub(crate) async fn append_as(
        &self,
        stream: &Arc<OpenStream>,
        records: &[Record],
        change: impl FnOnce(NewBatch) -> NewBatch,
    ) -> Result<AppendOutcome, LogError> {
        let batch = change(self.batch(stream, records));
        Ok(self.logs.append(vec![(Arc::clone(stream), batch)]).await?[0])
    }

    /// A batch of records.
    pub(crate) fn batch(&self, stream: &OpenStream, records: &[Record]) -> NewBatch {
        self.batch_of(stream, records, &BTreeMap::new())
    }

    /// A batch of records with a resource of texts.
    pub(crate) fn batch_of(
        &self,
        stream: &OpenStream,
        records: &[Record],
        resource: &BTreeMap<String, String>,
    ) -> NewBatch {
        let records = records.iter().map(|record| record.encode_to_vec().into()).collect();
        let entry = |(key, text): (&String, &String)| {
            let value = Some(AnyValue { value: Some(Value::StringValue(text.clone())) });
            KeyValue { key: key.clone(), value }.encode_to_vec().into()
        };
        let resource = resource.iter().map(entry).collect();
        let request = AppendRecordsRequest { records, resource, ..Default::default() };
        let times = self.logs.clocks().record_times(None);
        let encoded = batch_of_append(&request, times).expect("valid");
        NewBatch {
            stream: stream.record.id,
            name: stream.name.clone(),
            parts: vec![encoded],
            request_id: None,
            expected_next_sequence: None,
            charged: None,
        }
    }

    pub(crate) async fn head(&self, id: StreamId) -> Option<Head> {
        self.logs.streams.head(id).await.expect("readable")
    }

    /// Every record of a stream, as a read returns it.
    pub(crate) async fn read_all(&self, stream: &OpenStream) -> Result<Vec<Record>, LogError> {
        self.read(stream, plan()).await
    }

    /// The records of a plan.
    pub(crate) async fn read(
        &self,
        stream: &OpenStream,
        plan: ReadPlan,
    ) -> Result<Vec<Record>, LogError> {
        let (_, mut rows) = self.logs.read(stream, plan).await?;
        let mut records = Vec::new();
        while let Some(more) = rows.next(7, 1024).await? {
            assert!(more.len() <= 7, "rows are bounded");
            records.extend(more.into_iter().map(|row| Record::decode(row.record).expect("valid")));
        }
        Ok(records)
    }

    /// How many rows of a kind a stream has.
    pub(crate) async fn count(&self, row: StreamRow, id: StreamId) -> usize {
        let limit = trestle_kv::ScanLimit { rows: 100_000, bytes: usize::MAX };
        let scan = self.logs.engine.scan(&keys::rows(row, id), limit).await;
        scan.expect("readable").entries.len()
    }

    /// Replaces a row.
    pub(crate) async fn put(&self, row: bytes::Bytes, value: &'static str) {
        let domain = match keys::row_of(&row) {
            Some(_) => keys::stream_domain(keys::stream_of(&row).expect("a row of a stream")),
            None => keys::own_domain(&row),
        };
        let decide = move |_: &Reads<'_>, _| {
            let mut writes = Writes::new();
            writes.put(row.clone(), value);
            Ok::<_, LogError>((writes, ()))
        };
        let put = transact(&*self.logs.engine, ChangeSpec::new(domain), decide).await;
        put.expect("written").expect("written");
    }

    /// The paths of all objects, sorted.
    pub(crate) async fn objects(&self) -> Vec<String> {
        use futures::TryStreamExt as _;
        let listed = self.logs.area.store.list(None).map_ok(|meta| meta.location.to_string());
        let mut paths: Vec<_> = listed.try_collect().await.expect("listed");
        paths.sort();
        paths
    }

    /// Runs the background work until nothing remains.
    pub(crate) async fn sweep(&self) {
        for _ in 0..1000 {
            if !self.sweeper.tick().await.expect("swept") {
                return;
            }
        }
        panic!("the background work does not end");
    }
}

/// A clock that shows the time at which fixtures begin.
pub(crate) fn clock_at_start() -> Arc<ManualClock> {
    let start = i64::try_from(START / SECOND).expect("in range");
    Arc::new(ManualClock::new(Ticks::from_unix(start, 0).expect("in range")))
}

/// The account of every fixture.
pub(crate) fn account() -> AccountName {
    AccountName::parse("acme").expect("a valid name")
}

/// The name of a stream.
pub(crate) fn name(name: &str) -> StreamName {
    StreamName::stored(name.to_owned())
}

/// A record with a time, in nanoseconds after the start, and a text.
pub(crate) fn record(after: u64, text: &str) -> Record {
    Record {
        time_unix_nano: START + after,
        body: Some(AnyValue { value: Some(Value::StringValue(text.to_owned())) }),
        ..Record::default()
    }
}

/// The texts of records.
pub(crate) fn texts(records: &[Record]) -> Vec<&str> {
    let text = |record: &'_ Record| match &record.body {
        Some(AnyValue { value: Some(Value::StringValue(_)) }) => true,
        _ => panic!("a record has no text: {record:?}"),
    };
    assert!(records.iter().all(text));
    records
        .iter()
        .filter_map(|record| match record.body.as_ref()?.value.as_ref()? {
            Value::StringValue(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// Everything, oldest first.
pub(crate) fn plan() -> ReadPlan {
    ReadPlan {
        times: 0..u64::MAX,
        is_backward: false,
        behind: None,
        predicate: None,
        fields: RecordFields::ALL,
        limit: 0,
        sequences: 0..u64::MAX,
    }
}
