//! The formats of stored batches, byte by byte: bytes that a store has must be read by every later version.

use trestle_proto::opentelemetry::proto::{
    common::v1::InstrumentationScope,
    logs::v1::{LogRecord, ScopeLogs},
    resource::v1::Resource,
};

use super::{
    logs::{log, logs, pair, scope_logs},
    *,
};

/// A batch of format 1, in which every group has its resource. The length of a group has four bytes.
const FORMAT_1: &[u8] = b"\x01\
    \x09\x00\x40\x68\x02\x6a\x41\xeb\x18\
    \x12\xac\x80\x80\x00\
        \x0a\x0a\x0a\x08\x0a\x01k\x12\x03\x0a\x01v\
        \x12\x03\x0a\x01s\
        \x1a\x0e\x09\x00\x40\x68\x02\x6a\x41\xeb\x18\x2a\x03\x0a\x01a\
        \x1a\x09\x59\xff\x3f\x68\x02\x6a\x41\xeb\x18\
    \x12\xa1\x80\x80\x00\
        \x0a\x0a\x0a\x08\x0a\x01k\x12\x03\x0a\x01v\
        \x12\x03\x0a\x01t\
        \x1a\x0e\x09\x00\x40\x68\x02\x6a\x41\xeb\x18\x2a\x03\x0a\x01b\
    \x12\x90\x80\x80\x00\
        \x1a\x0e\x09\x00\x40\x68\x02\x6a\x41\xeb\x18\x2a\x03\x0a\x01c\
    \x12\x9c\x80\x80\x00\
        \x0a\x0a\x0a\x08\x0a\x01k\x12\x03\x0a\x01v\
        \x1a\x0e\x09\x00\x40\x68\x02\x6a\x41\xeb\x18\x2a\x03\x0a\x01d";
/// The same batch of format 2, whose second group has the mark of the resource before it.
const FORMAT_2: &[u8] = b"\x02\
    \x09\x00\x40\x68\x02\x6a\x41\xeb\x18\
    \x12\xac\x80\x80\x00\
        \x0a\x0a\x0a\x08\x0a\x01k\x12\x03\x0a\x01v\
        \x12\x03\x0a\x01s\
        \x1a\x0e\x09\x00\x40\x68\x02\x6a\x41\xeb\x18\x2a\x03\x0a\x01a\
        \x1a\x09\x59\xff\x3f\x68\x02\x6a\x41\xeb\x18\
    \x12\x97\x80\x80\x00\
        \x22\x00\
        \x12\x03\x0a\x01t\
        \x1a\x0e\x09\x00\x40\x68\x02\x6a\x41\xeb\x18\x2a\x03\x0a\x01b\
    \x12\x90\x80\x80\x00\
        \x1a\x0e\x09\x00\x40\x68\x02\x6a\x41\xeb\x18\x2a\x03\x0a\x01c\
    \x12\x9c\x80\x80\x00\
        \x0a\x0a\x0a\x08\x0a\x01k\x12\x03\x0a\x01v\
        \x1a\x0e\x09\x00\x40\x68\x02\x6a\x41\xeb\x18\x2a\x03\x0a\x01d";

fn scope(name: &str) -> InstrumentationScope {
    InstrumentationScope { name: name.to_owned(), ..InstrumentationScope::default() }
}

/// A record without a time of its own.
fn observed() -> LogRecord {
    LogRecord { observed_time_unix_nano: NOW - 1, ..LogRecord::default() }
}

/// The records of both batches, as a read returns them.
fn expected() -> Vec<Record> {
    let resource = [("k".to_owned(), text("v"))].into();
    let record = |body| Record { time_unix_nano: NOW, body: Some(text(body)), ..Record::default() };
    let observed = Record { observed_time_unix_nano: NOW - 1, ..Record::default() };
    let none = Default::default();
    vec![
        samples::returned(&record("a"), &resource, Some(&scope("s")), 7),
        samples::returned(&observed, &resource, Some(&scope("s")), 8),
        samples::returned(&record("b"), &resource, Some(&scope("t")), 9),
        samples::returned(&record("c"), &none, None, 10),
        samples::returned(&record("d"), &resource, None, 11),
    ]
}

/// The records of a stored batch.
fn records(batch: &[u8]) -> Result<Vec<Record>, CorruptBatch> {
    let rows = BatchView::parse(batch)?.rows(7);
    rows.map(|row| {
        let read = UnsealedRow::parse(row?).unwrap().encode(RecordFields::ALL).unwrap();
        Ok(Record::decode(read).unwrap())
    })
    .collect()
}

#[test]
fn batches_of_both_formats_have_the_records_that_were_stored() {
    assert_eq!(records(FORMAT_1).unwrap(), expected());
    assert_eq!(records(FORMAT_2).unwrap(), expected());
}

#[test]
fn an_export_is_stored_as_exactly_the_bytes_of_format_2() {
    let resource = || {
        let attributes = vec![pair("k", text("v"))];
        Some(Resource { attributes, ..Resource::default() })
    };
    let of_scope = |name: &str, records: Vec<LogRecord>| ScopeLogs {
        scope: Some(scope(name)),
        ..scope_logs(records)
    };
    let two = vec![of_scope("s", vec![log("a"), observed()]), of_scope("t", vec![log("b")])];
    let requests = [
        logs(resource(), two),
        logs(None, vec![scope_logs(vec![log("c")])]),
        logs(resource(), vec![scope_logs(vec![log("d")])]),
    ];

    let (batch, rejected) = batch_of::<ResourceLogs>(&requests);

    assert_eq!(rejected, Rejected::default());
    assert_eq!(batch.unwrap().bytes, FORMAT_2);
}

#[test]
fn a_mark_of_a_resource_is_empty_and_of_format_2_and_after_a_group_with_one() {
    let resource = &b"\x0a\x0a\x0a\x08\x0a\x01k\x12\x03\x0a\x01v"[..];
    let record = &b"\x1a\x09\x59\xff\x3f\x68\x02\x6a\x41\xeb\x18"[..];
    let first = &[resource, record].concat()[..];
    let second = |origin: &[u8]| [origin, record].concat();
    let batch = |format: u8, groups: &[&[u8]]| {
        let mut batch = vec![format];
        trestle_proto::wire::put_fixed64(&mut batch, 1, NOW);
        groups.iter().for_each(|group| trestle_proto::wire::put_bytes(&mut batch, 2, group));
        batch
    };
    let marked = &second(b"\x22\x00")[..];
    assert_eq!(records(&batch(2, &[first, marked, marked])).unwrap().len(), 3);
    for (bytes, error) in [
        (batch(1, &[first, marked]), "group has an unknown field"),
        (batch(2, &[marked]), "group before has no resource"),
        (batch(2, &[first, record, marked]), "group before has no resource"),
        (batch(2, &[first, &second(b"\x20\x00")]), "wire type is not length-delimited"),
        (batch(2, &[first, &second(b"\x25\x00\x00\x00\x00")]), "wire type is not length-delimited"),
        (batch(2, &[first, &second(b"\x22\x01x")]), "mark of a resource is not empty"),
        (
            batch(2, &[first, &[resource, marked].concat()]),
            "group has a resource and the mark of one",
        ),
    ] {
        let error = format!("a stored batch of records is malformed: {error}");
        assert_eq!(records(&bytes).map_err(|error| error.to_string()), Err(error), "{bytes:?}");
    }
}
