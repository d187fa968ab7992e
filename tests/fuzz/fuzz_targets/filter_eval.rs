//! Conditions on entities: the planned key range and the residual filter together find exactly
//! what the filter itself finds, and text, tree and evaluation agree.
#![no_main]

use std::cmp::Ordering;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trestle_fuzz::{Condition, Entity};
use trestle_kv::order::compare_text;
use trestle_model::{fault::Violations, time::Ticks};
use trestle_table::{
    entity::{self, EntityKey},
    query::{Filter, KeyBound, QueryPlan, QueryScope},
    stored,
};

#[derive(Debug, Arbitrary)]
struct Input {
    condition: Condition,
    entities: Vec<(Entity, u64)>,
}

fuzz_target!(|input: Input| {
    let filter = Filter::new(input.condition.expr());
    let plan = QueryPlan::new(Some(&filter));
    for (entity, ticks) in &input.entities {
        let written_at = Ticks::new(*ticks).unwrap_or(Ticks::MAX);
        let mut violations = Violations::default();
        let Some(entity) = entity::Entity::parse(entity.proto(), "entity", &mut violations) else {
            continue;
        };
        let sealed = stored::seal(&stored::encode_body(&entity), written_at);
        let wire = stored::wire(&sealed).expect("just written");
        let matches = filter.matches(&wire).expect("just written");
        let residual = |plan: &QueryPlan| match &plan.residual {
            Some(residual) => residual.matches(&wire).expect("just written"),
            None => true,
        };
        let found = is_in_range(&plan, &entity.key) && residual(&plan);
        assert_eq!(found, matches, "{filter} on {entity:?}: {plan:?}");
    }
});

fn is_in_range(plan: &QueryPlan, key: &EntityKey) -> bool {
    let Some(range) = &plan.range else {
        return false;
    };
    if plan.scope == QueryScope::Point {
        let point = plan.point().expect("a point has a key");
        return point == (key.partition_key.as_str(), key.row_key.as_str());
    }
    is_within(key, range.start.as_ref(), Ordering::Greater)
        && is_within(key, range.end.as_ref(), Ordering::Less)
}

/// Whether a key is on the inner side of an edge, which is a start (`Greater`) or an end (`Less`).
fn is_within(key: &EntityKey, edge: Option<&KeyBound>, inner: Ordering) -> bool {
    let Some(edge) = edge else { return true };
    let partition = compare_text(&key.partition_key, &edge.partition_key);
    let order = match &edge.row_key {
        Some(row) => partition.then(compare_text(&key.row_key, row)),
        None => partition,
    };
    order == inner || (order == Ordering::Equal && edge.inclusive)
}
