//! Values as texts: for people with separators, units and no control characters, for programs as they are.

use serde_json::{Map, Value, json};
use trestle_proto::table::v1::Entity;

use super::{bytes, thousands};
use crate::edm;

/// A record with more fields.
pub(crate) fn with_fields(record: Value, more: Value) -> Value {
    let fields = [record, more].into_iter().filter_map(|value| match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    fields.flatten().collect()
}

/// The name of a field as the title of its column.
pub(super) fn title(name: &str) -> String {
    let (first, rest) = name.split_at_checked(1).unwrap_or_default();
    format!("{}{}", first.to_ascii_uppercase(), rest.replace('_', " "))
}

/// The records in a field: a list of objects, or objects by name.
pub(super) fn nested(name: &str, value: &Value) -> Option<Vec<Value>> {
    if let Value::Array(records) = value {
        return records.first()?.is_object().then(|| records.clone());
    }
    let records = value.as_object().filter(|all| all.values().all(Value::is_object))?;
    let records = records.iter().map(|(key, fields)| {
        let key = (name.to_owned(), json!(key));
        std::iter::once(key).chain(fields.as_object().cloned().into_iter().flatten()).collect()
    });
    Some(records.collect())
}

/// The value of a field for a person, with at most so many characters of a text.
pub(super) fn cell(name: &str, value: &Value, chars_max: usize) -> String {
    let nested = |value: &Value| cell(name, value, chars_max);
    match value {
        Value::Null => String::new(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => shortened(text, chars_max),
        Value::Number(number) => match number.as_u64() {
            Some(number) if name.ends_with("bytes") => bytes(number),
            Some(number) => thousands(number),
            None => format!("{:.1}", number.as_f64().unwrap_or_default()),
        },
        Value::Array(values) => values.iter().map(nested).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}={}", nested(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
    }
}

/// An entity with the texts of its values.
pub(super) fn entity_record(entity: &Entity) -> Result<Value, String> {
    let mut record = Map::new();
    record.insert("PartitionKey".to_owned(), json!(entity.partition_key));
    record.insert("RowKey".to_owned(), json!(entity.row_key));
    for property in &entity.properties {
        if let Some(kind) = property.value.as_ref().and_then(|value| value.kind.as_ref()) {
            record.insert(property.name.clone(), json!(edm::format_value(kind)?));
        }
    }
    Ok(Value::Object(record))
}

/// Control characters are escaped as in JSON: stored text must not control the terminal.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut text, c| {
        match c {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
        text
    })
}

/// The value of a field for a program.
pub(super) fn raw(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => escaped(text.get(..end).unwrap_or_default()) + "…",
        None => escaped(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_text_cannot_control_or_flood_the_terminal() {
        assert_eq!(shortened("a\x1b[31m\n", 80), "a\\u001b[31m\\n");
        assert_eq!(shortened(&"é".repeat(81), 80), format!("{}…", "é".repeat(80)));
        assert_eq!(shortened(&"é".repeat(80), 80), "é".repeat(80));
    }
}
