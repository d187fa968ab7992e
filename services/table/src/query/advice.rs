//! Advice on how to make a query cheaper.

use trestle_filter::{Comparison, Expr, Operator};
use trestle_model::fault::quoted;

use super::{region::Region, scope::QueryScope};

/// Most property names that one piece of advice lists.
const NAMES_SHOWN_MAX: usize = 5;

/// Advice on a condition in normal form. `properties` are those it checks that no key implies.
pub(super) fn advise(normal: &Expr, scope: QueryScope, properties: &[String]) -> Vec<String> {
    let mut advice = Vec::new();
    let mut conditions = KeyConditions::default();
    normal.for_each_comparison(&mut |comparison| conditions.add(comparison));

    if scope == QueryScope::Table {
        advice.push(if conditions.partition_key {
            "the conditions on PartitionKey rule out no partition, so the whole table is read; \
             fix PartitionKey with `eq` in a condition that every match fulfils"
                .to_owned()
        } else {
            "no condition is on PartitionKey, so the whole table is read; fix PartitionKey with \
             `eq`, or bound it with `ge` and `lt`"
                .to_owned()
        });
    }
    if joins_partitions(normal) {
        advice.push(
            "conditions on different partitions are joined by `or`, so everything between them \
             is read; run one query for each partition, side by side"
                .to_owned(),
        );
    }
    if conditions.key_not_equal {
        advice.push(
            "`ne` on PartitionKey or RowKey rules out single keys only and narrows nothing"
                .to_owned(),
        );
    }
    if conditions.row_key && scope >= QueryScope::PartitionRange {
        advice.push(
            "RowKey narrows what is read only where PartitionKey is fixed by `eq`".to_owned(),
        );
    }
    if !properties.is_empty() && scope != QueryScope::Point {
        advice.push(format!(
            "{} not part of the key, so the condition is checked on every entity read; put what \
             you search by into RowKey, or keep a second copy of the entities under such a key",
            list(properties)
        ));
    }
    advice
}

#[derive(Default)]
struct KeyConditions {
    partition_key: bool,
    row_key: bool,
    key_not_equal: bool,
}

impl KeyConditions {
    fn add(&mut self, comparison: &Comparison) {
        let partition_key = comparison.property == "PartitionKey";
        let row_key = comparison.property == "RowKey";
        self.partition_key |= partition_key;
        self.row_key |= row_key;
        self.key_not_equal |=
            (partition_key || row_key) && comparison.operator == Operator::NotEqual;
    }
}

/// Whether an `or` has branches in different partitions.
fn joins_partitions(normal: &Expr) -> bool {
    match normal {
        Expr::And(parts) => parts.iter().any(joins_partitions),
        Expr::Or(parts) => {
            let regions: Vec<_> = parts.iter().filter_map(Region::of).collect();
            let mut partitions =
                regions.iter().filter_map(|region| Some(region.keys.one_partition()?.0));
            let first = partitions.next();
            partitions.any(|partition| Some(partition) != first)
        }
        Expr::Constant(_) | Expr::Compare(_) | Expr::Not(_) => false,
    }
}

fn list(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_SHOWN_MAX).map(|name| format!("`{}`", quoted(name)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len() {
        1 => format!("{shown} is"),
        2..=NAMES_SHOWN_MAX => format!("{shown} are"),
        _ => format!("{shown} and others are"),
    }
}
