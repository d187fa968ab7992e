//! Filters, end to end: matches, order and cost.

use tonic::Code;
use trestle_proto::table::v1::{
    PropertyMask, QueryEntitiesRequest,
    QueryScope::{self, Partition, PartitionRange, Point, RowRange},
    value::Kind,
};
use trestle_tests::{Table, World, double, entity, int, prop, scenario, string, utf16, value_of};

scenario!(
    every_operator_compares_within_each_type,
    numbers_of_different_types_compare_by_their_exact_value,
    values_of_other_types_are_never_equal_and_are_ordered_by_type,
    a_comparison_with_a_missing_property_is_false_and_its_negation_true,
    operators_have_precedence_not_and_or,
    keys_and_timestamp_can_be_filtered,
    a_query_reports_its_scope_and_what_it_scanned,
    a_query_returns_only_the_selected_properties,
    entities_are_ordered_by_utf16_code_unit,
    filter_error_has_its_position,
    rejects_unsupported_filter_syntax,
);

const GUID: &str = "11111111-2222-3333-4444-555555555555";

/// One entity for each type, whose row key names it, with the property `v`.
async fn typed(world: &World) -> Table {
    let table = world.table("typed").await;
    let noon = prost_types::Timestamp { seconds: 1_767_268_800, nanos: 500_000_100 };
    let kinds = [
        ("string", Kind::StringValue("m".to_owned())),
        ("int32", Kind::Int32Value(5)),
        ("int64", Kind::Int64Value(5_000_000_000)),
        ("double", Kind::DoubleValue(2.5)),
        ("boolean", Kind::BooleanValue(true)),
        ("datetime", Kind::DatetimeValue(noon)),
        ("guid", Kind::GuidValue(GUID.to_owned())),
        ("binary", Kind::BinaryValue(vec![1, 0x80].into())),
    ];
    for (name, kind) in kinds {
        let stored = entity("p", name, [prop("v", kind.clone()), prop(name, kind)]);
        table.insert(stored).await.unwrap();
    }
    table
}

async fn every_operator_compares_within_each_type(world: &World) {
    let table = typed(world).await;
    // A property, and literals below, equal to and above its value.
    let literals = [
        ("string", "'lzz'", "'m'", "'m '"),
        ("int32", "-6", "5", "6"),
        ("int64", "4999999999L", "5000000000L", "5000000001L"),
        ("double", "-2.6", "2.5", "2.5000001"),
        ("boolean", "false", "true", "true"),
        (
            "datetime",
            "datetime'2026-01-01T12:00:00.5Z'",
            "datetime'2026-01-01T12:00:00.5000001Z'",
            "datetime'2026-01-01T12:00:00.5000002'",
        ),
        (
            "guid",
            "guid'11111111-2222-3333-4444-555555555554'",
            "guid'11111111-2222-3333-4444-555555555555'",
            "guid'11111111-2222-3333-4444-55555555555A'",
        ),
        ("binary", "X'017f'", "binary'0180'", "X'018000'"),
    ];
    for (name, below, equal, above) in literals {
        for (operator, literal, holds) in [
            ("eq", equal, true),
            ("eq", below, false),
            ("ne", equal, false),
            ("ne", below, true),
            ("gt", below, true),
            ("gt", equal, false),
            ("ge", equal, true),
            ("ge", below, true),
            ("lt", equal, false),
            ("lt", below, false),
            ("le", equal, true),
            ("le", below, false),
            ("lt", above, name != "boolean"),
            ("le", above, true),
            ("ge", above, name == "boolean"),
        ] {
            let filter = format!("{name} {operator} {literal}");
            let rows = table.rows(&filter).await.unwrap();
            let expected: &[&str] = if holds { &[name] } else { &[] };
            assert_eq!(rows, expected, "{filter}");
        }
        let mirrored = format!("{below} lt {name}");
        assert_eq!(table.rows(&mirrored).await.unwrap(), [name], "{mirrored}");
    }
    assert_eq!(table.rows("boolean").await.unwrap(), ["boolean"]);
}

