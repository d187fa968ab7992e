//! Exports of OTLP logs: which records are stored, and what the answer reports of the others.

use trestle_proto::opentelemetry::proto::{
    common::v1::{InstrumentationScope, KeyValue},
    logs::v1::{LogRecord, ScopeLogs},
    resource::v1::Resource,
};

use super::*;
use crate::batch::encode::BATCH_RECORDS_MAX;

pub(super) fn pair(key: &str, value: AnyValue) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(value) }
}

fn resource(service: &str) -> Option<Resource> {
    let attributes = vec![pair("service.name", text(service))];
    Some(Resource { attributes, ..Resource::default() })
}

pub(super) fn log(body: &str) -> LogRecord {
    LogRecord { time_unix_nano: NOW, body: Some(text(body)), ..LogRecord::default() }
}

pub(super) fn scope_logs(log_records: Vec<LogRecord>) -> ScopeLogs {
    ScopeLogs { log_records, ..ScopeLogs::default() }
}

pub(super) fn logs(resource: Option<Resource>, scope_logs: Vec<ScopeLogs>) -> Bytes {
    ResourceLogs { resource, scope_logs, ..ResourceLogs::default() }.encode_to_vec().into()
}

/// The batch of one resource with one scope, and what it leaves out.
pub(super) fn exported(records: Vec<LogRecord>) -> (Option<EncodedBatch>, Rejected) {
    batch_of::<ResourceLogs>(&[logs(resource("web"), vec![scope_logs(records)])])
}

/// The records of a batch, as a read returns them.
pub(super) fn stored(batch: &EncodedBatch) -> Vec<Record> {
    let rows = BatchView::parse(&batch.bytes).unwrap().rows(0);
    rows.map(|row| {
        let read = UnsealedRow::parse(row.unwrap()).unwrap().encode(RecordFields::ALL).unwrap();
        Record::decode(read).unwrap()
    })
    .collect()
}

fn bodies(batch: &EncodedBatch) -> Vec<String> {
    let body = |record: Record| match record.body.and_then(|body| body.value) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{other:?}"),
    };
    stored(batch).into_iter().map(body).collect()
}

#[test]
fn valid_records_are_stored_and_the_others_named_by_their_place() {
    let records = vec![
        log("first"),
        LogRecord { time_unix_nano: NOW + DAY + 1, ..log("the day after tomorrow") },
        log(&"x".repeat(RECORD_BYTES)),
        log("last"),
    ];

    let (batch, rejected) = exported(records);

    let batch = batch.unwrap();
    assert_eq!((batch.records, bodies(&batch)), (2, vec!["first".into(), "last".into()]));
    assert_eq!(rejected.count, 2);
    for part in ["log_records[1].time_unix_nano: is out of range", "log_records[2]: has 1048"] {
        assert!(rejected.message.contains(part), "{part}: {}", rejected.message);
    }
    let reasons: Vec<_> = rejected.by_reason().collect();
    assert_eq!(reasons, [("RECORD_TIME_OUT_OF_RANGE", 1), ("RECORD_TOO_LARGE", 1)]);
}

#[test]
fn an_answer_names_a_few_reasons_however_many_records_are_bad() {
    let bad = LogRecord { time_unix_nano: NOW + DAY + 1, ..log("bad") };

    let (batch, rejected) = exported(vec![bad; 5_000]);

    assert_eq!((batch, rejected.count), (None, 5_000));
    assert_eq!(rejected.message.matches("time_unix_nano").count(), 5);
    assert!(rejected.message.ends_with("; and others"), "{}", rejected.message);
}

#[test]
fn the_reasons_of_several_streams_are_merged_within_bounds() {
    let error = RecordError::invalid("a", "is bad");
    let mut one = Rejected::default();
    one.add(2, "one", &error);
    let mut all = Rejected::default();
    all.merge(&Rejected::default());
    assert_eq!(all, Rejected::default());
    for _ in 0..1_000 {
        all.merge(&one);
    }
    assert_eq!(all.count, 2_000);
    assert_eq!(all.by_reason().collect::<Vec<_>>(), [("INVALID_RECORD", 2_000)]);
    assert_eq!(all.message.matches("one.a: is bad").count(), 5);
    assert!(all.message.len() < 200, "{}", all.message.len());
}

