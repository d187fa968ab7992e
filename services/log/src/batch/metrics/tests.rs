//! How much of a data point is encoded, and how often.

use std::cell::Cell;

use prost::Message as _;
use trestle_proto::{
    log::v1::Record,
    opentelemetry::proto::common::v1::{AnyValue, KeyValue, any_value::Value},
};

use super::{
    points::{PointNumber, WriteNumber},
    *,
};
use crate::{
    batch::{BatchRoom, BatchView, EncodedBatch, RecordTimes},
    samples::NOW,
};

/// A point that counts how often its parts are read.
#[derive(Default)]
struct CountedPoint {
    attributes: Vec<KeyValue>,
    buckets: u32,
    attributes_read: Cell<u32>,
    numbers_read: Cell<u32>,
}

impl Numbers for CountedPoint {
    fn time(&self) -> u64 {
        NOW
    }

    fn start_time(&self) -> u64 {
        0
    }

    fn attributes(&self) -> &[KeyValue] {
        self.attributes_read.set(self.attributes_read.get() + 1);
        &self.attributes
    }

    fn labels(&self) -> &'static [&'static str] {
        &["le"]
    }

    fn numbers(&self, write: WriteNumber<'_>) -> Result<(), SkippedPoint> {
        self.numbers_read.set(self.numbers_read.get() + 1);
        let number = |suffix, label| PointNumber { suffix, label, value: 1.0 };
        write(number(".count", None))?;
        let mut bounds = (0..self.buckets).map(f64::from);
        bounds.try_for_each(|bound| write(number(".bucket", Some(("le", bound)))))
    }
}

fn text(key: String, text: String) -> KeyValue {
    KeyValue { key, value: Some(AnyValue { value: Some(Value::StringValue(text)) }) }
}

fn point(buckets: u32, attributes: Vec<KeyValue>) -> CountedPoint {
    CountedPoint { attributes, buckets, ..CountedPoint::default() }
}

/// The batch of points, and which of them are rejected.
fn added(points: &[CountedPoint], room: BatchRoom) -> (EncodedBatch, Vec<bool>) {
    let times = RecordTimes { received: NOW, latest: NOW, oldest: 0 };
    let mut encoder = ExportEncoder::new(times, room, 0);
    encoder.batch.begin_resource(&[]);
    encoder.batch.begin_group(&[]);
    let metric = Metric { name: "m".to_owned(), ..Metric::default() };
    let kind = PointKind { metric: &metric, temporality: 0, is_monotonic: None };
    let mut record = Vec::new();
    let add = |point| add_point(kind, point, &mut encoder, &mut record).is_err();
    let rejected = points.iter().map(add).collect();
    (encoder.batch.finish().unwrap().batches.remove(0), rejected)
}

fn records(batch: &EncodedBatch) -> Vec<Record> {
    let rows = BatchView::parse(&batch.bytes).unwrap().rows(0);
    rows.map(|row| Record::decode(row.unwrap().record).unwrap()).collect()
}

#[test]
fn attributes_are_encoded_once_for_records_with_a_label_and_once_for_those_without() {
    let attributes = vec![text("host".to_owned(), "a".to_owned())];
    let points = [point(1_000, attributes)];

    let (batch, rejected) = added(&points, BatchRoom::default());

    assert_eq!((batch.records, rejected), (1_001, vec![false]));
    assert_eq!(points[0].attributes_read.get(), 2);
    for (index, record) in records(&batch).iter().enumerate() {
        let keys: Vec<_> = record.attributes.keys().map(String::as_str).collect();
        assert_eq!(keys, if index == 0 { vec!["host"] } else { vec!["host", "le"] });
    }
}

#[test]
fn the_records_of_a_point_without_room_are_not_made() {
    let large = || vec![text("large".to_owned(), "x".repeat(10_000))];
    let points = [point(3, large()), point(20, large()), point(4, large())];

    let room = BatchRoom { bytes: 100_000, ..BatchRoom::default() };
    let (batch, rejected) = added(&points, room);

    assert_eq!((batch.records, rejected), (9, vec![false, true, false]));
    // Measured, and written.
    let read: Vec<_> = points.iter().map(|point| point.numbers_read.get()).collect();
    assert_eq!(read, [2, 1, 2]);
}

#[test]
fn a_label_replaces_the_last_of_the_most_attributes() {
    let attributes = (0..256).map(|at| text(format!("k{at:03}"), String::new())).collect();

    let (batch, _) = added(&[point(2, attributes)], BatchRoom::default());

    let stored = records(&batch);
    let shown: Vec<_> = stored
        .iter()
        .map(|record| {
            let has = |key| record.attributes.contains_key(key);
            let dropped = record.dropped_attributes_count;
            (record.attributes.len(), has("k254"), has("k255"), has("le"), dropped)
        })
        .collect();
    let labelled = (256, true, false, true, 1);
    assert_eq!(shown, [(256, true, true, false, 0), labelled, labelled]);
}

#[test]
fn a_record_over_its_limit_rejects_the_point() {
    // A label and a name take the largest record over it.
    let largest = 1024 * 1024 - 55;
    let of = |bytes| vec![text("k".to_owned(), "x".repeat(bytes))];
    let (batch, rejected) =
        added(&[point(1, of(largest)), point(0, of(largest))], BatchRoom::default());
    assert_eq!((batch.records, rejected), (1, vec![true, false]));
    assert!(records(&batch)[0].encoded_len() <= 1024 * 1024);
}

#[test]
fn a_reserved_key_is_renamed_once_however_often_it_repeats() {
    let own = (0..2_000).map(|at| text("le".to_owned(), at.to_string()));
    let other = text("exported_le".to_owned(), "theirs".to_owned());

    let (batch, _) = added(&[point(0, own.chain([other]).collect())], BatchRoom::default());

    let record = &records(&batch)[0];
    let value = |key: &str| record.attributes[key].value.clone();
    assert_eq!(value("exported_exported_le"), Some(Value::StringValue("1999".to_owned())));
    assert_eq!(value("exported_le"), Some(Value::StringValue("theirs".to_owned())));
    assert_eq!((record.attributes.len(), record.dropped_attributes_count), (2, 1_999));
}