async fn numbers_of_different_types_compare_by_their_exact_value(world: &World) {
    let table = world.table("numbers").await;
    let large = 9_007_199_254_740_993; // 2^53 + 1, which no double equals.
    for (row, kind) in [
        ("double", Kind::DoubleValue(5.0)),
        ("infinite", Kind::DoubleValue(f64::INFINITY)),
        ("int32", Kind::Int32Value(5)),
        ("int64", Kind::Int64Value(5)),
        ("large", Kind::Int64Value(large)),
        ("nan", Kind::DoubleValue(f64::NAN)),
    ] {
        table.insert(entity("p", row, [prop("v", kind)])).await.unwrap();
    }
    let rows = async |filter: &str| table.rows(filter).await.unwrap();

    for five in ["5", "5L", "5.0", "50e-1"] {
        let equal = rows(&format!("v eq {five}")).await;
        assert_eq!(equal, ["double", "int32", "int64"], "{five}");
        let above = rows(&format!("v gt {five}")).await;
        assert_eq!(above, ["infinite", "large"], "{five}");
        let other = rows(&format!("v ne {five}")).await;
        assert_eq!(other, ["infinite", "large", "nan"], "{five}");
    }
    assert_eq!(rows("v eq 9007199254740993L").await, ["large"]);
    assert_eq!(rows("v gt 9007199254740992.0 and v lt 1e300").await, ["large"]);
    assert_eq!(rows("v le 4.999").await.len(), 0);
    assert_eq!(rows("not (v le 5.0) and not (v gt 5.0)").await, ["nan"]);
}

async fn values_of_other_types_are_never_equal_and_are_ordered_by_type(world: &World) {
    let table = typed(world).await;
    let rank = |row: &str| match row {
        "boolean" => 0,
        "int32" | "int64" | "double" => 1,
        "datetime" => 2,
        "guid" => 3,
        "binary" => 4,
        _ => 5,
    };
    let literals = [
        ("false", 0),
        ("9e300", 1),
        ("datetime'1601-01-01T00:00:00Z'", 2),
        ("guid'00000000-0000-0000-0000-000000000000'", 3),
        ("X''", 4),
        ("''", 5),
    ];
    let mut names = ["string", "int32", "int64", "double", "boolean", "datetime", "guid", "binary"];
    names.sort_unstable();

    for (literal, literal_rank) in literals {
        let foreign = |expected: &dyn Fn(i32) -> bool| -> Vec<&str> {
            let differs = |name: &&str| rank(name) != literal_rank && expected(rank(name));
            names.into_iter().filter(differs).collect()
        };
        // Types of the literal's own kind are excluded: they compare by value.
        let others = async |operator: &str| -> Vec<String> {
            let mut rows = table.rows(&format!("v {operator} {literal}")).await.unwrap();
            rows.retain(|row| rank(row) != literal_rank);
            rows
        };
        assert_eq!(others("eq").await.len(), 0, "{literal}");
        assert_eq!(others("ne").await, foreign(&|_| true), "{literal}");
        let below = foreign(&|rank| rank < literal_rank);
        let above = foreign(&|rank| rank > literal_rank);
        assert_eq!(others("lt").await, below, "{literal}");
        assert_eq!(others("le").await, below, "{literal}");
        assert_eq!(others("gt").await, above, "{literal}");
        assert_eq!(others("ge").await, above, "{literal}");
    }
}

async fn a_comparison_with_a_missing_property_is_false_and_its_negation_true(world: &World) {
    let table = world.table("missing").await;
    table.insert(entity("p", "has", [int("a", 1)])).await.unwrap();
    table.insert(entity("p", "lacks", [int("b", 1)])).await.unwrap();

    for operator in ["eq", "ne", "gt", "ge", "lt", "le"] {
        for literal in ["0", "1", "2", "''", "true"] {
            let filter = format!("a {operator} {literal}");
            let rows = table.rows(&filter).await.unwrap();
            assert!(!rows.contains(&"lacks".to_owned()), "{filter}");
            let negated = table.rows(&format!("not ({filter})")).await.unwrap();
            assert!(negated.contains(&"lacks".to_owned()), "{filter}");
            assert_eq!(rows.len() + negated.len(), 2, "{filter}");
        }
    }
}

