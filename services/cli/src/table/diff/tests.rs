use proptest::prelude::*;
use trestle_proto::table::v1::{Property, Value as EdmValue, value::Kind};

use super::*;

fn entity(keys: (&str, &str), properties: &[(&str, Kind)]) -> Entity {
    let property = |(name, kind): &(&str, Kind)| Property {
        name: (*name).to_owned(),
        value: Some(EdmValue { kind: Some(kind.clone()) }),
    };
    Entity {
        partition_key: keys.0.to_owned(),
        row_key: keys.1.to_owned(),
        properties: properties.iter().map(property).collect(),
        ..Entity::default()
    }
}

#[test]
fn the_first_of_two_is_that_of_utf_16() {
    let (small, large) = (entity(("p", "\u{10000}"), &[]), entity(("p", "\u{ffff}"), &[]));
    assert_eq!(first(Some(&small), Some(&large)), Some(Ordering::Less), "not that of bytes");
    assert_eq!(first(Some(&large), Some(&small)), Some(Ordering::Greater));
    assert_eq!(first(Some(&small), Some(&small.clone())), Some(Ordering::Equal));
    let other = entity(("o", "z"), &[]);
    assert_eq!(first(Some(&small), Some(&other)), Some(Ordering::Greater), "partitions first");
    assert_eq!(first(Some(&small), None), Some(Ordering::Less));
    assert_eq!(first(None, Some(&small)), Some(Ordering::Greater));
    assert_eq!(first(None, None), None);
}

#[test]
fn properties_that_differ_are_named_in_order() {
    let old = [
        ("a", Kind::Int32Value(1)),
        ("left", Kind::BooleanValue(true)),
        ("same", Kind::DoubleValue(f64::NAN)),
        ("type", Kind::Int32Value(5)),
        ("zero", Kind::DoubleValue(0.0)),
    ];
    let new = [
        ("type", Kind::Int64Value(5)),
        ("zero", Kind::DoubleValue(-0.0)),
        ("A", Kind::Int32Value(1)),
        ("a", Kind::Int32Value(1)),
        ("same", Kind::DoubleValue(f64::NAN)),
    ];
    let (old, new) = (entity(("p", "r"), &old), entity(("p", "r"), &new));
    let found = difference(Some(&old), Some(&new), Ordering::Equal).unwrap();
    assert_eq!(found.properties, ["A", "left", "type", "zero"]);
    assert_eq!(
        found.record("t"),
        json!({"change": "changed", "table": "t", "partition_key": "p", "row_key": "r",
            "properties": ["A", "left", "type", "zero"]})
    );
    let later = Entity { etag: "other".to_owned(), ..old.clone() };
    assert_eq!(difference(Some(&old), Some(&later), Ordering::Equal), None);
}

type States = std::collections::BTreeMap<(u8, u8), i32>;

fn states() -> impl Strategy<Value = States> {
    proptest::collection::btree_map((0_u8..3, 0_u8..6), 0..3, 0..12)
}

proptest! {
    #[test]
    fn every_difference_is_found_once(old in states(), new in states()) {
        let side = |states: &States| DiffSide {
            scan: None,
            read: states
                .iter()
                .map(|((p, r), v)| {
                    entity((&p.to_string(), &r.to_string()), &[("v", Kind::Int32Value(*v))])
                })
                .collect(),
        };
        let (mut before, mut after) = (side(&old), side(&new));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut found = Vec::new();
        runtime.block_on(differences(&mut before, &mut after, |difference| {
            let Entity { partition_key, row_key, .. } = difference.entity;
            let keys = (partition_key.parse().unwrap(), row_key.parse().unwrap());
            found.push((keys, difference.change));
            Ok(())
        })).unwrap();
        let keys = old.keys().chain(new.keys()).copied().collect::<std::collections::BTreeSet<_>>();
        let expected: Vec<_> = keys
            .into_iter()
            .filter_map(|keys| match (old.get(&keys), new.get(&keys)) {
                (None, Some(_)) => Some((keys, DiffKind::Added)),
                (Some(_), None) => Some((keys, DiffKind::Removed)),
                (old, new) => (old != new).then_some((keys, DiffKind::Changed)),
            })
            .collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn the_counts_are_of_each_kind() {
    let mut counts = DiffCounts::default();
    let entity = entity(("p", "r"), &[]);
    for change in [DiffKind::Added, DiffKind::Removed, DiffKind::Removed] {
        counts.add(&Difference { change, entity: &entity, properties: Vec::new() });
    }
    assert_eq!(counts.text("orders"), "orders: 3 entities differ: 1 added, 0 changed, 2 removed");
}
