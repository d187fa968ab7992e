//! Tests of the module.

use super::*;

fn of(properties: &str) -> Result<Entity, (String, String)> {
    let keys = r#""PartitionKey":"p","RowKey":"r""#;
    let json = format!(r#"{{{keys},"properties":{{{keys},{properties}}},"eTag":"x"}}"#);
    entity(&json, 7)
}

fn kind_of(properties: &str) -> Kind {
    of(properties).unwrap().properties.remove(0).value.unwrap().kind.unwrap()
}

#[test]
fn every_type_is_parsed_as_azurite_writes_it() {
    let guid = "c9da6455-213d-42c9-9a79-3e9149a57833".to_owned();
    for (properties, kind) in [
        (r#""v":"t""#, Kind::StringValue("t".to_owned())),
        (r#""v":5"#, Kind::Int32Value(5)),
        (r#""v":"9223372036854775807","v@odata.type":"Edm.Int64""#, Kind::Int64Value(i64::MAX)),
        (r#""v":3,"v@odata.type":"Edm.Double""#, Kind::DoubleValue(3.0)),
        (r#""v":1.5,"v@odata.type":"Edm.Double""#, Kind::DoubleValue(1.5)),
        (r#""v":"-Infinity","v@odata.type":"Edm.Double""#, Kind::DoubleValue(f64::NEG_INFINITY)),
        (r#""v":true"#, Kind::BooleanValue(true)),
        (
            r#""v":"1970-01-01T00:00:01.0000001Z","v@odata.type":"Edm.DateTime""#,
            Kind::DatetimeValue(prost_types::Timestamp { seconds: 1, nanos: 100 }),
        ),
        (
            r#""v":"QzlEQTY0NTUtMjEzRC00MkM5LTlBNzktM0U5MTQ5QTU3ODMz","v@odata.type":"Edm.Guid""#,
            Kind::GuidValue(guid.clone()),
        ),
        (
            r#""v":"C9DA6455-213D-42C9-9A79-3E9149A57833","v@odata.type":"Edm.Guid""#,
            Kind::GuidValue(guid),
        ),
        (r#""v":"AP8B","v@odata.type":"Edm.Binary""#, Kind::BinaryValue(vec![0, 255, 1].into())),
    ] {
        assert_eq!(kind_of(properties), kind, "{properties}");
    }
}

#[test]
fn rejects_documents_of_wrong_types_by_name() {
    let (which, why) = of(r#""v":"x","v@odata.type":"Edm.Guid""#).unwrap_err();
    assert_eq!(which, "PartitionKey=`p` RowKey=`r`");
    assert!(why.contains("8-4-4-4-12"), "{why}");
    assert!(of(r#""v":1e999,"v@odata.type":"Edm.Double""#).is_err());
    for json in ["1", "{}", r#"{"PartitionKey":1,"RowKey":"r","properties":{}}"#] {
        let (which, why) = entity(json, 7).unwrap_err();
        assert!(which == "document 7" && why.starts_with("is not an entity"), "{which}: {why}");
    }
}

#[test]
fn the_end_of_the_year_9999_means_no_expiry() {
    assert_eq!(expiry("9999-12-31T23:59:59.999Z"), Ok(None));
    assert_eq!(expiry("1970-01-01T00:00:02.500Z"), Ok(Ticks::from_unix(2, 500_000_000)));
    assert!(expiry("soon").unwrap_err().contains("`soon`"));
}