#[test]
fn a_malformed_resource_or_scope_rejects_its_records_and_no_others() {
    let bad = Some(Resource { attributes: vec![pair("~", text(""))], ..Resource::default() });
    let of_resource = [
        not_utf8(&ResourceLogs {
            resource: bad,
            scope_logs: vec![scope_logs(vec![log("a"), log("b")]), scope_logs(vec![log("c")])],
            ..ResourceLogs::default()
        }),
        logs(resource("web"), vec![scope_logs(vec![log("kept")])]),
    ];
    let (batch, rejected) = batch_of::<ResourceLogs>(&of_resource);
    assert_eq!(bodies(&batch.unwrap()), ["kept"]);
    assert_eq!(rejected.count, 3);
    assert!(rejected.message.starts_with("resource_logs[0].resource.attributes: text is not UTF"));

    let scope = InstrumentationScope { name: "~".to_owned(), ..InstrumentationScope::default() };
    let bad = ScopeLogs { scope: Some(scope), ..scope_logs(vec![log("a"), log("b")]) };
    let of_scope = not_utf8(&ResourceLogs {
        scope_logs: vec![bad, scope_logs(vec![log("kept")])],
        ..ResourceLogs::default()
    });
    let (batch, rejected) = batch_of::<ResourceLogs>(&[of_scope]);
    assert_eq!(bodies(&batch.unwrap()), ["kept"]);
    assert_eq!(rejected.count, 2);
    assert!(rejected.message.contains("[0].scope: text is not UTF-8"), "{}", rejected.message);
}

#[test]
fn resources_have_their_stream_and_those_without_records_none() {
    let one = |service, body| logs(resource(service), vec![scope_logs(vec![log(body)])]);
    let empty_scope = logs(resource("idle"), vec![scope_logs(Vec::new())]);
    let unnamed = logs(None, vec![scope_logs(vec![log("d")])]);
    let requests =
        [one("Web", "a"), one("api", "b"), one("web", "c"), unnamed, Bytes::new(), empty_scope];

    let streams = resources_by_stream::<ResourceLogs>(&requests, stream_of_resource).unwrap();

    let found: Vec<_> = streams
        .iter()
        .map(|(stream, logs)| {
            let exported = batches_of_resources::<ResourceLogs>(logs, TIMES, BatchRoom::default());
            let batch = only(exported.unwrap().batches);
            (stream.as_str(), bodies(&batch.unwrap()))
        })
        .collect();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        found,
        [("api", texts(&["b"])), ("unknown_service", texts(&["d"])), ("web", texts(&["a", "c"]))]
    );
    assert!(resources_by_stream::<ResourceLogs>(&[], stream_of_resource).unwrap().is_empty());
}

#[test]
fn records_have_the_resource_and_the_scope_around_them() {
    let scope = |name: &str| {
        let name = name.to_owned();
        Some(InstrumentationScope { name, ..InstrumentationScope::default() })
    };
    let scoped = |name, body| ScopeLogs { scope: scope(name), ..scope_logs(vec![log(body)]) };
    let requests = [
        logs(resource("web"), vec![scoped("x", "a"), scope_logs(vec![log("b")]), scoped("y", "c")]),
        logs(None, vec![scoped("x", "d")]),
    ];
    let (batch, _) = batch_of::<ResourceLogs>(&requests);

    let stored = stored(&batch.unwrap());

    let origins: Vec<_> = stored
        .iter()
        .map(|record| {
            let scope = record.scope.as_ref().map_or("-", |scope| scope.name.as_str());
            (scope, record.resource.contains_key("service.name"), record.sequence)
        })
        .collect();
    assert_eq!(origins, [("x", true, 0), ("-", true, 1), ("y", true, 2), ("x", false, 3)]);
}

#[test]
fn a_request_that_is_malformed_around_its_records_is_rejected_as_a_whole() {
    let good = logs(resource("web"), vec![scope_logs(vec![log("a")])]);
    let malformed: [&[u8]; 6] = [
        b"\x0A\x05abc",
        b"\x08\x01",
        b"\x12\x02\x0A\x05",
        b"\x12\x02\x10\x01",
        b"\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
        b"\x00",
    ];
    for bad in malformed {
        let requests = [good.clone(), Bytes::copy_from_slice(bad)];
        let error = resources_by_stream::<ResourceLogs>(&requests, stream_of_resource)
            .expect_err("malformed");
        assert_eq!(error.field, "resource_logs[1]", "{bad:?}");
        assert_eq!(error.reason, Reason::InvalidRecord, "{bad:?}");
    }
}

