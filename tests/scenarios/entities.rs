//! Single entities: reads return what was written.

use prost_types::Timestamp;
use tonic::Code;
use trestle_proto::table::v1::{Property, WriteMode, value::Kind};
use trestle_tests::{
    World, entity, entity_of, int, key_of, null, prop, scenario, string, utf16, value_of,
};

scenario!(
    an_inserted_entity_can_be_read_back,
    every_type_keeps_its_extreme_values,
    guid_is_returned_in_lower_case,
    null_is_not_stored_and_merge_keeps_the_property,
    accepts_keys_with_quotes_spaces_signs_empty_and_supplementary_characters,
    keys_and_names_are_case_sensitive,
    every_write_returns_a_new_etag_and_a_later_timestamp,
    an_etag_is_not_repeated_by_an_entity_that_was_deleted_and_inserted_again,
    the_etag_is_the_percent_encoded_time,
    a_merge_keeps_other_properties_and_a_replacement_drops_them,
    a_merge_of_nothing_is_a_write,
    a_write_may_change_the_type_of_a_property,
    properties_are_returned_in_ordinal_order,
    timestamp_and_etag_of_a_request_are_ignored,
    read_returns_selected_properties_and_its_cost,
);

async fn an_inserted_entity_can_be_read_back(world: &World) {
    let table = world.table("orders").await;
    let total = prop("total", Kind::Int64Value(990));
    let order = entity("c42", "0001", [string("state", "open"), total]);

    let version = table.insert(order.clone()).await.unwrap();

    let read = table.get("c42", "0001").await.unwrap();
    assert_eq!(read.properties, order.properties);
    assert_eq!(key_of(&read), ("c42", "0001"));
    assert_eq!(read.etag, version.etag);
    assert_eq!(read.timestamp, Some(version.timestamp));
    let absent = table.get("c42", "0002").await.unwrap_err();
    assert_eq!(absent.kind(), (Code::NotFound, "RESOURCE_NOT_FOUND"));
}

fn time(seconds: i64, nanos: i32) -> Kind {
    Kind::DatetimeValue(Timestamp { seconds, nanos })
}

async fn every_type_keeps_its_extreme_values(world: &World) {
    let table = world.table("extremes").await;
    let text = |text: &str| Kind::StringValue(text.to_owned());
    let long = "é𝄞".repeat(32_768 / 3);
    let kinds = [
        text(""),
        text("  spaces, 'quotes', \u{0}, \u{FFFF} and 𝄞 "),
        text(&long),
        Kind::Int32Value(i32::MIN),
        Kind::Int32Value(0),
        Kind::Int32Value(i32::MAX),
        Kind::Int64Value(i64::MIN),
        Kind::Int64Value(0),
        Kind::Int64Value(i64::MAX),
        Kind::DoubleValue(0.0),
        Kind::DoubleValue(-0.0),
        Kind::DoubleValue(f64::INFINITY),
        Kind::DoubleValue(f64::NEG_INFINITY),
        Kind::DoubleValue(f64::NAN),
        Kind::DoubleValue(f64::MIN_POSITIVE / 2.0),
        Kind::DoubleValue(f64::MAX),
        Kind::BooleanValue(true),
        Kind::BooleanValue(false),
        time(-11_644_473_600, 0),
        time(-1, 999_999_900),
        time(0, 100),
        time(253_402_300_799, 999_999_900),
        Kind::GuidValue("00000000-0000-0000-0000-000000000000".to_owned()),
        Kind::GuidValue("ffffffff-ffff-ffff-ffff-ffffffffffff".to_owned()),
        Kind::BinaryValue(bytes::Bytes::new()),
        Kind::BinaryValue(vec![0xA5; 65_536].into()),
    ];
    let named = |(position, kind): (usize, &Kind)| prop(&format!("p{position:02}"), kind.clone());
    let properties: Vec<_> = kinds.iter().enumerate().map(named).collect();

    let insert = entity_of("p", "r", properties.clone());
    table.insert(insert).await.unwrap();

    let read = table.get("p", "r").await.unwrap();
    assert_eq!(read.properties.len(), kinds.len());
    for (read, written) in read.properties.iter().zip(&properties) {
        match (value_of_property(read), value_of_property(written)) {
            // NaN and -0.0 are not distinguished by comparison.
            (Kind::DoubleValue(read), Kind::DoubleValue(written)) => {
                assert_eq!(read.to_bits(), written.to_bits(), "{written}");
            }
            (read, written) => assert_eq!(read, written),
        }
    }
    let queried = table.query("").await.unwrap();
    assert_eq!(format!("{queried:?}"), format!("{:?}", [read]));
}

fn value_of_property(property: &Property) -> &Kind {
    property.value.as_ref().unwrap().kind.as_ref().unwrap()
}

