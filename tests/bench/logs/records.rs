//! Records of about 360 B as OTLP and 590 B as a JSON line, in batches that are encoded before the measurement.

use bytes::Bytes;
use prost::Message as _;
use trestle_proto::{
    log::v1::{AppendRecordsRequest, wire::ExportLogsServiceRequest},
    opentelemetry::proto::{
        common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
        logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
        resource::v1::Resource,
    },
};

pub(super) const EXPORT: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
pub(super) const APPEND: &str = "/trestle.log.v1.LogService/AppendRecords";
/// Distinct records of a load. Those that repeat are farther apart than a compressor looks back.
const DISTINCT: u64 = 64_000;
/// Bytes of a record before and in their values: the time, the trace and the observed time.
const TIME_TAG: [u8; 1] = [0x09];
const TRACE_TAG: [u8; 2] = [0x4a, 16];
const OBSERVED_TAG: [u8; 1] = [0x59];

/// Batches of records, whose times and traces are new in each.
pub(super) struct LogLoad {
    pub(super) path: &'static str,
    /// Records of a batch.
    pub(super) batch: u64,
    templates: Vec<BatchTemplate>,
    times: LoadTimes,
}

/// The times of records.
#[derive(Clone, Copy)]
pub(super) struct LoadTimes {
    /// That of the first record, in nanoseconds since 1970.
    pub(super) begin: u64,
    /// Nanoseconds between two.
    pub(super) step: u64,
}

/// An encoded batch, and where the times and the trace of each of its records are.
struct BatchTemplate {
    message: Vec<u8>,
    records: Vec<[usize; 3]>,
}

impl LogLoad {
    /// Batches of so many records for a call of `path` to a stream.
    pub(super) fn new(path: &'static str, stream: &str, batch: u64, times: LoadTimes) -> Self {
        Self::of_distinct(DISTINCT, path, stream, batch, times)
    }

    /// Batches of so many distinct records.
    pub(super) fn of_distinct(
        distinct: u64,
        path: &'static str,
        stream: &str,
        batch: u64,
        times: LoadTimes,
    ) -> Self {
        let templates = (0..distinct / batch).map(|number| {
            let numbers = number * batch..(number + 1) * batch;
            BatchTemplate::new(path, stream, numbers.map(record).collect())
        });
        Self { path, batch, templates: templates.collect(), times }
    }

    /// The encoded call of a batch.
    pub(super) fn message(&self, number: u64) -> Bytes {
        let index = usize::try_from(number).unwrap() % self.templates.len();
        let template = self.templates.get(index).unwrap();
        let mut message = template.message.clone();
        let mut put = |at: usize, bytes: &[u8]| {
            message.get_mut(at..at + bytes.len()).unwrap().copy_from_slice(bytes);
        };
        for (number, [time, trace, observed]) in (number * self.batch..).zip(&template.records) {
            let at = self.time(number);
            put(*time, &at.to_le_bytes());
            put(*trace, &trace_of(number));
            put(*observed, &(at + mix(number ^ 1) % 1_000_000).to_le_bytes());
        }
        message.into()
    }

    /// The time of a record.
    pub(super) fn time(&self, number: u64) -> u64 {
        let LoadTimes { begin, step } = self.times;
        begin + number * step + mix(number) % step
    }

    /// The records of a batch as lines of JSON.
    pub(super) fn json_lines(&self, stream: &str, number: u64) -> String {
        let numbers = number * self.batch..(number + 1) * self.batch;
        let lines = numbers.map(|number| {
            let mut record = record(number % DISTINCT);
            record.time_unix_nano = self.time(number);
            record.observed_time_unix_nano = self.time(number) + mix(number ^ 1) % 1_000_000;
            record.trace_id = Bytes::copy_from_slice(&trace_of(number));
            line(stream, &record) + "\n"
        });
        lines.collect()
    }
}

impl BatchTemplate {
    fn new(path: &str, stream: &str, records: Vec<LogRecord>) -> Self {
        let keys: Vec<_> = records
            .iter()
            .map(|record| {
                let time = [&TIME_TAG[..], &record.time_unix_nano.to_le_bytes()].concat();
                let trace = [&TRACE_TAG[..], &record.trace_id].concat();
                let observed = &record.observed_time_unix_nano.to_le_bytes();
                [time, trace, [&OBSERVED_TAG[..], observed].concat()]
            })
            .collect();
        let message = match path {
            EXPORT => export(stream, records),
            _ => append(stream, &records),
        };
        let mut from = 0;
        let mut find = |key: &Vec<u8>, tag: usize| {
            let rest = message.get(from..).unwrap();
            from += rest.windows(key.len()).position(|found| found == key).unwrap() + key.len();
            from - key.len() + tag
        };
        let records = keys
            .iter()
            .map(|[time, trace, observed]| [find(time, 1), find(trace, 2), find(observed, 1)]);
        let records = records.collect();
        Self { message, records }
    }
}

/// Spreads a number over 64 bits.
pub(super) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The trace of a record.
pub(super) fn trace_of(number: u64) -> [u8; 16] {
    let (high, low) = (u128::from(mix(number)), u128::from(mix(!number) | 1));
    (high << 64 | low).to_be_bytes()
}

pub(super) fn pair(key: &str, value: Value) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value }
}

