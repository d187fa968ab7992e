//! Random filters over random entities return what a naive evaluation returns.
//!
//! In process only: the transport does not change results.

use std::{cmp::Ordering, sync::Arc};

use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};
use trestle_kv::MemoryEngine;
use trestle_proto::table::v1::{
    Entity, QueryEntitiesRequest, StreamEntitiesRequest, stored::decode_entities, value::Kind,
};
use trestle_tests::{Table, World, entity_of, prop, utf16, value_of};

/// Keys and texts: the supplementary one sorts before U+E000 in UTF-16 and after it in UTF-8.
const TEXTS: [&str; 6] = ["", "a", "ab", "b", "\u{E000}", "\u{10000}"];
const OPERATORS: [&str; 6] = ["eq", "ne", "gt", "ge", "lt", "le"];

#[derive(Debug, Clone)]
enum Filter {
    Constant(bool),
    Compare(&'static str, &'static str, Kind),
    Not(Box<Filter>),
    And(Box<Filter>, Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
}

fn literal() -> impl Strategy<Value = Kind> {
    let time = |seconds| prost_types::Timestamp { seconds, nanos: 100 };
    prop_oneof![
        3 => select(&TEXTS[..]).prop_map(|text| Kind::StringValue(text.to_owned())),
        2 => (-1..3).prop_map(Kind::Int32Value),
        1 => select(vec![-1, 0, 1, 1_i64 << 40]).prop_map(Kind::Int64Value),
        2 => select(vec![-0.5, 0.0, 1.0, 1.5, 1e300]).prop_map(Kind::DoubleValue),
        1 => any::<bool>().prop_map(Kind::BooleanValue),
        1 => (0..3_i64).prop_map(move |n| Kind::DatetimeValue(time(n))),
        1 => (0..3).prop_map(guid),
        1 => prop::collection::vec(select(vec![0_u8, 0x80]), 0..3)
            .prop_map(|bytes| Kind::BinaryValue(bytes.into())),
    ]
}

fn guid(n: i32) -> Kind {
    Kind::GuidValue(format!("00000000-0000-0000-0000-00000000000{n}"))
}

fn value() -> impl Strategy<Value = Kind> {
    let special = select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0]);
    prop_oneof![8 => literal(), 1 => special.prop_map(Kind::DoubleValue)]
}

fn filter() -> impl Strategy<Value = Filter> {
    let key = select(&["PartitionKey", "RowKey"][..]);
    let text = select(&TEXTS[..]).prop_map(|text| Kind::StringValue(text.to_owned()));
    let operator = || select(&OPERATORS[..]);
    let any_property = select(&["x", "y", "PartitionKey", "RowKey"][..]);
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Filter::Constant),
        6 => (key, operator(), text).prop_map(|(p, o, l)| Filter::Compare(p, o, l)),
        6 => (any_property, operator(), literal()).prop_map(|(p, o, l)| Filter::Compare(p, o, l)),
    ];
    leaf.prop_recursive(4, 24, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        let boxed = |(a, b)| (Box::new(a), Box::new(b));
        prop_oneof![
            1 => inner.prop_map(|filter| Filter::Not(Box::new(filter))),
            3 => pair.clone().prop_map(boxed).prop_map(|(a, b)| Filter::And(a, b)),
            2 => pair.prop_map(boxed).prop_map(|(a, b)| Filter::Or(a, b)),
        ]
    })
}

fn entities() -> impl Strategy<Value = Vec<Entity>> {
    let property = |name| prop::option::of(value().prop_map(move |kind| prop(name, kind)));
    let text = || select(&TEXTS[..]);
    let one = (text(), text(), property("x"), property("y"));
    let one = one.prop_map(|(p, r, x, y)| entity_of(p, r, x.into_iter().chain(y).collect()));
    prop::collection::vec(one, 0..24)
}

fn render(filter: &Filter) -> String {
    match filter {
        Filter::Constant(truth) => truth.to_string(),
        Filter::Compare(property, operator, literal) => {
            format!("{property} {operator} {}", render_literal(literal))
        }
        Filter::Not(inner) => format!("not ({})", render(inner)),
        Filter::And(a, b) => format!("({}) and ({})", render(a), render(b)),
        Filter::Or(a, b) => format!("({}) or ({})", render(a), render(b)),
    }
}

fn render_literal(literal: &Kind) -> String {
    match literal {
        Kind::StringValue(text) => format!("'{text}'"),
        Kind::Int32Value(number) => number.to_string(),
        Kind::Int64Value(number) => format!("{number}L"),
        Kind::DoubleValue(number) => format!("{number:?}"),
        Kind::BooleanValue(truth) => truth.to_string(),
        Kind::DatetimeValue(time) => {
            format!("datetime'1970-01-01T00:00:0{}.0000001Z'", time.seconds)
        }
        Kind::GuidValue(text) => format!("guid'{text}'"),
        Kind::BinaryValue(bytes) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("X'{hex}'")
        }
    }
}

