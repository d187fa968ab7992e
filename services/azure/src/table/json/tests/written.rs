//! Entities and tables as they are written, and round trips.

use super::*;

fn origin() -> ResponseOrigin {
    ResponseOrigin {
        base: "https://acct.table.core.windows.net".to_owned(),
        account: "acct".to_owned(),
        table: "t1".to_owned(),
    }
}

const ETAG: &str = "W/\"datetime'2020-07-24T14%3A34%3A28.5209593Z'\"";

fn stored(partition: &str, row: &str, properties: &[(&str, Kind)]) -> Bytes {
    let property = |(name, kind): &(&str, Kind)| Property {
        name: (*name).to_owned(),
        value: Some(Value { kind: Some(kind.clone()) }),
    };
    let entity = Entity {
        partition_key: partition.to_owned(),
        row_key: row.to_owned(),
        properties: properties.iter().map(property).collect(),
        timestamp: Some(prost_types::Timestamp { seconds: 1_595_601_268, nanos: 520_959_300 }),
        etag: ETAG.to_owned(),
    };
    entity.encode_to_vec().into()
}

fn sample() -> Bytes {
    let when = prost_types::Timestamp { seconds: 118_540_800, nanos: 200_000_000 };
    stored(
        "p",
        "r",
        &[
            ("age", Kind::Int64Value(39)),
            ("ratio", Kind::DoubleValue(3.0)),
            ("when", Kind::DatetimeValue(when)),
        ],
    )
}

fn json(encoded: &[u8], level: Level, select: Option<&str>) -> String {
    let select = select.and_then(Select::parse);
    let body = entity_json(encoded, &origin(), level, select.as_ref()).expect("readable");
    String::from_utf8(body).expect("UTF-8")
}

#[test]
fn an_entity_is_written_at_each_level() {
    let etag = r#""odata.etag":"W/\"datetime'2020-07-24T14%3A34%3A28.5209593Z'\"","#;
    let metadata =
        r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#t1/@Element","#;
    let typed = concat!(
        r#""age@odata.type":"Edm.Int64","age":"39","ratio":3.0,"#,
        r#""when@odata.type":"Edm.DateTime","when":"1973-10-04T00:00:00.2Z"}"#
    );

    let none = json(&sample(), Level::None, None);
    assert_eq!(
        none,
        concat!(
            r#"{"PartitionKey":"p","RowKey":"r","Timestamp":"2020-07-24T14:34:28.5209593Z","#,
            r#""age":"39","ratio":3.0,"when":"1973-10-04T00:00:00.2Z"}"#
        )
    );
    let minimal = json(&sample(), Level::Minimal, None);
    let system = r#""PartitionKey":"p","RowKey":"r","Timestamp":"2020-07-24T14:34:28.5209593Z","#;
    assert_eq!(minimal, format!("{metadata}{etag}{system}{typed}"));
    let full = json(&sample(), Level::Full, None);
    let control = concat!(
        r#""odata.type":"acct.t1","#,
        r#""odata.id":"https://acct.table.core.windows.net/t1(PartitionKey='p',RowKey='r')","#
    );
    let link = r#""odata.editLink":"t1(PartitionKey='p',RowKey='r')","#;
    let system = concat!(
        r#""PartitionKey":"p","RowKey":"r","Timestamp@odata.type":"Edm.DateTime","#,
        r#""Timestamp":"2020-07-24T14:34:28.5209593Z","#
    );
    assert_eq!(full, format!("{metadata}{control}{etag}{link}{system}{typed}"));
}

