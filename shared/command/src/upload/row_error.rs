//! The error of a row, with the fields that its file has in place of those of the call.

use tonic_types::Status as RpcStatus;
use trestle_proto::table::v1::Entity;

use super::describe;

/// How the fields of an entity begin in the error of a chunk.
const CHUNK: &str = "chunk.entities[";
/// The keys of an entity in a call and in a file.
const KEYS: [(&str, &str); 2] = [("partition_key", "PartitionKey"), ("row_key", "RowKey")];

/// One line with the error of an entity that was sent.
pub(super) fn describe_row(error: &RpcStatus, sent: Option<&Entity>) -> String {
    of_file(&describe(error), sent)
}

fn of_file(text: &str, sent: Option<&Entity>) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(CHUNK) {
        shown.push_str(before);
        let Some((_, field)) = after.split_once(']') else { break };
        // An error of the entity itself has no field.
        rest = field.strip_prefix('.').or_else(|| field.strip_prefix(": ")).unwrap_or(field);
        if let Some((name, after)) = known_field(rest, sent) {
            shown.push_str(name);
            rest = after;
        }
    }
    shown + rest
}

/// The name of a field in a file, and the text behind it.
fn known_field<'a>(text: &'a str, sent: Option<&'a Entity>) -> Option<(&'a str, &'a str)> {
    let key = KEYS.iter().find_map(|(field, name)| Some((*name, text.strip_prefix(field)?)));
    let property = || {
        let (index, after) = text.strip_prefix("properties[")?.split_once(']')?;
        let property = sent?.properties.get(index.parse::<usize>().ok()?)?;
        let after = after.strip_prefix(".value").or_else(|| after.strip_prefix(".name"));
        Some((property.name.as_str(), after?))
    };
    key.or_else(property)
}

#[cfg(test)]
mod tests {
    use trestle_proto::table::v1::Property;

    use super::*;

    #[test]
    fn fields_have_the_names_of_the_file() {
        let property = |name: &str| Property { name: name.to_owned(), value: None };
        let sent = Entity { properties: vec![property("a"), property("b")], ..Entity::default() };
        for (text, expected) in [
            (
                "R: chunk.entities[11].partition_key: must be short",
                "R: PartitionKey: must be short",
            ),
            (
                "R: chunk.entities[0].row_key: x; chunk.entities[0].partition_key: y",
                "R: RowKey: x; PartitionKey: y",
            ),
            ("R: chunk.entities[7].properties[1].value: too long", "R: b: too long"),
            ("R: chunk.entities[7].properties[0].name: invalid", "R: a: invalid"),
            ("R: chunk.entities[7].properties[9].name: x", "R: properties[9].name: x"),
            ("R: chunk.entities[7]: too large", "R: too large"),
            ("R: no field", "R: no field"),
        ] {
            assert_eq!(of_file(text, Some(&sent)), expected);
        }
        let unknown = of_file("R: chunk.entities[7].properties[0].name: x", None);
        assert_eq!(unknown, "R: properties[0].name: x");
    }
}
