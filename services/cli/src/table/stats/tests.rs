//! Tests of the module.

use trestle_proto::table::v1::{Property, Value, value::Kind};

use super::*;

fn entity(partition: &str, kind: Kind) -> Entity {
    let value = Some(Value { kind: Some(kind) });
    Entity {
        partition_key: partition.to_owned(),
        properties: vec![Property { name: "a".to_owned(), value }],
        ..Entity::default()
    }
}

#[test]
fn a_summary_counts_partitions_their_sizes_and_types() {
    let mut summary = Summary::default();

    summary.add(&entity("", Kind::Int32Value(1)), 10);
    summary.add(&entity("p", Kind::Int64Value(1)), 20);
    summary.add(&entity("p", Kind::Int32Value(1)), 30);
    summary.add(&entity("q", Kind::Int32Value(1)), 500);

    assert_eq!(
        object(&summary).to_string(),
        "{\"entities\":4,\"partitions\":3,\"bytes\":560,\
         \"largest_partition\":{\"partition_key\":\"p\",\"entities\":2,\"bytes\":50},\
         \"properties\":{\"a\":{\"Edm.Int32\":3,\"Edm.Int64\":1}},\
         \"properties_not_counted\":0}"
    );
}