#[test]
fn a_batch_has_no_memory_for_the_records_that_were_rejected() {
    let large = |time_unix_nano| LogRecord { time_unix_nano, ..log(&"x".repeat(10_000)) };
    let (batch, _) = exported([vec![large(u64::MAX); 100], vec![large(NOW)]].concat());
    let batch = batch.unwrap().bytes.try_into_mut().unwrap();
    assert!(batch.capacity() < 2 * batch.len(), "{} of {}", batch.capacity(), batch.len());
}

#[test]
fn texts_that_are_not_utf8_reject_their_record_only() {
    let mut bad = Vec::new();
    trestle_proto::wire::put_bytes(&mut bad, 3, b"\xFF");
    let mut body = Vec::new();
    trestle_proto::wire::put_bytes(&mut body, 5, b"\x0A\x01\xFF");
    let mut key = Vec::new();
    trestle_proto::wire::put_bytes(&mut key, 6, b"\x0A\x01\xFF");
    let mut of_scope = Vec::new();
    for record in [bad, body, key, log("kept").encode_to_vec()] {
        trestle_proto::wire::put_bytes(&mut of_scope, 2, &record);
    }
    let mut request = Vec::new();
    trestle_proto::wire::put_bytes(&mut request, 2, &of_scope);

    let (batch, rejected) = batch_of::<ResourceLogs>(&[request.into()]);

    assert_eq!(bodies(&batch.unwrap()), ["kept"]);
    assert_eq!((rejected.count, rejected.message.matches("not UTF-8").count()), (3, 3));
}

#[test]
fn records_of_too_many_days_are_rejected_and_the_first_days_stored() {
    let of_day = |day: u64| LogRecord { time_unix_nano: NOW - day * DAY, ..log("x") };
    let days = DAYS_MAX as u64;
    // A day that is there already is none too many.
    let records = (0..days + 5).chain([0, days - 1, days]).map(of_day).collect();

    let (batch, rejected) = exported(records);

    assert_eq!(u64::from(batch.unwrap().records), days + 2);
    assert_eq!(rejected.count, 6);
    assert!(rejected.message.contains("at most 1000 days"), "{}", rejected.message);

    let records: Vec<_> = (0..=days)
        .map(|day| Record { time_unix_nano: NOW - day * DAY, ..Record::default() })
        .collect();
    let request = samples::append(&records, &Default::default(), None);
    let error = batch_of_append(&request, TIMES).expect_err("a day too many");
    assert_eq!(error.field, "records[1000].time_unix_nano");
    assert_eq!(error.reason, Reason::RecordTimeOutOfRange);
}

#[test]
fn a_batch_is_bounded_however_many_scopes_repeat_a_resource() {
    // 20,000 scopes with a record each and a resource of 50 KB: 1 GB for those who read a request of 700 KB.
    let attributes = vec![pair("large", text(&"x".repeat(50_000)))];
    let large = Some(Resource { attributes, ..Resource::default() });
    let scopes = vec![scope_logs(vec![log("a")]); 20_000];

    let (batch, rejected) = batch_of::<ResourceLogs>(&[logs(large, scopes)]);

    let batch = batch.unwrap();
    // The resource is stored once.
    assert!((50_000..200_000).contains(&batch.bytes.len()), "{}", batch.bytes.len());
    assert!((2_600..2_700).contains(&batch.records), "{}", batch.records);
    assert_eq!(rejected.count, u64::from(20_000 - batch.records));
    assert!(rejected.message.contains("have over 134217728 bytes"), "{}", rejected.message);
    let (none, rejected) =
        batch_within::<ResourceLogs>(&[logs(None, vec![scope_logs(vec![log("a")])])], 50);
    assert_eq!((none, rejected.count), (None, 1));
}

