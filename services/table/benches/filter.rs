//! What one entity costs to filter, project, decode and encode, and what a filter costs to parse
//! and plan.
//!
//! The entity has 20 properties of mixed types, about 840 bytes on the wire. The budget is 150 ns
//! for a filter on one property, wherever it is.

#![allow(missing_docs, clippy::expect_used, reason = "a bench")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use trestle_model::{fault::Violations, time::Ticks};
use trestle_proto::table::v1::PropertyMask;
use trestle_table::{
    entity::{Entity, EntityKey},
    query::{Filter, QueryPlan},
    stored::{self, Projection},
    value::Value,
};
use uuid::Uuid;

fn written_at() -> Ticks {
    Ticks::from_unix(1_769_846_400, 123_456_700).expect("in range")
}

fn entity() -> Entity {
    let value = |number: u32| match number % 7 {
        0 => Value::String("a text of about thirty letters".to_owned()),
        1 => Value::Int32(-1),
        2 => Value::Int64(1 << 40),
        3 => Value::Double(0.5),
        4 => Value::Boolean(true),
        5 => Value::DateTime(written_at()),
        _ => Value::Guid(Uuid::from_u128(u128::from(number) << 64)),
    };
    Entity {
        key: EntityKey {
            partition_key: "customer-42".to_owned(),
            row_key: "order-0017".to_owned(),
        },
        properties: (0..20)
            .map(|number| (format!("property_{number:02}"), value(number)))
            .collect(),
    }
}

fn filters(criterion: &mut Criterion, wire: &Bytes) {
    let cases = [
        ("first_property", "property_01 eq 5"),
        ("middle_property", "property_10 gt 0.7"),
        ("last_property", "property_19 eq datetime'2026-01-31T08:00:00Z'"),
        ("missing_property", "property_99 eq 1"),
        ("text_property", "property_14 ge 'a text of about twenty letters'"),
        ("row_key", "RowKey ge 'order-0018'"),
        ("timestamp", "Timestamp ge datetime'2026-02-01T00:00:00Z'"),
        ("three_properties", "property_04 and property_10 gt 0.1 and property_15 eq 4"),
    ];
    for (name, text) in cases {
        let filter = Filter::parse(text).expect("parses").expect("not empty");
        let id = format!("filter/{name}");
        criterion.bench_function(&id, |b| b.iter(|| filter.matches(black_box(wire))));
    }
}

fn all(criterion: &mut Criterion) {
    let entity = entity();
    let body = stored::encode_body(&entity);
    let sealed = stored::seal(&body, written_at());
    let wire = stored::wire(&sealed).expect("readable");
    filters(criterion, &wire);

    let paths = [3, 9, 17].map(|number| format!("property_{number:02}")).to_vec();
    let mask = Some(PropertyMask { paths });
    let select = Projection::parse(mask, "select", &mut Violations::default()).expect("not empty");
    criterion.bench_function("project/3_of_20", |b| {
        b.iter(|| select.project(black_box(&wire)));
    });

    criterion.bench_function("stored/wire", |b| {
        b.iter(|| stored::wire(black_box(&sealed)));
    });
    criterion.bench_function("stored/decode", |b| {
        b.iter(|| stored::decode(black_box(&sealed)));
    });
    criterion.bench_function("stored/encode_body", |b| {
        b.iter(|| stored::encode_body(black_box(&entity)));
    });
    criterion.bench_function("stored/seal", |b| {
        b.iter(|| stored::seal(black_box(&body), written_at()));
    });

    let text = "PartitionKey eq 'customer-42' and RowKey ge 'order-' and RowKey lt 'order.' \
                and (total gt 100 or status eq 'open')";
    criterion.bench_function("parse", |b| b.iter(|| Filter::parse(black_box(text))));
    let filter = Filter::parse(text).expect("parses");
    criterion.bench_function("plan", |b| b.iter(|| QueryPlan::new(black_box(filter.as_ref()))));
}

criterion_group!(benches, all);
criterion_main!(benches);
