//! The JSON form: fixed texts, errors, and round trips of arbitrary entities.

use proptest::prelude::*;

use super::*;
use crate::rows::tests::{entity, same};

fn echo(text: &str) -> String {
    to_string(&parse(text.as_bytes()).unwrap(), Meta::None).unwrap()
}

#[test]
fn every_type_is_written_as_azure_writes_it() {
    let text = concat!(
        r#"{"PartitionKey":"","RowKey":"r \"1\"","#,
        r#""a":"","b@odata.type":"Edm.Binary","b":"AAEC","#,
        r#""c@odata.type":"Edm.DateTime","c":"2026-01-31T08:00:00.1234567Z","#,
        r#""d":3.0,"e":-0.0,"f@odata.type":"Edm.Double","f":"NaN","#,
        r#""g@odata.type":"Edm.Guid","g":"00000000-0000-0000-0000-00000000000f","#,
        r#""h":39,"i@odata.type":"Edm.Int64","i":"39","j":true,"#,
        r#""k@odata.type":"Edm.Double","k":"-Infinity","l":1e300}"#
    );

    assert_eq!(echo(text), text);
}

#[test]
fn annotations_may_come_after_their_member_and_be_redundant() {
    let text = r#" {"RowKey":"r","a":"5","PartitionKey":"p","a@odata.type":"Edm.Int64",
        "PartitionKey@odata.type":"Edm.String","n":4,"n@odata.type":"Edm.Double",
        "m":9007199254740993,"m@odata.type":"Edm.Int64"} "#;

    assert_eq!(
        echo(text),
        concat!(
            r#"{"PartitionKey":"p","RowKey":"r","a@odata.type":"Edm.Int64","a":"5","#,
            r#""m@odata.type":"Edm.Int64","m":"9007199254740993","n":4.0}"#
        )
    );
}

#[test]
fn control_data_timestamps_and_nulls_are_not_stored() {
    let text = r#"{"odata.etag":"x","odata.type":"t","Timestamp":"2026-01-01T00:00:00Z",
        "PartitionKey":"p","RowKey":"r","absent":null,"absent2@odata.type":"Edm.Int64","absent2":null,
        "etag":"mine"}"#;

    assert_eq!(echo(text), r#"{"PartitionKey":"p","RowKey":"r","etag":"mine"}"#);
}

#[test]
fn requested_metadata_is_written() {
    let mut entity = parse(br#"{"PartitionKey":"p","RowKey":"r","a":1}"#).unwrap();
    entity.etag = "W/\"x\"".to_owned();
    entity.timestamp = datetime::parse("2026-01-31T08:00:00Z");

    assert_eq!(
        to_string(&entity, Meta::Timestamp).unwrap(),
        r#"{"PartitionKey":"p","RowKey":"r","Timestamp":"2026-01-31T08:00:00Z","a":1}"#
    );
    assert_eq!(
        to_string(&entity, Meta::All).unwrap(),
        concat!(
            r#"{"odata.etag":"W/\"x\"","PartitionKey":"p","RowKey":"r","#,
            r#""Timestamp":"2026-01-31T08:00:00Z","a":1}"#
        )
    );
}

#[test]
fn errors_name_field_value_and_rule() {
    let with = |member: &str| format!(r#"{{"PartitionKey":"p","RowKey":"r",{member}}}"#);
    for (text, expected) in [
        ("oops".to_owned(), "value=`oops`: must be one JSON object"),
        ("[1]".to_owned(), "must be one JSON object"),
        (r#"{"PartitionKey":"p"}"#.to_owned(), "field=`RowKey`, is required"),
        (
            r#"{"PartitionKey":1,"RowKey":"r"}"#.to_owned(),
            "field=`PartitionKey`, value=`1`: must be",
        ),
        (r#"{"PartitionKey":null,"RowKey":"r"}"#.to_owned(), "field=`PartitionKey`"),
        (with(r#""a":2147483648"#), "field=`a`, value=`2147483648`: Edm.Int32: must be a whole"),
        (
            with(r#""a":99999999999999999999"#),
            "declare larger ones with `a@odata.type`:`Edm.Int64`",
        ),
        (with(r#""a":1e400"#), "value=`1e400`: Edm.Double: must be a number within"),
        (with(r#""a":1,"a":2"#), "field=`a`, must not occur twice"),
        (with(r#""a":[1]"#), "value=`[1]`: must be a string, a number"),
        (with(r#""a@odata.type":"Edm.Int64""#), "field=`a`, has a type but no value"),
        (with(r#""a@odata.type":"Edm.Int16","a":"1""#), "unknown type `Edm.Int16`"),
        (with(r#""a@odata.type":"Edm.Int64","a":"1.5""#), "Edm.Int64: must be a whole number"),
        (with(r#""a@odata.type":"Edm.Int32","a":"1""#), "Edm.Int32: must not be quoted"),
        (with(r#""a@odata.type":"Edm.String","a":1"#), "Edm.String: does not fit"),
        (with(r#""a@odata.type":"Edm.Int32","a":1.0"#), "Edm.Int32: does not fit"),
        (with(r#""a@odata.type":"Edm.Binary","a":"*""#), "Edm.Binary: must be base64"),
    ] {
        let error = parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}\n gives {error}\n expected {expected}");
    }
}

#[test]
fn a_long_value_is_truncated_in_an_error() {
    let text = format!(r#"{{"PartitionKey":"p","RowKey":"r","a":[{}1]}}"#, "1,".repeat(1000));

    let error = parse(text.as_bytes()).unwrap_err().to_string();

    assert!(error.len() < 200, "{error}");
    assert!(error.contains('…'), "{error}");
}

proptest! {
    #[test]
    fn any_entity_survives_json(given in entity()) {
        let text = to_string(&given, Meta::None).unwrap();

        let read = parse(text.as_bytes()).unwrap();

        prop_assert!(!text.contains('\n'), "one line");
        prop_assert!(same(&given, &read), "{given:?}\n{text}\n{read:?}");
        prop_assert_eq!(to_string(&read, Meta::None).unwrap(), text);
    }

    #[test]
    fn the_reader_never_panics(text in any::<Vec<u8>>()) {
        let _ = parse(&text);
    }
}