#[test]
fn a_selected_property_that_is_absent_is_null_and_no_other_is_returned() {
    let minimal = json(&sample(), Level::Minimal, Some("when,no,RowKey,age,zz,no"));

    assert_eq!(
        minimal,
        concat!(
            r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#t1/@Element"#,
            r#"&$select=when,no,RowKey,age,zz,no","#,
            r#""odata.etag":"W/\"datetime'2020-07-24T14%3A34%3A28.5209593Z'\"","RowKey":"r","#,
            r#""age@odata.type":"Edm.Int64","age":"39","no":null,"#,
            r#""when@odata.type":"Edm.DateTime","when":"1973-10-04T00:00:00.2Z","zz":null}"#
        )
    );
    assert_eq!(json(&sample(), Level::None, Some("no")), r#"{"no":null}"#);
    assert_eq!(
        json(&sample(), Level::None, Some("Timestamp")),
        r#"{"Timestamp":"2020-07-24T14:34:28.5209593Z"}"#
    );
    assert_eq!(json(&sample(), Level::None, Some("*")), json(&sample(), Level::None, None));
    assert_eq!(json(&sample(), Level::None, Some("")), json(&sample(), Level::None, None));
}

#[test]
fn doubles_always_have_a_point_or_an_exponent() {
    for (number, text) in [
        (4.0, "4.0"),
        (-0.0, "-0.0"),
        (1e16, "1e+16"),
        (1e300, "1e+300"),
        (0.1, "0.1"),
        (5e-324, "5e-324"),
        (f64::NAN, r#""NaN""#),
        (f64::INFINITY, r#""Infinity""#),
        (f64::NEG_INFINITY, r#""-Infinity""#),
    ] {
        let encoded = stored("", "", &[("x", Kind::DoubleValue(number))]);
        let none = json(&encoded, Level::None, Some("x"));
        assert_eq!(none, format!(r#"{{"x":{text}}}"#));
        let annotated = json(&encoded, Level::Minimal, Some("x")).contains("x@odata.type");
        assert_eq!(annotated, !number.is_finite(), "{number}");
    }
}

#[test]
fn keys_in_addresses_are_escaped() {
    assert_eq!(
        entity_path("t1", "a'b", "x y/é"),
        "t1(PartitionKey='a''b',RowKey='x%20y%2F%C3%A9')"
    );
}

#[test]
fn tables_are_written_at_each_level() {
    let base = "https://acct.table.core.windows.net";
    let table = |level| String::from_utf8(table_json(&origin(), level)).expect("UTF-8");
    let full = format!(
        r#""odata.type":"acct.Tables","odata.id":"{base}/Tables('t1')","odata.editLink":"Tables('t1')","#
    );
    let metadata = format!(r#""odata.metadata":"{base}/$metadata#Tables/@Element","#);
    assert_eq!(table(Level::None), r#"{"TableName":"t1"}"#);
    assert_eq!(table(Level::Minimal), format!(r#"{{{metadata}"TableName":"t1"}}"#));
    assert_eq!(table(Level::Full), format!(r#"{{{metadata}{full}"TableName":"t1"}}"#));
    let names = || ["t1", "t2"].into_iter();
    let list = tables_json(names(), &origin(), Level::Minimal);
    assert_eq!(
        String::from_utf8(list).expect("UTF-8"),
        format!(
            r#"{{"odata.metadata":"{base}/$metadata#Tables","value":[{{"TableName":"t1"}},{{"TableName":"t2"}}]}}"#
        )
    );
    assert_eq!(tables_json(std::iter::empty(), &origin(), Level::None), br#"{"value":[]}"#);
}

#[test]
fn texts_are_escaped_wherever_required() {
    for length in [1, 2, 127, 128, 129, 300] {
        for (at, escaped) in
            (0..length).flat_map(|at| ["\"", "\\", "\n", "\u{1f}", "é"].map(|e| (at, e)))
        {
            let text = format!("{}{escaped}{}", "x".repeat(at), "y".repeat(length - at - 1));
            let encoded = stored("p", &text, &[(&text, Kind::StringValue(text.clone()))]);

            let read: serde_json::Value =
                serde_json::from_str(&json(&encoded, Level::None, None)).expect("JSON");

            assert_eq!(
                (read["RowKey"].as_str(), read[&text].as_str()),
                (Some(&*text), Some(&*text))
            );
        }
    }
}

#[tokio::test]
async fn a_page_in_chunks_equals_one_at_once() {
    let large = "x".repeat(5000);
    let entities: Vec<Bytes> = (0..40)
        .map(|row| stored("p", &row.to_string(), &[("s", Kind::StringValue(large.clone()))]))
        .collect();
    let page =
        |count: usize| PageBody::new(entities[..count].to_vec(), origin(), Level::Minimal, None);

    let mut body = page(40).small().expect_err("too large to be rendered at once");
    let (mut chunks, mut all) = (0, Vec::new());
    while let Some(frame) = body.frame().await {
        let chunk = frame.expect("readable").into_data().expect("data");
        assert!(chunk.len() < 48 * 1024, "{}", chunk.len());
        all.extend_from_slice(&chunk);
        chunks += 1;
    }

    assert!(chunks > 5);
    let parsed: serde_json::Value = serde_json::from_slice(&all).expect("JSON");
    assert_eq!(parsed["value"].as_array().map(Vec::len), Some(40));
    assert_eq!(parsed["value"][39]["RowKey"], "39");
    let small = page(1).small().ok().expect("small").expect("readable");
    assert_eq!(page(1).collect().await.expect("readable").to_bytes(), small);
    let empty = page(0).small().ok().expect("small").expect("readable");
    assert_eq!(
        empty,
        r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#t1","value":[]}"#
    );
}

#[test]
fn an_invalid_entity_is_an_error() {
    for encoded in [b"\x0A\x05p".as_slice(), b"\xFF", b"\x0A\x01\xFF", b"\x0B"] {
        assert!(entity_json(encoded, &origin(), Level::Full, None).is_err(), "{encoded:?}");
    }
    // A field of a later contract is ignored.
    let mut later = sample().to_vec();
    later.extend_from_slice(b"\x3D\0\0\0\0\x38\x01");
    assert_eq!(json(&later, Level::Full, None), json(&sample(), Level::Full, None));
}

fn kinds() -> impl Strategy<Value = Kind> {
    let time = (-11_644_473_600_i64..=253_402_300_799, 0..10_000_000_i32)
        .prop_map(|(seconds, ticks)| prost_types::Timestamp { seconds, nanos: ticks * 100 });
    prop_oneof![
        any::<String>().prop_map(Kind::StringValue),
        any::<i32>().prop_map(Kind::Int32Value),
        any::<i64>().prop_map(Kind::Int64Value),
        any::<f64>().prop_map(Kind::DoubleValue),
        any::<bool>().prop_map(Kind::BooleanValue),
        time.prop_map(Kind::DatetimeValue),
        any::<u128>().prop_map(|bits| {
            let hex = format!("{bits:032x}");
            let part = |from, to| &hex[from..to];
            let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
            Kind::GuidValue(parts.join("-"))
        }),
        proptest::collection::vec(any::<u8>(), 0..50).prop_map(|b| Kind::BinaryValue(b.into())),
    ]
}

proptest! {
    /// The JSON at the minimal level parses to the same entity, names and values of every kind.
    #[test]
    fn entities_survive_their_json(
        partition: String,
        row: String,
        properties in proptest::collection::vec(("[a-z\"é\\\\\u{1}]{1,8}", kinds()), 0..8),
    ) {
        let properties: Vec<(&str, Kind)> = properties.iter().map(|(n, k)| (n.as_str(), k.clone())).collect();
        let mut names = std::collections::HashSet::new();
        let properties: Vec<_> = properties.into_iter().filter(|(n, _)| names.insert(*n)).collect();
        let encoded = stored(&partition, &row, &properties);
        for level in [Level::Minimal, Level::Full] {
            let body = json(&encoded, level, None);

            let read = entity_of(body.as_bytes(), None).expect("what was written can be read");

            // By text, since NaN does not equal itself.
            let mut written = Entity::decode(encoded.clone()).expect("an entity");
            (written.timestamp, written.etag) = (None, String::new());
            prop_assert_eq!(format!("{read:?}"), format!("{written:?}"));
        }
    }
}
