//! Which stream records of OpenTelemetry belong to, unless the client names one.

use crate::record::{any_value_ref, entries_of, split_entry};
use crate::row::ValueRef;

/// The attribute of a resource that names its stream.
const SERVICE_NAME: &str = "service.name";
/// The stream of a resource without a usable name, as the SDKs name such a service.
const UNKNOWN_SERVICE: &str = "unknown_service";
/// Longest name of a stream, in characters.
const STREAM_NAME_CHARS_MAX: usize = 128;

/// The stream of an encoded `Resource`: its `service.name` in lower case, with `-` for characters that names of streams
/// do not have.
#[must_use]
pub(crate) fn stream_of_resource(resource: &[u8]) -> String {
    let entries = entries_of(resource, 1).map_while(Result::ok);
    let entries = entries.filter_map(|entry| split_entry(entry).ok());
    // Of a key that is there twice the last value is stored.
    let name = entries.filter(|(key, _)| *key == SERVICE_NAME).last();
    let name = name.and_then(|(_, value)| any_value_ref(value));
    let Some(ValueRef::Str(name)) = name else {
        return UNKNOWN_SERVICE.to_owned();
    };
    let legal = |character: char| match character.to_ascii_lowercase() {
        legal @ ('a'..='z' | '0'..='9' | '.' | '_' | '-') => legal,
        _ => '-',
    };
    let name = name.chars().map(legal);
    // A name starts with a letter or a digit.
    let name = name.skip_while(|character| !character.is_ascii_alphanumeric());
    let name: String = name.take(STREAM_NAME_CHARS_MAX).collect();
    if name.is_empty() { UNKNOWN_SERVICE.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use trestle_proto::opentelemetry::proto::{
        common::v1::{AnyValue, KeyValue, any_value::Value},
        resource::v1::Resource,
    };

    use super::*;

    fn stream_of(value: Value) -> String {
        let value = Some(AnyValue { value: Some(value) });
        let attributes = vec![KeyValue { key: SERVICE_NAME.to_owned(), value }];
        let resource = Resource { attributes, ..Resource::default() };
        stream_of_resource(&resource.encode_to_vec())
    }

    #[test]
    fn a_service_names_the_stream_of_its_records() {
        let cases = [
            ("checkout", "checkout"),
            ("Check Out/é v1.2_a", "check-out---v1.2_a"),
            ("", UNKNOWN_SERVICE),
            ("../é", UNKNOWN_SERVICE),
            ("-a", "a"),
        ];
        for (name, stream) in cases {
            assert_eq!(stream_of(Value::StringValue(name.to_owned())), stream, "{name}");
        }
        assert_eq!(stream_of(Value::StringValue("x".repeat(200))), "x".repeat(128));
        assert_eq!(stream_of(Value::IntValue(7)), UNKNOWN_SERVICE);
        assert_eq!(stream_of_resource(&[]), UNKNOWN_SERVICE);
        assert_eq!(stream_of_resource(b"\xff\xff"), UNKNOWN_SERVICE);
    }
}
