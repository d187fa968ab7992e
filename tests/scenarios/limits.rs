//! Every limit of an entity, a filter and a projection: accepted at its bound, rejected one past it.

use tonic::Code;
use trestle_model::fault::quoted;
use trestle_model::limits;
use trestle_proto::table::v1::{
    Entity, Property, PropertyMask, QueryEntitiesRequest, WriteMode, value::Kind,
};
use trestle_tests::{Table, World, entity, entity_of, int, prop, scenario, string};

scenario!(
    keys_are_limited_in_utf16_code_units,
    keys_with_forbidden_characters_are_rejected,
    property_names_are_limited_in_utf16_code_units,
    property_names_are_identifiers_and_not_reserved,
    values_are_limited_in_size,
    times_are_limited_and_have_100_ns_resolution,
    guids_have_one_form,
    an_entity_has_at_most_252_properties_also_after_a_merge,
    an_entity_has_at_most_a_mebibyte_also_after_a_merge,
    a_projection_names_at_most_255_properties,
    a_filter_is_bounded_in_bytes_whatever_is_in_it,
);

/// Inserts and removes the entity: it is within the limits.
async fn accepted(table: &Table, entity: Entity) {
    let (partition, row) = (entity.partition_key.clone(), entity.row_key.clone());
    table.insert(entity).await.unwrap();
    table.delete(&partition, &row, None).await.unwrap();
}

async fn rejected(table: &Table, entity: Entity, reason: &str, field: &str) {
    let upsert = table.upsert(entity.clone(), WriteMode::Merge).await;
    let error = table.insert(entity).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, reason), "{error:?}");
    assert_eq!(error.fields, [field]);
    assert_eq!(upsert.unwrap_err(), error, "upserts have the same limits");
}

async fn keys_are_limited_in_utf16_code_units(world: &World) {
    let table = world.table("keys").await;
    let max = limits::KEY_UTF16_UNITS_MAX;
    for longest in ["a".repeat(max), "é".repeat(max), "𝄞".repeat(max / 2)] {
        accepted(&table, entity(&longest, &longest, [])).await;

        let longer = format!("{longest}a");
        let reason = "PROPERTY_VALUE_TOO_LARGE";
        rejected(&table, entity(&longer, "r", []), reason, "entity.partition_key").await;
        rejected(&table, entity("p", &longer, []), reason, "entity.row_key").await;
        let read = table.get("p", &longer).await.unwrap_err();
        assert_eq!((read.reason.as_str(), read.fields), (reason, vec!["row_key".to_owned()]));
    }
}

async fn keys_with_forbidden_characters_are_rejected(world: &World) {
    let table = world.table("forbidden").await;
    let reason = "OUT_OF_RANGE_INPUT";
    for forbidden in ['/', '\\', '#', '?', '\0', '\t', '\u{1F}', '\u{7F}', '\u{80}', '\u{9F}'] {
        let key = format!("a{forbidden}b");
        rejected(&table, entity(&key, "r", []), reason, "entity.partition_key").await;
        rejected(&table, entity("p", &key, []), reason, "entity.row_key").await;
        let read = table.get(&key, "r").await.unwrap_err();
        assert_eq!(read.kind(), (Code::InvalidArgument, reason));
        let delete = table.delete("p", &key, None).await.unwrap_err();
        assert_eq!(delete.fields, ["row_key"]);
    }
    for neighbour in [' ', '~', '\u{A0}'] {
        accepted(&table, entity("p", &neighbour.to_string(), [])).await;
    }
}

async fn property_names_are_limited_in_utf16_code_units(world: &World) {
    let table = world.table("names").await;
    let max = limits::PROPERTY_NAME_UTF16_UNITS_MAX;
    let supplementary = "\u{1D49C}".repeat(max / 2);
    for longest in ["n".repeat(max), "é".repeat(max), format!("{supplementary}x")] {
        accepted(&table, entity("p", "r", [int(&longest, 1)])).await;

        let longer = [int(&format!("{longest}n"), 1)];
        let field = format!("entity.properties[\"{}\"]", quoted(&format!("{longest}n")));
        rejected(&table, entity("p", "r", longer), "PROPERTY_NAME_TOO_LONG", &field).await;
    }
}

