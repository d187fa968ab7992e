//! The error of a row, with the fields that its file has in place of those of the call.

use tonic_types::Status as RpcStatus;
use trestle_model::fault::split_property_path;

use super::describe;

/// How the fields of an entity begin in the error of a chunk.
const CHUNK: &str = "chunk.entities[";
/// The keys of an entity in a call and in a file.
const KEYS: [(&str, &str); 2] = [("partition_key", "PartitionKey"), ("row_key", "RowKey")];

/// One line with the error of an entity that was sent.
pub(super) fn describe_row(error: &RpcStatus) -> String {
    of_file(&describe(error))
}

fn of_file(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(CHUNK) {
        shown.push_str(before);
        let Some((_, field)) = after.split_once(']') else { break };
        // An error of the entity itself has no field.
        rest = field.strip_prefix('.').or_else(|| field.strip_prefix(": ")).unwrap_or(field);
        if let Some((name, after)) = known_field(rest) {
            shown.push_str(name);
            rest = after;
        }
    }
    shown + rest
}

/// The name of a field in a file, and the text behind it.
fn known_field(text: &str) -> Option<(&str, &str)> {
    let key = KEYS.iter().find_map(|(field, name)| Some((*name, text.strip_prefix(field)?)));
    key.or_else(|| split_property_path(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_names_of_the_file() {
        for (text, expected) in [
            (
                "R: chunk.entities[11].partition_key: must be short",
                "R: PartitionKey: must be short",
            ),
            (
                "R: chunk.entities[0].row_key: x; chunk.entities[0].partition_key: y",
                "R: RowKey: x; PartitionKey: y",
            ),
            ("R: chunk.entities[7].properties[\"b\"]: too long", "R: b: too long"),
            ("R: chunk.entities[7].properties[\"a\\\"]: b\"]: invalid", "R: a\\\"]: b: invalid"),
            ("R: chunk.entities[7].properties: too many", "R: properties: too many"),
            ("R: chunk.entities[7]: too large", "R: too large"),
            ("R: no field", "R: no field"),
        ] {
            assert_eq!(of_file(text), expected);
        }
    }
}
