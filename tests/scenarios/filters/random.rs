//! Random filters and entities.

use super::*;

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

pub(super) fn filter() -> impl Strategy<Value = Filter> {
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

pub(super) fn entities() -> impl Strategy<Value = Vec<Entity>> {
    let property = |name| prop::option::of(value().prop_map(move |kind| prop(name, kind)));
    let text = || select(&TEXTS[..]);
    let one = (text(), text(), property("x"), property("y"));
    let one = one.prop_map(|(p, r, x, y)| entity_of(p, r, x.into_iter().chain(y).collect()));
    prop::collection::vec(one, 0..24)
}
