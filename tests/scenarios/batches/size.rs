//! How large a batch may be.

use super::*;

scenario!(merges_in_a_batch_may_add_to_large_entities, rejects_a_batch_over_4_mib);

/// An entity whose encoding has a little more than `kib` KiB.
fn sized(row: &str, kib: usize) -> Entity {
    let part = |n| prop(&format!("b{n:02}"), binary(n, kib));
    entity_of("p", row, (0..kib.div_ceil(64)).map(part).collect())
}

fn binary(part: usize, kib: usize) -> trestle_proto::table::v1::value::Kind {
    let bytes = 1024 * (kib - part * 64).min(64);
    trestle_proto::table::v1::value::Kind::BinaryValue(vec![1; bytes].into())
}

async fn merges_in_a_batch_may_add_to_large_entities(world: &World) {
    let table = world.table("largemerges").await;
    for number in 0..20 {
        let stored = sized(&format!("{number:02}"), 1000);
        table.insert(stored).await.unwrap();
    }
    let merge = |n| upsert_op(entity("p", &format!("{n:02}"), [int("a", 1)]), Merge);

    let merged = table.batch((0..20).map(merge).collect()).await;

    assert_eq!(merged.unwrap().len(), 20);
    assert_eq!(table.rows("a eq 1").await.unwrap().len(), 20);
}

async fn rejects_a_batch_over_4_mib(world: &World) {
    let table = world.table("sizes").await;
    let batch = |kib: usize| -> Vec<_> {
        let insert = |n: usize| insert_op(sized(&n.to_string(), kib));
        (0..4).map(insert).collect()
    };

    let fitting = table.batch(batch(1020)).await;
    assert_eq!(fitting.unwrap().len(), 4);
    let mut past_it = batch(1020);
    past_it.push(insert_op(sized("4", 64)));
    let rejected = table.batch(past_it).await.unwrap_err();
    let expected = (Code::InvalidArgument, "REQUEST_BODY_TOO_LARGE");
    assert_eq!(rejected.kind(), expected);
    assert_eq!(table.rows("").await.unwrap().len(), 4);
}