async fn property_names_are_identifiers_and_not_reserved(world: &World) {
    let table = world.table("identifiers").await;
    for name in ["_", "a", "Ünïcode", "名前", "a1_\u{203F}", "timestamp", "partitionKey", "etag"]
    {
        accepted(&table, entity("p", "r", [int(name, 1)])).await;
    }

    for name in [
        "",
        "1a",
        "a-b",
        "a b",
        "a.b",
        "a:b",
        "a'b",
        "$a",
        "\u{301}a",
        "PartitionKey",
        "RowKey",
        "Timestamp",
    ] {
        let properties = [int("ok", 1), int(name, 1)];
        let field = format!("entity.properties[\"{name}\"]");
        rejected(&table, entity("p", "r", properties), "PROPERTY_NAME_INVALID", &field).await;
    }
    let twice = [int("a", 1), int("b", 1), string("a", "x")];
    let reason = "DUPLICATE_PROPERTIES_SPECIFIED";
    rejected(&table, entity("p", "r", twice), reason, "entity.properties[\"a\"]").await;
}

async fn values_are_limited_in_size(world: &World) {
    let table = world.table("values").await;
    let max = limits::STRING_UTF16_UNITS_MAX;
    let one = |property: Property| entity("p", "r", [property]);
    let (reason, field) = ("PROPERTY_VALUE_TOO_LARGE", "entity.properties[\"v\"]");
    for longest in ["a".repeat(max), "é".repeat(max), "𝄞".repeat(max / 2)] {
        accepted(&table, one(string("v", &longest))).await;
        let longer = string("v", &format!("{longest}a"));
        rejected(&table, one(longer), reason, field).await;
    }
    let binary = |len: usize| prop("v", Kind::BinaryValue(vec![7; len].into()));
    accepted(&table, one(binary(limits::BINARY_BYTES_MAX))).await;
    rejected(&table, one(binary(limits::BINARY_BYTES_MAX + 1)), reason, field).await;
}

async fn times_are_limited_and_have_100_ns_resolution(world: &World) {
    let table = world.table("times").await;
    let at = |seconds, nanos| {
        let time = prost_types::Timestamp { seconds, nanos };
        entity("p", "r", [prop("v", Kind::DatetimeValue(time))])
    };
    const FIRST: i64 = -11_644_473_600;
    const LAST: i64 = 253_402_300_799;
    accepted(&table, at(FIRST, 0)).await;
    accepted(&table, at(LAST, 999_999_900)).await;

    // Digits below 100 ns are cut off.
    accepted(&table, at(LAST, 999_999_999)).await;

    let (outside, malformed) = ("OUT_OF_RANGE_INPUT", "INVALID_INPUT");
    for (seconds, nanos, reason) in [
        (FIRST - 1, 999_999_900, outside),
        (LAST + 1, 0, outside),
        (i64::MIN, 0, outside),
        (i64::MAX, 0, outside),
        (0, -100, malformed),
        (0, 1_000_000_000, malformed),
        (0, i32::MIN, malformed),
    ] {
        rejected(&table, at(seconds, nanos), reason, "entity.properties[\"v\"]").await;
    }
}

async fn guids_have_one_form(world: &World) {
    let table = world.table("guids").await;
    for text in [
        "",
        "c9da6455213d42c99a793e9149a57833",
        "{c9da6455-213d-42c9-9a79-3e9149a57833}",
        "urn:uuid:c9da6455-213d-42c9-9a79-3e9149a57833",
        "c9da6455-213d-42c9-9a79-3e9149a5783g",
        "c9da6455-213d-42c9-9a79-3e9149a5783",
        "c9da64552-13d-42c9-9a79-3e9149a57833",
    ] {
        let guid = prop("v", Kind::GuidValue(text.to_owned()));
        let field = "entity.properties[\"v\"]";
        rejected(&table, entity("p", "r", [guid]), "INVALID_INPUT", field).await;
    }
}

fn numbered(range: std::ops::Range<usize>) -> Vec<Property> {
    range.map(|n| int(&format!("p{n:03}"), 1)).collect()
}

async fn an_entity_has_at_most_252_properties_also_after_a_merge(world: &World) {
    let table = world.table("counts").await;
    let max = limits::PROPERTIES_MAX;
    let reason = "TOO_MANY_PROPERTIES";
    accepted(&table, entity_of("p", "r", numbered(0..max))).await;
    let many = entity_of("p", "r", numbered(0..max + 1));
    rejected(&table, many, reason, "entity.properties").await;

    table.insert(entity_of("p", "r", numbered(0..max - 1))).await.unwrap();
    let merge = async |range| {
        let merge = entity_of("p", "r", numbered(range));
        table.update(merge, WriteMode::Merge, None).await
    };
    let past_it = merge(max - 2..max + 1).await.unwrap_err();
    assert_eq!(past_it.kind(), (Code::InvalidArgument, reason));
    assert!(merge(max - 2..max).await.is_ok());
    assert_eq!(table.get("p", "r").await.unwrap().properties.len(), max);
}

