//! Parsing, writing, and round trips of entities.

mod written;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use proptest::prelude::*;
use prost::Message as _;
use trestle_model::fault::Reason;
use trestle_proto::table::v1::{Entity, Property, Value, value::Kind};

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
        r#""x":"2026-01-31T08:00:00.12345678+1:00","x@odata.type":"Edm.DateTime""#,
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
    let typed = r#"{"PartitionKey":"p","RowKey":"5","RowKey@odata.type":"Edm.Int32"}"#;
    assert_eq!(reason(typed), Err(Reason::InvalidInput));
    assert!(entity_of(typed.as_bytes(), key()).is_ok(), "ignored, as the keys of the body are");

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