/// The rules of the filter language, written literally.
fn matches(filter: &Filter, entity: &Entity) -> bool {
    match filter {
        Filter::Constant(truth) => *truth,
        Filter::Not(inner) => !matches(inner, entity),
        Filter::And(a, b) => matches(a, entity) && matches(b, entity),
        Filter::Or(a, b) => matches(a, entity) || matches(b, entity),
        Filter::Compare(property, operator, literal) => {
            let value = match *property {
                "PartitionKey" => Some(Kind::StringValue(entity.partition_key.clone())),
                "RowKey" => Some(Kind::StringValue(entity.row_key.clone())),
                name => value_of(entity, name).cloned(),
            };
            let Some(value) = value else { return false };
            let ordering = compare(&value, literal);
            match *operator {
                "eq" => ordering == Some(Ordering::Equal),
                "ne" => ordering != Some(Ordering::Equal),
                "gt" => ordering == Some(Ordering::Greater),
                "ge" => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
                "lt" => ordering == Some(Ordering::Less),
                _ => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
            }
        }
    }
}

fn compare(a: &Kind, b: &Kind) -> Option<Ordering> {
    match (a, b) {
        (Kind::StringValue(a), Kind::StringValue(b)) => Some(utf16(a).cmp(&utf16(b))),
        (Kind::BooleanValue(a), Kind::BooleanValue(b)) => Some(a.cmp(b)),
        (Kind::DatetimeValue(a), Kind::DatetimeValue(b)) => Some(a.seconds.cmp(&b.seconds)),
        (Kind::GuidValue(a), Kind::GuidValue(b)) => Some(a.cmp(b)),
        (Kind::BinaryValue(a), Kind::BinaryValue(b)) => Some(a.cmp(b)),
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => a.partial_cmp(&b),
            _ => Some(rank(a).cmp(&rank(b))),
        },
    }
}

/// Exact for the numbers of these tests.
#[allow(clippy::cast_precision_loss, reason = "the numbers are small")]
fn number(kind: &Kind) -> Option<f64> {
    match kind {
        Kind::Int32Value(number) => Some(f64::from(*number)),
        Kind::Int64Value(number) => Some(*number as f64),
        Kind::DoubleValue(number) => Some(*number),
        _ => None,
    }
}

fn rank(kind: &Kind) -> u8 {
    match kind {
        Kind::BooleanValue(_) => 0,
        Kind::Int32Value(_) | Kind::Int64Value(_) | Kind::DoubleValue(_) => 1,
        Kind::DatetimeValue(_) => 2,
        Kind::GuidValue(_) => 3,
        Kind::BinaryValue(_) => 4,
        Kind::StringValue(_) => 5,
    }
}

type Key = (String, String);

fn keys(entities: Vec<Entity>) -> Vec<Key> {
    entities.into_iter().map(|e| (e.partition_key, e.row_key)).collect()
}

async fn paged(table: &Table, filter: &str, page_size: i32) -> Vec<Key> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = QueryEntitiesRequest {
            filter: filter.to_owned(),
            page_size: Some(page_size),
            page_token,
            ..Default::default()
        };
        let (entities, response) = table.page(request).await.unwrap();
        assert!(entities.len() as i32 <= page_size);
        all.extend(keys(entities));
        page_token = response.next_page_token;
        if page_token.is_empty() {
            return all;
        }
    }
}

async fn streamed(table: &Table, filter: &str) -> Vec<Key> {
    let request = StreamEntitiesRequest { filter: filter.to_owned(), ..Default::default() };
    let messages = table.stream(request).await.unwrap();
    let entities = messages.iter().map(|m| decode_entities(&m.entities).unwrap());
    entities.flat_map(keys).collect()
}

async fn check(entities: Vec<Entity>, filters: Vec<Filter>, page_size: i32) {
    let world = World::on_engine(Arc::new(MemoryEngine::new(trestle::storage::keyspaces()))).await;
    let table = world.table("random").await;
    let mut stored: Vec<Entity> = Vec::new();
    for entity in entities {
        if table.insert(entity.clone()).await.is_ok() {
            stored.push(entity);
        }
    }
    stored.sort_by_key(|entity| (utf16(&entity.partition_key), utf16(&entity.row_key)));
    for filter in filters {
        let found = stored.iter().filter(|entity| matches(&filter, entity)).cloned();
        let expected = keys(found.collect());
        let text = render(&filter);
        assert_eq!(paged(&table, &text, 1000).await, expected, "{text}");
        assert_eq!(paged(&table, &text, page_size).await, expected, "{text}");
        assert_eq!(streamed(&table, &text).await, expected, "{text}");
    }
}

#[test]
fn random_filters_match_what_a_naive_evaluation_matches() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
    let filters = prop::collection::vec(filter(), 8);
    TestRunner::new(config)
        .run(&(entities(), filters, 1..5_i32), |(entities, filters, page_size)| {
            runtime.block_on(check(entities, filters, page_size));
            Ok(())
        })
        .unwrap();
}