/// Properties that extend an entity with the key `p`, `r` to exactly `bytes`, as Azure counts them.
fn weighing(bytes: usize) -> Vec<Property> {
    const KEYS: usize = 4 + 2 * 2;
    // The name has two characters.
    const PROPERTY: usize = 8 + 2 * 2 + 4;
    let mut left = bytes - KEYS;
    let mut properties = Vec::new();
    while left > 0 {
        // Enough for one more property remains, or nothing.
        let value = (left - PROPERTY).min(65_000);
        let value =
            if left - PROPERTY - value == 0 { value } else { value.min(left - 2 * PROPERTY) };
        let name = format!("b{}", char::from(b'a' + properties.len() as u8));
        properties.push(prop(&name, Kind::BinaryValue(vec![1; value].into())));
        left -= PROPERTY + value;
    }
    properties
}

async fn an_entity_has_at_most_a_mebibyte_also_after_a_merge(world: &World) {
    let table = world.table("sizes").await;
    let max = limits::ENTITY_BYTES_MAX;
    let reason = "ENTITY_TOO_LARGE";
    accepted(&table, entity_of("p", "r", weighing(max))).await;
    let large = entity_of("p", "r", weighing(max + 1));
    rejected(&table, large, reason, "entity").await;

    // The last property of the merge weighs 8 + 2 + 1.
    let flag = |name: &str| prop(name, Kind::BooleanValue(true));
    table.insert(entity_of("p", "r", weighing(max - 11))).await.unwrap();
    let merge =
        async |property| table.update(entity("p", "r", [property]), WriteMode::Merge, None).await;
    assert!(merge(flag("x")).await.is_ok());
    let past_it = merge(flag("y")).await.unwrap_err();
    assert_eq!(past_it.kind(), (Code::InvalidArgument, reason));
    assert!(table.upsert(entity("p", "r", [flag("z")]), WriteMode::Merge).await.is_err());
}

async fn a_projection_names_at_most_255_properties(world: &World) {
    let table = world.table("projections").await;
    table.insert(entity("p", "r", [int("n000", 1)])).await.unwrap();
    let names: Vec<_> = (0..256).map(|n| format!("n{n:03}")).collect();
    let mut names: Vec<_> = names.iter().map(String::as_str).collect();

    let past_it = table.get_selected("p", "r", &names).await.unwrap_err();
    assert_eq!(past_it.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(past_it.fields, ["select.paths"]);
    let request = QueryEntitiesRequest {
        select: Some(PropertyMask { paths: names.iter().map(|name| (*name).to_owned()).collect() }),
        ..Default::default()
    };
    assert_eq!(table.page(request).await.unwrap_err().fields, ["select.paths"]);
    names.truncate(limits::SELECT_NAMES_MAX);
    let (read, _) = table.get_selected("p", "r", &names).await.unwrap();
    assert_eq!(read.properties.len(), 1);
}

async fn a_filter_is_bounded_in_bytes_whatever_is_in_it(world: &World) {
    let table = world.table("filters").await;
    table.insert(entity("p", "r", [int("a", 1)])).await.unwrap();
    let padded = |bytes: usize| format!("a eq 1{}", " ".repeat(bytes - 6));
    let filled = |open: &str, close: &str| {
        let count = (limits::FILTER_BYTES_MAX - 6) / (open.len() + close.len());
        format!("{}a eq 1{}", open.repeat(count), close.repeat(count))
    };
    let alternating = |pairs: usize| {
        format!("{}a eq 1{}", "a eq 1 and (b eq 2 or ".repeat(pairs), ")".repeat(pairs))
    };

    for filter in [
        padded(limits::FILTER_BYTES_MAX),
        filled("(", ")"),
        filled("not (not (", "))"),
        filled("(", ") or b eq 2"),
        filled("b eq 2 or (", ")"),
        filled("", " or a eq 1"),
        alternating(limits::FILTER_NESTING_MAX / 2 - 1),
    ] {
        assert_eq!(table.rows(&filter).await.unwrap(), ["r"]);
    }
    for filter in [
        padded(limits::FILTER_BYTES_MAX + 1),
        alternating(limits::FILTER_NESTING_MAX),
        "(".repeat(30_000),
        "not ".repeat(5_000),
    ] {
        let error = table.rows(&filter).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
        assert_eq!(error.fields, ["filter"]);
        assert!(error.message.len() < 500, "long filters are not repeated");
    }
}
