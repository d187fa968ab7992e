//! Entities for property tests, of few and adversarial values, so that equal ones meet often.

use bytes::Bytes;
use proptest::{collection::btree_map, prelude::*, sample::select};
use trestle_kv::order::compare_text;
use trestle_model::time::Ticks;
use uuid::Uuid;

use super::{Entity, EntityKey};
use crate::value::Value;

/// U+FFFF and U+10000 sort differently as UTF-16 and as UTF-8.
const TEXTS: [&str; 9] = ["", "a", "aa", "ab", "b", "B", "it's", "\u{FFFF}", "\u{10000}"];
const KEYS: [&str; 7] = ["", "a", "aa", "b", "c", "\u{FFFF}", "\u{10000}"];
const NAMES: [&str; 6] = ["x", "y", "X", "été", "\u{10400}", "n_1"];
const BINARIES: [&[u8]; 4] = [b"", b"\0", b"\xff", b"abc"];
const WHOLE: [i64; 7] = [0, 1, -1, 1 << 53, (1 << 53) + 1, i64::MIN, i64::MAX];
const DOUBLES: [f64; 9] = [
    0.0,
    -0.0,
    0.5,
    -1.5,
    9_007_199_254_740_992.0,
    9_223_372_036_854_775_808.0,
    1e300,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

pub(crate) fn text() -> impl Strategy<Value = String> {
    select(&TEXTS[..]).prop_map(str::to_owned)
}

pub(crate) fn key_text() -> impl Strategy<Value = String> {
    select(&KEYS[..]).prop_map(str::to_owned)
}

pub(crate) fn name() -> impl Strategy<Value = String> {
    select(&NAMES[..]).prop_map(str::to_owned)
}

pub(crate) fn ticks() -> impl Strategy<Value = Ticks> {
    // From the year 1601 on.
    (504_911_232_000_000_000..=Ticks::MAX.get())
        .prop_map(|ticks| Ticks::new(ticks).unwrap_or(Ticks::MAX))
        .boxed()
        .prop_union(Just(Ticks::MAX).boxed())
}

/// Every value but NaN, which does not equal itself.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(Value::String),
        select(&[0, 1, -1, i32::MIN, i32::MAX][..]).prop_map(Value::Int32),
        select(&WHOLE[..]).prop_map(Value::Int64),
        select(&DOUBLES[..]).prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        ticks().prop_map(Value::DateTime),
        (0..3_u128).prop_map(|bits| Value::Guid(Uuid::from_u128(bits << 100))),
        select(&BINARIES[..]).prop_map(|bytes| Value::Binary(Bytes::from_static(bytes))),
    ]
}

pub(crate) fn key() -> impl Strategy<Value = EntityKey> {
    (key_text(), key_text())
        .prop_map(|(partition_key, row_key)| EntityKey { partition_key, row_key })
}

pub(crate) fn entity() -> impl Strategy<Value = Entity> {
    (key(), btree_map(name(), value(), 0..5)).prop_map(|(key, properties)| {
        let mut properties: Vec<_> = properties.into_iter().collect();
        properties.sort_by(|a, b| compare_text(&a.0, &b.0));
        Entity { key, properties }
    })
}
