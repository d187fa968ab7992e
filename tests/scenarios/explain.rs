//! Plans of queries, as ExplainQuery reports them.

use tonic::Code;
use trestle_proto::table::v1::{
    KeyBound,
    QueryScope::{self, Partition, PartitionRange, Point, RowRange},
};
use trestle_tests::{Table, World, entity, int, scenario};

scenario!(
    partition_plan_names_its_row_range,
    plan_across_partitions_names_its_partition_range,
    plan_names_the_residual_filter,
    plan_suggests_cheaper_queries,
    analyzed_plan_has_the_cost_of_the_first_page,
    contradictory_filter_reads_nothing,
    analyzed_plan_without_a_match_has_what_can_be_the_reason,
    reasons_are_of_the_entities_in_the_key_range,
);

fn bound(partition: &str, row: Option<&str>, inclusive: bool) -> Option<KeyBound> {
    Some(KeyBound {
        partition_key: partition.to_owned(),
        row_key: row.map(str::to_owned),
        inclusive,
    })
}

type Case = (&'static str, QueryScope, Option<KeyBound>, Option<KeyBound>);

async fn check<const N: usize>(table: &Table, cases: [Case; N]) {
    for (filter, scope, start, end) in cases {
        let plan = table.explain(filter, &["a"], false).await.unwrap();
        assert_eq!(plan.scope(), scope, "{filter}");
        assert_eq!((plan.start, plan.end), (start, end), "{filter}");
        assert_eq!(plan.cost, None, "nothing was run");
    }
}

async fn partition_plan_names_its_row_range(world: &World) {
    let table = world.table("rows").await;
    let point = |row| bound("a", Some(row), true);
    let partition = || bound("a", None, true);
    let beyond = |row| bound("a", Some(row), false);
    check(
        &table,
        [
            ("PartitionKey eq 'a' and RowKey eq 'r'", Point, point("r"), point("r")),
            ("PartitionKey eq 'a' and RowKey eq ''", Point, point(""), point("")),
            (
                "PartitionKey eq 'a' and RowKey gt 'r' and RowKey lt 's'",
                RowRange,
                beyond("r"),
                beyond("s"),
            ),
            ("RowKey ge 'r' and PartitionKey eq 'a'", RowRange, point("r"), partition()),
            ("PartitionKey eq 'a'", Partition, partition(), partition()),
        ],
    )
    .await;
}

async fn plan_across_partitions_names_its_partition_range(world: &World) {
    let table = world.table("partitions").await;
    let whole = |partition| bound(partition, None, true);
    let beyond = |partition| bound(partition, None, false);
    check(
        &table,
        [
            ("", QueryScope::Table, None, None),
            (
                "PartitionKey gt 'a' and PartitionKey le 'c'",
                PartitionRange,
                beyond("a"),
                whole("c"),
            ),
            ("PartitionKey eq 'a' or PartitionKey eq 'c'", PartitionRange, whole("a"), whole("c")),
            ("PartitionKey lt 'c'", PartitionRange, None, beyond("c")),
            ("not (PartitionKey lt 'c')", PartitionRange, whole("c"), None),
            ("a eq 1 or PartitionKey eq 'a'", QueryScope::Table, None, None),
        ],
    )
    .await;
}

async fn plan_names_the_residual_filter(world: &World) {
    let table = world.table("residuals").await;

    for (filter, residual, properties) in [
        ("", "", &[][..]),
        ("PartitionKey eq 'a' and RowKey lt 'b'", "", &[]),
        ("PartitionKey eq 'a' and b eq 1 and a gt 2L", "b eq 1 and a gt 2L", &["a", "b"]),
        ("RowKey eq 'r'", "RowKey eq 'r'", &["RowKey"]),
        (
            "PartitionKey eq 'a' or PartitionKey eq 'c'",
            "PartitionKey eq 'a' or PartitionKey eq 'c'",
            &["PartitionKey"],
        ),
        ("not (a eq 'it''s')", "not (a eq 'it''s')", &["a"]),
    ] {
        let plan = table.explain(filter, &["a"], false).await.unwrap();
        assert_eq!(plan.residual_filter, residual, "{filter}");
        assert_eq!(plan.filter_properties, properties, "{filter}");
    }
}

async fn plan_suggests_cheaper_queries(world: &World) {
    let table = world.table("advised").await;
    let advice = async |filter: &str, select: &[&str]| {
        table.explain(filter, select, false).await.unwrap().advice.join("\n")
    };

    let point = "PartitionKey eq 'a' and RowKey eq 'b'";
    assert_eq!(advice(point, &["x"]).await, "", "nothing to improve");
    assert!(advice(point, &[]).await.contains("select"));
    assert!(advice("x eq 1", &["x"]).await.contains("whole table"));
    assert!(advice("x eq 1", &["x"]).await.contains("`x`"));
    let joined = advice("PartitionKey eq 'a' or PartitionKey eq 'c'", &["x"]).await;
    assert!(joined.contains("`or`"), "{joined}");
    assert!(advice("PartitionKey ne 'a'", &["x"]).await.contains("`ne`"));
    assert!(advice("RowKey eq 'a'", &["x"]).await.contains("RowKey"));
}

async fn analyzed_plan_has_the_cost_of_the_first_page(world: &World) {
    let table = world.table("analyzed").await;
    for row in 0..20 {
        let stored = entity("p", &format!("{row:02}"), [int("n", row % 4)]);
        table.insert(stored).await.unwrap();
    }

    let plan = table.explain("n eq 1", &[], true).await.unwrap();
    let cost = plan.cost.unwrap();
    assert_eq!((cost.scanned, cost.returned), (20, 5));
    assert_eq!(cost.scope(), plan.scope());
    assert!(cost.bytes > 0);
}

async fn contradictory_filter_reads_nothing(world: &World) {
    let table = world.table("contradiction").await;
    table.insert(entity("p", "r", [])).await.unwrap();

    let filter = "PartitionKey eq 'p' and PartitionKey eq 'q'";
    let plan = table.explain(filter, &[], true).await.unwrap();
    assert_eq!(plan.cost.unwrap().scanned, 0);
    assert!(plan.advice.concat().contains("contradict"));
    assert_eq!(table.rows(filter).await.unwrap().len(), 0);
    let absent = world.existing_table("absent").explain(filter, &[], false).await;
    assert_eq!(absent.unwrap_err().kind(), (Code::NotFound, "TABLE_NOT_FOUND"));
}

async fn analyzed_plan_without_a_match_has_what_can_be_the_reason(world: &World) {
    let table = world.table("unmatched").await;
    for row in ["a", "b", "c"] {
        table.insert(entity("p", row, [int("total", 5)])).await.unwrap();
    }
    let reasons = async |filter: &str, analyze: bool| {
        table.explain(filter, &[], analyze).await.unwrap().no_match_reasons
    };

    for (filter, expected) in [
        ("totl eq 5", "none of the 3 entities scanned has a property `totl`"),
        ("total eq '5'", "write 5, not '5'"),
        ("PartitionKey eq 'q'", "no entity has a key in the range"),
        ("PartitionKey eq 'p' and RowKey eq 'd'", "no entity has this key"),
        ("PartitionKey eq 'p' and PartitionKey eq 'q'", "contradict"),
        ("PartitionKey eq 5", "write '5', not 5"),
    ] {
        let found = reasons(filter, true).await;
        assert_eq!(found.len(), 1, "{filter}: {found:?}");
        assert!(found[0].contains(expected), "{filter}: {found:?}");
        assert_eq!(reasons(filter, false).await, [""; 0], "{filter}: nothing is read");
    }
    for filter in ["", "total eq 5", "total eq 6L", "total gt 5.5", "not (totl eq 1)"] {
        assert_eq!(reasons(filter, true).await, [""; 0], "{filter}");
    }
}

async fn reasons_are_of_the_entities_in_the_key_range(world: &World) {
    let table = world.table("read").await;
    table.insert(entity("p", "r", [int("total", 5)])).await.unwrap();
    table.insert(entity("q", "r", [int("secret", 5)])).await.unwrap();

    let plan = table.explain("PartitionKey eq 'p' and secrt eq 5", &[], true).await.unwrap();

    let reasons = plan.no_match_reasons.concat();
    assert_eq!(reasons, "the entity scanned has no property `secrt`", "not the name in `q`");
}