#[test]
fn groups_have_their_own_resource_however_it_is_stored() {
    let named = |service: &str, scopes: &[&str]| {
        logs(resource(service), scopes.iter().map(|body| scope_logs(vec![log(body)])).collect())
    };
    let plain = logs(None, vec![scope_logs(vec![log("e")]), scope_logs(vec![log("f")])]);
    let requests =
        [named("web", &["a", "b"]), named("api", &["c", "d"]), plain, named("web", &["g"])];

    let (batch, _) = batch_of::<ResourceLogs>(&requests);

    let service = |record: &Record| match record.resource.get("service.name") {
        Some(AnyValue { value: Some(Value::StringValue(name)) }) => name.clone(),
        _ => String::new(),
    };
    let services: Vec<_> = stored(&batch.unwrap()).iter().map(service).collect();
    assert_eq!(services, ["web", "web", "api", "api", "", "", "web"]);
}

#[test]
fn an_append_that_no_value_of_the_store_can_have_is_rejected() {
    let large = Record { body: Some(text(&"x".repeat(RECORD_BYTES - 100))), ..Record::default() };
    let request = |count| samples::append(&vec![large.clone(); count], &Default::default(), None);

    assert!(batch_of_append(&request(7), TIMES).is_ok());
    let error = batch_of_append(&request(8), TIMES).expect_err("over 8 MiB");
    assert_eq!((error.reason, error.field.as_str()), (Reason::RecordTooLarge, "records[7]"));
}

#[test]
fn the_records_of_a_batch_are_bounded_with_the_resource_that_each_is_read_with() {
    let resource = |chars| {
        let attributes = vec![pair("large", text(&"x".repeat(chars)))];
        Some(Resource { attributes, ..Resource::default() })
    };
    let many = || vec![scope_logs(vec![log("a"); 10_000])];

    let (batch, rejected) = batch_of::<ResourceLogs>(&[logs(resource(50_000), many())]);
    let records = batch.unwrap().records;
    assert!((2_600..2_700).contains(&records), "{records}");
    assert_eq!(rejected.count, u64::from(10_000 - records));
    assert!(rejected.message.contains("have over 134217728 bytes"), "{}", rejected.message);
}

#[test]
fn a_stream_takes_so_many_records_of_a_request_however_small() {
    let empty = |count| exported(vec![LogRecord::default(); count]);

    let (batch, rejected) = empty(BATCH_RECORDS_MAX);
    assert_eq!((batch.unwrap().records as usize, rejected.count), (BATCH_RECORDS_MAX, 0));

    let (batch, rejected) = empty(BATCH_RECORDS_MAX + 2);
    assert_eq!((batch.unwrap().records as usize, rejected.count), (BATCH_RECORDS_MAX, 2));
    let text = ".log_records[300000]: is one too many: a stream takes 300000 records of a request";
    assert!(rejected.message.contains(text), "{}", rejected.message);
}

/// A resource with so many records of 10 KB.
fn large_logs(records: usize) -> Bytes {
    logs(resource("web"), vec![scope_logs(vec![log(&"x".repeat(10_000)); records])])
}

#[test]
fn a_large_request_has_more_than_one_batch() {
    let room = |bytes| BatchRoom { bytes, ..BatchRoom::default() };
    let requests = [large_logs(900), large_logs(1_000)];

    let exported = export_within::<ResourceLogs>(&requests, room(96 << 20)).unwrap();

    assert_eq!(exported.rejected, Rejected::default());
    assert_eq!((exported.batches.len(), exported.days), (3, 1));
    let records: usize = exported.batches.iter().map(|batch| stored(batch).len()).sum();
    assert_eq!(records, 1_900);
    for batch in &exported.batches {
        assert!(batch.bytes.len() <= BATCH_BYTES_MAX);
        assert!(stored(batch).iter().all(|record| record.resource.contains_key("service.name")));
    }

    // What is left of a request.
    let exported = export_within::<ResourceLogs>(&requests, room(10_000_000)).unwrap();
    let bytes: usize = exported.batches.iter().map(|batch| batch.bytes.len()).sum();
    assert!(exported.batches.len() == 2 && bytes <= 10_000_000, "{bytes}");
    let stored: u32 = exported.batches.iter().map(|batch| batch.records).sum();
    assert_eq!(exported.rejected.count, 1_900 - u64::from(stored));
    assert!(exported.rejected.message.contains("over 10000000 bytes"), "{:?}", exported.rejected);
}