async fn operators_have_precedence_not_and_or(world: &World) {
    let table = world.table("logic").await;
    for number in 0..8 {
        let bit = |name, bit: i32| int(name, number >> bit & 1);
        let stored = entity("p", &number.to_string(), [bit("a", 2), bit("b", 1), bit("c", 0)]);
        table.insert(stored).await.unwrap();
    }

    for (filter, rows) in [
        ("a eq 1 or b eq 1 and c eq 1", "34567"),
        ("(a eq 1 or b eq 1) and c eq 1", "357"),
        ("not a eq 1 and b eq 1", "23"),
        ("not (a eq 1 and b eq 1)", "012345"),
        ("not (not (a eq 1))", "4567"),
        ("not ((a eq 1 or b eq 1) and not (c eq 1))", "01357"),
        ("a eq 1 and b eq 1 or c eq 1 and a eq 0", "1367"),
        ("true", "01234567"),
        ("false or c eq 1", "1357"),
        ("not true", ""),
        ("  (  a eq 1  )  ", "4567"),
        ("", "01234567"),
    ] {
        assert_eq!(table.rows(filter).await.unwrap().concat(), rows, "{filter}");
    }
}

async fn keys_and_timestamp_can_be_filtered(world: &World) {
    let table = world.table("system").await;
    let first = table.insert(entity("p", "r1", [])).await.unwrap();
    table.insert(entity("q", "r2", [])).await.unwrap();
    let time = first.etag.replace("W/\"", "").replace('"', "").replace("%3A", ":");
    let rows = async |filter: &str| table.rows(filter).await.unwrap();

    assert_eq!(rows(&format!("Timestamp eq {time}")).await, ["r1"]);
    assert_eq!(rows(&format!("Timestamp gt {time}")).await, ["r2"]);
    assert_eq!(rows("not (PartitionKey eq 'p')").await, ["r2"]);
    assert_eq!(rows("'r1' lt RowKey").await, ["r2"]);
    assert_eq!(rows("PartitionKey eq 5").await.len(), 0, "another type");
    assert_eq!(rows("PartitionKey ne 5").await, ["r1", "r2"]);
    assert_eq!(rows("RowKey eq 'it''s'").await.len(), 0);
}

async fn a_query_reports_its_scope_and_what_it_scanned(world: &World) {
    let table = world.table("scopes").await;
    for partition in ["a", "b", "c"] {
        for row in 0..10 {
            let stored = entity(partition, &row.to_string(), [int("n", row)]);
            table.insert(stored).await.unwrap();
        }
    }

    let whole = QueryScope::Table;
    for (filter, scope, scanned, returned) in [
        ("PartitionKey eq 'b' and RowKey eq '3'", Point, 1, 1),
        ("PartitionKey eq 'b' and RowKey eq 'x'", Point, 0, 0),
        ("PartitionKey eq 'b' and RowKey eq '3' and n eq 9", Point, 1, 0),
        ("PartitionKey eq 'b' and RowKey ge '3' and RowKey lt '6'", RowRange, 3, 3),
        ("PartitionKey eq 'b' and RowKey gt '7'", RowRange, 2, 2),
        ("PartitionKey eq 'b'", Partition, 10, 10),
        ("PartitionKey eq 'b' and n eq 3", Partition, 10, 1),
        ("PartitionKey ge 'b'", PartitionRange, 20, 20),
        ("PartitionKey gt 'a' and PartitionKey lt 'c'", PartitionRange, 10, 10),
        ("", whole, 30, 30),
        ("n eq 3", whole, 30, 3),
        ("RowKey eq '3'", whole, 30, 3),
        ("PartitionKey ne 'b'", whole, 30, 20),
    ] {
        let request = QueryEntitiesRequest { filter: filter.to_owned(), ..Default::default() };
        let (entities, response) = table.page(request).await.unwrap();
        let cost = response.cost.unwrap();
        assert_eq!(cost.scope(), scope, "{filter}");
        assert_eq!((cost.scanned, cost.returned), (scanned, returned), "{filter}");
        assert_eq!(entities.len() as u64, returned, "{filter}");
        assert_eq!(cost.bytes > 0, scanned > 0, "{filter}");
        assert_eq!(response.next_page_token, "", "{filter}");
    }
}

