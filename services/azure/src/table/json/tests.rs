//! Parsing, writing, and round trips of entities.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use proptest::prelude::*;
use prost::Message as _;
use trestle_proto::table::v1::{Entity, Property, Value, value::Kind};
use trestle_service::fault::Reason;

use super::*;
use crate::table::{level::Level, path::Key};

fn key() -> Option<Key> {
    Some(Key { partition_key: "p".to_owned(), row_key: "r".to_owned() })
}

/// The value of the property `x` of a body with these members.
fn kind(members: &str) -> Result<Option<Kind>, Reason> {
    let entity = entity_of(format!("{{{members}}}").as_bytes(), key()).map_err(|f| f.reason)?;
    let [property] = <[Property; 1]>::try_from(entity.properties).expect("one property");
    assert_eq!(property.name, "x");
    Ok(property.value.and_then(|value| value.kind))
}

#[test]
fn values_are_parsed_as_their_implied_or_declared_types() {
    let string = |text: &str| Kind::StringValue(text.to_owned());
    let time = |seconds, nanos| Kind::DatetimeValue(prost_types::Timestamp { seconds, nanos });
    for (members, expected) in [
        (r#""x":"a\u00e9\n""#, string("aé\n")),
        (r#""x":"\ud83d\ude00""#, string("😀")),
        (r#""x":" 3 ""#, string(" 3 ")),
        (r#""x":"3","x@odata.type":"Edm.String""#, string("3")),
        (r#""x":3"#, Kind::Int32Value(3)),
        (r#""x":-2147483648"#, Kind::Int32Value(i32::MIN)),
        (r#""x":3.0"#, Kind::DoubleValue(3.0)),
        (r#""x":3e0"#, Kind::DoubleValue(3.0)),
        (r#""x":3,"x@odata.type":"Edm.Double""#, Kind::DoubleValue(3.0)),
        (r#""x":3,"x@odata.type":"Edm.Int64""#, Kind::Int64Value(3)),
        (r#""x@odata.type":"Edm.Int64","x":"-9223372036854775808""#, Kind::Int64Value(i64::MIN)),
        (r#""x":"9007199254740993","x@odata.type":"Edm.Int64""#, Kind::Int64Value((1 << 53) + 1)),
        (r#""x":"-Infinity","x@odata.type":"Edm.Double""#, Kind::DoubleValue(f64::NEG_INFINITY)),
        (
            r#""x":"1.797693134862315e308","x@odata.type":"Edm.Double""#,
            Kind::DoubleValue(1.797_693_134_862_315e308),
        ),
        (r#""x":true"#, Kind::BooleanValue(true)),
        (r#""x":false,"x@odata.type":"Edm.Boolean""#, Kind::BooleanValue(false)),
        (
            r#""x":"2026-01-31T08:00:00.1234567Z","x@odata.type":"Edm.DateTime""#,
            time(1_769_846_400, 123_456_700),
        ),
        (r#""x":"2026-01-31T08:00:00","x@odata.type":"Edm.DateTime""#, time(1_769_846_400, 0)),
        (
            r#""x":"2026-01-31T10:00:00+02:00","x@odata.type":"Edm.DateTime""#,
            time(1_769_846_400, 0),
        ),
        (r#""x":"1601-01-01T00:00:00Z","x@odata.type":"Edm.DateTime""#, time(-11_644_473_600, 0)),
        (
            r#""x":"C9DA6455-213D-42C9-9A79-3E9149A57833","x@odata.type":"Edm.Guid""#,
            Kind::GuidValue("c9da6455-213d-42c9-9a79-3e9149a57833".to_owned()),
        ),
        (
            r#""x":"AAEC","x@odata.type":"Edm.Binary""#,
            Kind::BinaryValue(Bytes::from_static(&[0, 1, 2])),
        ),
        (r#""x":"","x@odata.type":"Edm.Binary""#, Kind::BinaryValue(Bytes::new())),
    ] {
        assert_eq!(kind(members), Ok(Some(expected)), "{members}");
    }
    assert!(matches!(
        kind(r#""x":"NaN","x@odata.type":"Edm.Double""#),
        Ok(Some(Kind::DoubleValue(number))) if number.is_nan()
    ));
}

#[test]
fn rejects_values_that_do_not_match_their_type() {
    for members in [
        r#""x":2147483648"#,
        r#""x":99999999999999999999"#,
        r#""x":1e999"#,
        r#""x":"1.797693134862316e308","x@odata.type":"Edm.Double""#,
        r#""x":"inf","x@odata.type":"Edm.Double""#,
        r#""x":"9223372036854775808","x@odata.type":"Edm.Int64""#,
        r#""x":"+1","x@odata.type":"Edm.Int64""#,
        r#""x":1.0,"x@odata.type":"Edm.Int32""#,
        r#""x":"","x@odata.type":"Edm.DateTime""#,
        r#""x":"2026-01-31T08:00:00.12345678Z","x@odata.type":"Edm.DateTime""#,
        r#""x":"A","x@odata.type":"Edm.Binary""#,
        r#""x":3,"x@odata.type":"Edm.String""#,
        r#""x":3,"x@odata.type":"Edm.Guid""#,
        r#""x":"3","x@odata.type":"Edm.Decimal""#,
        r#""x":"3","x@odata.type":"int64""#,
        r#""x":"3","x@odata.type":7"#,
        r#""x":"yes","x@odata.type":"Edm.Boolean""#,
        r#""x":{"a":1}"#,
        r#""x":[]"#,
        r#""x":"\ud800""#,
        r#""x":"\udc00\ud800""#,
    ] {
        assert_eq!(kind(members), Err(Reason::InvalidInput), "{members}");
    }
}

/// The text of the one violation of a body with these members.
fn rule(members: &str) -> String {
    let fault = entity_of(format!("{{{members}}}").as_bytes(), key()).expect_err(members);
    fault.to_string()
}

#[test]
fn an_error_has_the_value_or_the_type_that_was_given() {
    for (members, given) in [
        (r#""x":2147483648"#, "value=`2147483648`"),
        (r#""x":"9223372036854775808","x@odata.type":"Edm.Int64""#, "value=`9223372036854775808`"),
        (r#""x":"yesterday","x@odata.type":"Edm.DateTime""#, "value=`yesterday`"),
        (r#""x":3,"x@odata.type":"Edm.Guid""#, "value=`3`"),
        (r#""x":"3","x@odata.type":"Edm.Decimal""#, "type=`Edm.Decimal`"),
        (r#""RowKey":"r","RowKey@odata.type":"Edm.Int32""#, "type=`Edm.Int32`"),
    ] {
        let text = rule(members);
        assert!(text.contains(given), "{members}: {text}");
    }
    let long = rule(&format!(r#""x":"{}","x@odata.type":"Edm.Binary""#, "*".repeat(60_000)));
    assert!(long.len() < 500, "it is shortened: {long}");
}

#[test]
fn malformed_json_is_located() {
    for (body, expected) in [
        ("{\"x\":1", "it ends too early, at line 1, column 6"),
        ("{\"x\":1,\n}", "malformed JSON at line 2, column 1"),
        ("[1]", "it has another JSON value at line 1, column 0"),
    ] {
        let text = entity_of(body.as_bytes(), key()).expect_err(body).to_string();
        assert!(text.contains(expected), "{body}: {text}");
    }
}

#[test]
fn null_of_any_type_has_no_value() {
    assert_eq!(kind(r#""x":null"#), Ok(None));
    assert_eq!(kind(r#""x@odata.type":"Edm.Int64","x":null"#), Ok(None));
    for edm in [r#""Edm.Foo""#, r#""""#, "1"] {
        let members = format!(r#""x@odata.type":{edm},"x":null"#);
        assert_eq!(kind(&members), Err(Reason::InvalidInput), "{edm}");
    }
}

#[test]
fn nulls_and_types_do_not_count_toward_the_number_of_members() {
    let nulls: String =
        (0..20_000).map(|at| format!(r#""n{at}@odata.type":"Edm.Guid","n{at}":null,"#)).collect();
    let body = format!(r#"{{{nulls}"x@odata.type":"Edm.Int64","x":"1"}}"#);

    let entity = entity_of(body.as_bytes(), key()).expect("one property");

    let valued: Vec<_> = entity.properties.iter().filter(|p| p.value.is_some()).collect();
    assert!(matches!(&valued[..], [x] if x.name == "x"), "{valued:?}");
    assert!(entity.properties.len() < 1200, "what has no value is not kept without end");
    let types: String = (0..=32 * 1024).map(|at| format!(r#""n{at}@odata.type":1,"#)).collect();
    let rejected = entity_of(format!(r#"{{{types}"x":1}}"#).as_bytes(), key()).expect_err("types");
    assert_eq!(rejected.reason, Reason::TooManyProperties);
}

#[test]
fn control_data_and_the_timestamp_are_ignored() {
    let body = br#"{"odata.metadata":"m","odata.etag":null,"Timestamp":null,
        "Timestamp@odata.type":"Edm.DateTime","PartitionKey@odata.type":"Edm.String",
        "PartitionKey":"p","RowKey":"","etag":"kept","timestamp":1}"#;

    let entity = entity_of(body, None).expect("an entity");

    assert_eq!((entity.partition_key.as_str(), entity.row_key.as_str()), ("p", ""));
    let names: Vec<_> = entity.properties.iter().map(|property| property.name.as_str()).collect();
    assert_eq!(names, ["etag", "timestamp"]);
}

#[test]
fn an_insert_needs_both_keys_as_text_and_an_update_takes_those_of_its_address() {
    let reason = |body: &str| entity_of(body.as_bytes(), None).map(|_| ()).map_err(|f| f.reason);
    assert_eq!(reason(r#"{"PartitionKey":"p"}"#), Err(Reason::PropertiesNeedValue));
    assert_eq!(reason(r#"{"PartitionKey":null,"RowKey":"r"}"#), Err(Reason::PropertiesNeedValue));
    assert_eq!(reason(r#"{"PartitionKey":1,"RowKey":"r"}"#), Err(Reason::InvalidInput));

    let entity = entity_of(br#"{"PartitionKey":"other","x":1}"#, key()).expect("an entity");

    assert_eq!((entity.partition_key.as_str(), entity.row_key.as_str()), ("p", "r"));
}

#[test]
fn rejects_repeated_members_or_passes_them_to_the_service() {
    let twice = Err(Reason::DuplicatePropertiesSpecified);
    let reason = |members: &str| {
        entity_of(format!("{{{members}}}").as_bytes(), None)
            .map(|e| e.properties.len())
            .map_err(|f| f.reason)
    };
    assert_eq!(reason(r#""PartitionKey":"p","PartitionKey":"p","RowKey":"r""#), twice);
    assert_eq!(reason(r#""PartitionKey":"p","RowKey":"r","RowKey":"s""#), twice);
    let keys = r#""PartitionKey":"p","RowKey":"r""#;
    let types = r#""x@odata.type":"Edm.Guid","x@odata.type":"Edm.Guid","x":"1""#;
    assert_eq!(reason(&format!("{keys},{types}")), twice);
    assert_eq!(reason(&format!(r#"{keys},"x":1,"x":null"#)), Ok(2));
}

#[test]
fn rejects_bodies_that_are_not_one_json_object_without_reaching_a_limit() {
    let deep = format!("{}{}", "{\"a\":[".repeat(100_000), "]}".repeat(100_000));
    let bodies = [
        "",
        "null",
        "[]",
        "3",
        "{",
        "{}x",
        "{} {}",
        r#"{"x"}"#,
        r#"{"x":1,}"#,
        r#"{x:1}"#,
        "'",
        r#"{"x":01}"#,
        r#"{"x":NaN}"#,
        r#"{"x":"\q"}"#,
        r#"{"\ud800":1}"#,
        "{\"x\":\"\u{1}\"}",
        &deep,
    ];
    for body in bodies {
        let fault = entity_of(body.as_bytes(), key()).expect_err(body);
        assert_eq!(fault.reason, Reason::InvalidInput, "{}", &body[..body.len().min(40)]);
    }
    let fault = entity_of(b"{\"x\":\"\xFF\"}", key()).expect_err("not UTF-8");
    assert_eq!(fault.reason, Reason::InvalidInput);
    assert!(entity_of("\u{FEFF}{}".as_bytes(), key()).is_ok(), "a byte order mark is not a fault");
}

#[test]
fn a_body_of_very_many_members_is_rejected_and_read_to_its_end() {
    let members = |count| -> String {
        let members: Vec<String> = (0..count).map(|at| format!(r#""m{at}":1"#)).collect();
        format!("{{{}}}", members.join(","))
    };
    assert!(entity_of(members(1100).as_bytes(), key()).is_ok());
    let fault = entity_of(members(1101).as_bytes(), key()).expect_err("too many");
    assert_eq!(fault.reason, Reason::TooManyProperties);
    let cut = members(200_000);
    let fault = entity_of(&cut.as_bytes()[..cut.len() - 1], key()).expect_err("not JSON");
    assert_eq!(fault.reason, Reason::InvalidInput);
}

#[test]
fn the_name_of_a_new_table_is_parsed() {
    assert_eq!(table_name_of(br#"{"odata.type":"x","TableName":"t1"}"#), Ok("t1".to_owned()));
    assert_eq!(table_name_of(br"{}"), Ok(String::new()));
    assert_eq!(table_name_of(br#"{"TableName":null}"#), Ok(String::new()));
    for body in [r#"{"TableName":1}"#, "", "{}{}", r#"["t1"]"#, r#"[["TableName","t1"]]"#] {
        let reason = table_name_of(body.as_bytes()).map_err(|f| f.reason);
        assert_eq!(reason, Err(Reason::InvalidInput), "{body}");
    }
    let twice = table_name_of(br#"{"TableName":"a","TableName":"b"}"#).map_err(|f| f.reason);
    assert_eq!(twice, Err(Reason::DuplicatePropertiesSpecified));
}

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