async fn guid_is_returned_in_lower_case(world: &World) {
    let table = world.table("guids").await;
    let guid = |text: &str| Kind::GuidValue(text.to_owned());
    let mixed = "C9DA6455-213D-42C9-9A79-3E9149A57833";

    let insert = entity("p", "r", [prop("g", guid(mixed))]);
    table.insert(insert).await.unwrap();

    let read = table.get("p", "r").await.unwrap();
    assert_eq!(value_of(&read, "g"), Some(&guid(&mixed.to_lowercase())));
}

async fn null_is_not_stored_and_merge_keeps_the_property(world: &World) {
    let table = world.table("nulls").await;
    let insert = entity("p", "r", [int("kept", 1), null("never")]);
    table.insert(insert).await.unwrap();
    let names = async || {
        let read = table.get("p", "r").await.unwrap();
        let names = read.properties.into_iter().map(|property| property.name);
        names.collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["kept"]);

    let merge = entity("p", "r", [null("kept"), int("new", 2)]);
    table.update(merge, WriteMode::Merge, None).await.unwrap();
    assert_eq!(names().await, ["kept", "new"]);

    let replace = entity("p", "r", [null("kept"), int("new", 2)]);
    table.upsert(replace, WriteMode::Replace).await.unwrap();
    assert_eq!(names().await, ["new"]);
}

async fn accepts_keys_with_quotes_spaces_signs_empty_and_supplementary_characters(world: &World) {
    let table = world.table("keys").await;
    let longest = "é".repeat(1024);
    let mut keys = vec![
        "",
        " ",
        "  a  ",
        "it's",
        "''",
        "\"",
        "100%",
        "%41",
        "a+b",
        "𝄞",
        "\u{E000}",
        "\u{FFFF}",
        "å",
        "a\u{30A}",
        ":;,.!@$^&*()[]{}<>|~`=_-",
        &longest,
        "\u{A0}",
        "\u{200B}",
        "a",
        "A",
    ];
    for (position, key) in keys.iter().enumerate() {
        let position = i32::try_from(position).unwrap();
        table.insert(entity(key, key, [int("n", position)])).await.unwrap();
    }

    for (position, key) in keys.iter().enumerate() {
        let read = table.get(key, key).await.unwrap();
        assert_eq!(key_of(&read), (*key, *key));
        let position = i32::try_from(position).unwrap();
        assert_eq!(value_of(&read, "n"), Some(&Kind::Int32Value(position)));
        let quoted = key.replace('\'', "''");
        let found = table.rows(&format!("RowKey eq '{quoted}'")).await.unwrap();
        assert_eq!(found, [*key]);
    }
    keys.sort_by_key(|key| utf16(key));
    assert_eq!(table.rows("").await.unwrap(), keys);
    for key in keys {
        table.delete(key, key, None).await.unwrap();
    }
    assert_eq!(table.rows("").await.unwrap().len(), 0);
}

async fn keys_and_names_are_case_sensitive(world: &World) {
    let table = world.table("cases").await;
    let both = entity("p", "Row", [int("Birthday", 1), int("birthday", 2)]);
    table.insert(both).await.unwrap();
    table.insert(entity("P", "row", [])).await.unwrap();

    let read = table.get("p", "Row").await.unwrap();
    assert_eq!(value_of(&read, "Birthday"), Some(&Kind::Int32Value(1)));
    assert_eq!(value_of(&read, "birthday"), Some(&Kind::Int32Value(2)));
    assert_eq!(table.get("p", "row").await.unwrap_err().code, Code::NotFound);
    assert_eq!(table.rows("birthday eq 1").await.unwrap().len(), 0);
}

async fn every_write_returns_a_new_etag_and_a_later_timestamp(world: &World) {
    let table = world.table("versions").await;
    let same = || entity("p", "r", [int("a", 1)]);
    let mut versions = vec![table.insert(same()).await.unwrap()];
    for _ in 0..10 {
        for mode in [WriteMode::Replace, WriteMode::Merge] {
            versions.push(table.update(same(), mode, None).await.unwrap());
            versions.push(table.upsert(same(), mode).await.unwrap());
        }
    }

    let time =
        |version: &trestle_tests::Version| (version.timestamp.seconds, version.timestamp.nanos);
    for pair in versions.windows(2) {
        assert!(time(&pair[0]) < time(&pair[1]), "{pair:?}");
        assert_ne!(pair[0].etag, pair[1].etag);
        assert_eq!(pair[1].timestamp.nanos % 100, 0, "in steps of 100 ns");
    }
    let read = table.get("p", "r").await.unwrap();
    assert_eq!(read.etag, versions.last().unwrap().etag);
}

async fn an_etag_is_not_repeated_by_an_entity_that_was_deleted_and_inserted_again(world: &World) {
    let table = world.table("reborn").await;
    let mut etags = std::collections::HashSet::new();

    for _ in 0..20 {
        let version = table.insert(entity("p", "r", [])).await.unwrap();
        assert!(etags.insert(version.etag), "an etag came twice");
        table.delete("p", "r", None).await.unwrap();
    }
}