async fn a_query_returns_only_the_selected_properties(world: &World) {
    let table = world.table("projected").await;
    let stored = entity("p", "r", [int("a", 1), string("b", "x"), double("c", 0.5)]);
    let version = table.insert(stored).await.unwrap();
    let select = async |names: &[&str]| {
        let paths = names.iter().map(|name| (*name).to_owned()).collect();
        let request = QueryEntitiesRequest {
            filter: "b eq 'x'".to_owned(),
            select: Some(PropertyMask { paths }),
            ..Default::default()
        };
        table.page(request).await.unwrap().0.remove(0)
    };

    let read = select(&["c", "none"]).await;
    assert_eq!(read.properties, [double("c", 0.5)]);
    assert_eq!((read.etag, read.row_key.as_str()), (version.etag, "r"));
    assert_eq!(select(&[]).await.properties.len(), 3);
    let filtered_by_another = select(&["a"]).await;
    assert_eq!(value_of(&filtered_by_another, "b"), None);
}

async fn entities_are_ordered_by_utf16_code_unit(world: &World) {
    let table = world.table("order").await;
    // In UTF-16 the supplementary characters sort before U+E000 to U+FFFF; in UTF-8 after them.
    let mut keys = ["a", "a\u{E000}", "\u{E000}", "\u{FFFD}", "\u{10000}", "\u{10FFFF}", "ab", ""];
    for partition in keys {
        for row in keys {
            table.insert(entity(partition, row, [])).await.unwrap();
        }
    }
    keys.sort_by_key(|key| utf16(key));
    assert!(utf16("\u{10FFFF}") < utf16("\u{E000}"));

    let mut expected = keys.iter().flat_map(|p| keys.iter().map(move |r| (*p, *r)));
    let all = table.query("").await.unwrap();
    assert_eq!(all.len(), 64);
    for read in all {
        let next = expected.next().unwrap();
        assert_eq!((read.partition_key.as_str(), read.row_key.as_str()), next);
    }
    // Ranges use the same order.
    let filter = "PartitionKey eq 'a' and RowKey ge '\u{10000}' and RowKey lt '\u{E000}'";
    assert_eq!(table.rows(filter).await.unwrap(), ["\u{10000}", "\u{10FFFF}"]);
    let filter = "PartitionKey gt '\u{10FFFF}' and RowKey eq 'a'";
    assert_eq!(table.rows(filter).await.unwrap().len(), 2);
}

async fn filter_error_has_its_position(world: &World) {
    let table = world.table("mistakes").await;

    for (filter, position) in [
        ("aaa bbb ccc", 7),
        ("a eq", 4),
        ("a eq 'open", 10),
        ("(a eq 1", 7),
        ("a eq 1)", 7),
        ("a = 1", 2),
        ("a eq 1 and", 10),
        ("é eq 1 xor b eq 2", 11),
        ("a eq datetime'2026-02-30T00:00:00Z'", 35),
        ("a eq guid'123'", 14),
        ("a eq X'abc'", 11),
        ("a eq 2147483648", 15),
        ("a eq 1e999", 10),
    ] {
        let rejected = table.rows(filter).await.unwrap_err();
        assert_eq!(rejected.kind(), (Code::InvalidArgument, "INVALID_INPUT"), "{filter}");
        assert_eq!(rejected.fields, ["filter"]);
        let expected = format!("Syntax error at position {position} in '{filter}'.");
        assert!(rejected.message.contains(&expected), "{}", rejected.message);
    }
}

async fn rejects_unsupported_filter_syntax(world: &World) {
    let table = world.table("outside").await;

    for filter in [
        "a eq b",
        "1 eq 1",
        "a eq null",
        "startswith(a, 'x')",
        "a add 1 eq 2",
        "a in (1, 2)",
        "a EQ 1",
        "a eq 1 AND b eq 2",
        "a eq Truth",
        "a eq \"x\"",
        "not",
        "()",
    ] {
        let rejected = table.rows(filter).await.unwrap_err();
        assert_eq!(rejected.kind(), (Code::InvalidArgument, "INVALID_INPUT"), "{filter}");
        let explained = table.explain(filter, &[], false).await.unwrap_err();
        assert_eq!(explained.message, rejected.message);
    }
}