pub(super) fn text(value: impl Into<String>) -> Value {
    Value::StringValue(value.into())
}

pub(super) fn resource(stream: &str) -> Vec<KeyValue> {
    let host = pair("host.name", text("node-17.example"));
    vec![pair("service.name", text(stream)), pair("service.version", text("4.21.0")), host]
}

pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope { name: "http.server".to_owned(), ..Default::default() }
}

fn export(stream: &str, log_records: Vec<LogRecord>) -> Vec<u8> {
    let scope_logs = vec![ScopeLogs { scope: Some(scope()), log_records, ..Default::default() }];
    let resource = Some(Resource { attributes: resource(stream), ..Default::default() });
    let logs = ResourceLogs { resource, scope_logs, ..Default::default() };
    ExportLogsServiceRequest { resource_logs: vec![logs.encode_to_vec().into()] }.encode_to_vec()
}

fn append(stream: &str, records: &[LogRecord]) -> Vec<u8> {
    let encoded = |pair: KeyValue| pair.encode_to_vec().into();
    AppendRecordsRequest {
        stream: stream.to_owned(),
        records: records.iter().map(|record| record.encode_to_vec().into()).collect(),
        resource: resource(stream).into_iter().map(encoded).collect(),
        scope: Some(scope().encode_to_vec().into()),
        ..Default::default()
    }
    .encode_to_vec()
}

/// A record of a web service. Its words vary as those of real logs do: most of a line is one of few texts.
fn record(number: u64) -> LogRecord {
    let random = |salt: u64, below: u64| mix(number.wrapping_mul(31).wrapping_add(salt)) % below;
    let routes = ["/cart", "/cart/{id}", "/orders/{id}", "/products/{id}/reviews", "/search"];
    let choose = |salt, texts: &[&'static str]| {
        let index = usize::try_from(random(salt, texts.len() as u64)).unwrap();
        *texts.get(index).unwrap()
    };
    let (severity, name) = match random(1, 100) {
        0 => (17, "ERROR"),
        1..5 => (13, "WARN"),
        5..10 => (5, "DEBUG"),
        _ => (9, "INFO"),
    };
    let status = if severity == 17 { 500 } else { 200 + 4 * i64::from(random(2, 20) == 0) };
    let (user, session) = (random(3, 20_000), random(4, u64::MAX));
    let micros = random(5, 900) + random(6, 90) * random(7, 1000);
    let (size, node) = (random(8, 40_000), random(9, 12));
    let body = match random(10, 5) {
        0 => format!("cache lookup for session {session:016x} in shard {node} took {micros} us"),
        1 => format!("request of user {user} handled by worker {node}, {size} bytes, {micros} us"),
        2 => {
            format!("SELECT from orders WHERE user_id = {user} returned {node} rows in {micros} us")
        }
        3 => format!("published order event {session:016x} to partition {node}, offset {size}"),
        _ => format!("upstream inventory-{node} answered with {size} bytes after {micros} us"),
    };
    let body = format!("{body}; connection {} kept open for the next request", random(11, 5000));
    let address = format!("10.{}.{}.{}", node, random(12, 40), random(13, 250));
    let attributes = vec![
        pair("http.request.method", text(choose(14, &["GET", "GET", "GET", "POST"]))),
        pair("http.route", text(choose(15, &routes))),
        pair("http.response.status_code", Value::IntValue(status)),
        pair("client.address", text(address)),
        pair("user.id", text(format!("u-{user:05}"))),
        pair("duration_ms", Value::DoubleValue(micros as f64 / 1000.0)),
    ];
    LogRecord {
        time_unix_nano: mix(number ^ 0x7174),
        observed_time_unix_nano: mix(number ^ 0x6f62),
        severity_number: severity,
        severity_text: name.to_owned(),
        body: Some(AnyValue { value: Some(text(body)) }),
        attributes,
        flags: 1,
        trace_id: Bytes::copy_from_slice(&trace_of(number)),
        span_id: Bytes::copy_from_slice(&random(16, u64::MAX).to_be_bytes()),
        ..Default::default()
    }
}

/// A record as JSON.
fn line(stream: &str, record: &LogRecord) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let time = |nanos: u64| {
        let time = time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(nanos)).unwrap();
        time.format(&time::format_description::well_known::Rfc3339).unwrap()
    };
    let value = |value: &Option<AnyValue>| match value.as_ref().unwrap().value.as_ref().unwrap() {
        Value::StringValue(text) => serde_json::Value::from(text.as_str()),
        Value::IntValue(number) => (*number).into(),
        Value::DoubleValue(number) => (*number).into(),
        other => panic!("no such value: {other:?}"),
    };
    let object = |pairs: &[KeyValue]| -> serde_json::Map<String, serde_json::Value> {
        pairs.iter().map(|pair| (pair.key.clone(), value(&pair.value))).collect()
    };
    serde_json::json!({
        "time": time(record.time_unix_nano),
        "observed_time": time(record.observed_time_unix_nano),
        "severity_number": record.severity_number,
        "severity_text": record.severity_text,
        "body": value(&record.body),
        "attributes": object(&record.attributes),
        "resource": object(&resource(stream)),
        "trace_id": hex(&record.trace_id),
        "span_id": hex(&record.span_id),
        "flags": record.flags,
    })
    .to_string()
}