async fn the_etag_is_the_percent_encoded_time(world: &World) {
    let table = world.table("etags").await;

    let version = table.insert(entity("p", "r", [])).await.unwrap();

    // prost prints three, six or nine digits, etags only those that count.
    let time = version.timestamp.to_string();
    let time = match time.trim_end_matches('Z').split_once('.') {
        Some((whole, fraction)) => format!("{whole}.{}Z", fraction.trim_end_matches('0')),
        None => time,
    };
    let encoded = time.replace(':', "%3A");
    assert_eq!(version.etag, format!("W/\"datetime'{encoded}'\""));
}

async fn a_merge_keeps_other_properties_and_a_replacement_drops_them(world: &World) {
    let table = world.table("modes").await;
    let numbers = |properties: &[Property]| -> Vec<String> {
        let show = |p: &Property| format!("{}={:?}", p.name, value_of_property(p));
        properties.iter().map(show).collect()
    };
    let stored = entity("p", "r", [int("b", 1), int("d", 1)]);
    table.insert(stored).await.unwrap();

    let change = [int("a", 2), int("b", 2), int("c", 2), int("e", 2)];
    let merge = entity("p", "r", change.clone());
    table.update(merge.clone(), WriteMode::Merge, None).await.unwrap();
    let merged = table.get("p", "r").await.unwrap().properties;
    let expected = [int("a", 2), int("b", 2), int("c", 2), int("d", 1), int("e", 2)];
    assert_eq!(numbers(&merged), numbers(&expected));

    table.update(merge, WriteMode::Replace, None).await.unwrap();
    let replaced = table.get("p", "r").await.unwrap().properties;
    assert_eq!(numbers(&replaced), numbers(&change));
}

async fn a_merge_of_nothing_is_a_write(world: &World) {
    let table = world.table("nothing").await;
    let inserted = table.insert(entity("p", "r", [int("a", 1)])).await.unwrap();

    let merged = table.update(entity("p", "r", []), WriteMode::Merge, None).await;

    assert_ne!(merged.unwrap().etag, inserted.etag);
    let read = table.get("p", "r").await.unwrap();
    assert_eq!(read.properties, [int("a", 1)]);
}

async fn a_write_may_change_the_type_of_a_property(world: &World) {
    let table = world.table("types").await;
    table.insert(entity("p", "r", [int("a", 1)])).await.unwrap();

    let change = entity("p", "r", [string("a", "one")]);
    table.update(change.clone(), WriteMode::Merge, None).await.unwrap();

    assert_eq!(table.get("p", "r").await.unwrap().properties, change.properties);
}

async fn properties_are_returned_in_ordinal_order(world: &World) {
    let table = world.table("ordinal").await;
    // U+FB01 sorts before U+1D49C in UTF-8, after it in UTF-16.
    let mut names = ["zz", "Z", "_", "a1", "a", "\u{FB01}", "\u{1D49C}", "ä"];
    let properties = names.iter().map(|name| int(name, 1)).collect();
    table.insert(entity_of("p", "inserted", properties)).await.unwrap();
    for name in names {
        let merge = entity("p", "merged", [int(name, 1)]);
        table.upsert(merge, WriteMode::Merge).await.unwrap();
    }

    names.sort_by_key(|name| utf16(name));
    for row in ["inserted", "merged"] {
        let read = table.get("p", row).await.unwrap().properties;
        let read: Vec<_> = read.iter().map(|property| property.name.as_str()).collect();
        assert_eq!(read, names, "{row}");
    }
}

async fn timestamp_and_etag_of_a_request_are_ignored(world: &World) {
    let table = world.table("ignored").await;
    let mut claims = entity("p", "r", []);
    claims.timestamp = Some(Timestamp { seconds: i64::MAX, nanos: -1 });
    claims.etag = "nonsense".to_owned();

    let version = table.insert(claims).await.unwrap();

    let read = table.get("p", "r").await.unwrap();
    assert_eq!(read.etag, version.etag);
    assert_eq!(read.timestamp, Some(version.timestamp));
    assert!(read.properties.is_empty());
}

async fn read_returns_selected_properties_and_its_cost(world: &World) {
    let table = world.table("selected").await;
    let stored = entity("p", "r", [int("a", 1), int("b", 2), int("c", 3)]);
    let version = table.insert(stored).await.unwrap();
    let select = async |names: &[&str]| table.get_selected("p", "r", names).await.unwrap();

    let (read, cost) = select(&["c", "a", "absent", "a"]).await;
    assert_eq!(read.properties, [int("a", 1), int("c", 3)]);
    assert_eq!(key_of(&read), ("p", "r"));
    assert_eq!(read.etag, version.etag, "the version is always there");
    let point = trestle_proto::table::v1::QueryScope::Point;
    assert_eq!((cost.scope(), cost.scanned, cost.returned), (point, 1, 1));
    assert!(cost.bytes > 0);
    assert_eq!(select(&["absent"]).await.0.properties, []);
    assert_eq!(select(&[]).await.0.properties.len(), 3, "empty means all");
}
