//! Values as texts: for people with separators, units and no control characters, for programs as they are.

use serde_json::{Map, Value, json};
use trestle_proto::table::v1::Entity;

use super::{bytes, thousands};
use crate::{datetime, edm};

/// A record with more fields.
pub fn with_fields(record: Value, more: Value) -> Value {
    let fields = [record, more].into_iter().filter_map(|value| match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    fields.flatten().collect()
}

/// The name of a field as the title of its column, without the unit that its values have.
pub(super) fn title(name: &str) -> String {
    let name = match name {
        "bytes" => "size".to_owned(),
        // The value has its unit.
        "storage_bytes" | "free_bytes" | "size_bytes" => name.replace("_bytes", ""),
        other => other.strip_suffix("_bytes").map_or(other.to_owned(), |it| format!("{it}_size")),
    };
    let mut rest = name.chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(rest.map(|c| if c == '_' { ' ' } else { c })).collect()
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
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) if name.ends_with("bytes") => bytes(number),
            (Some(number), _) => thousands(number),
            (None, Some(negative)) => format!("-{}", thousands(negative.unsigned_abs())),
            (None, None) => format!("{:.1}", number.as_f64().unwrap_or_default()),
        },
        Value::Array(values) => values.iter().map(nested).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}={}", nested(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
    }
}

/// An entity with the texts of its values, and its time where that is selected.
pub(super) fn entity_record(entity: &Entity, select: &[String]) -> Result<Value, String> {
    let mut record = Map::new();
    record.insert("PartitionKey".to_owned(), json!(entity.partition_key));
    record.insert("RowKey".to_owned(), json!(entity.row_key));
    if select.iter().any(|name| name == "Timestamp") {
        let at = entity.timestamp.as_ref().and_then(datetime::format);
        record.insert("Timestamp".to_owned(), json!(at));
    }
    for property in &entity.properties {
        if let Some(kind) = property.value.as_ref().and_then(|value| value.kind.as_ref()) {
            record.insert(property.name.clone(), json!(edm::format_value(kind)?));
        }
    }
    Ok(Value::Object(record))
}

/// Whether a character changes more of a terminal than its own cell: control characters, and those that change the
/// direction of the text after them, so that it is read as another one.
pub(super) fn controls_terminal(c: char) -> bool {
    let is_direction = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || is_direction
}

/// Control characters and those of direction are escaped as in JSON: stored text must not control the terminal.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut text, c| {
        match c {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if controls_terminal(c) => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
        text
    })
}

/// The value of a field for a program.
pub fn raw(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The same in plain columns: members of lists and objects of scalars are separated by commas.
pub(super) fn flat(value: &Value) -> String {
    let is_scalar = |value: &Value| !value.is_array() && !value.is_object();
    match value {
        Value::Array(values) if values.iter().all(is_scalar) => {
            values.iter().map(raw).collect::<Vec<_>>().join(",")
        }
        Value::Object(fields) if fields.values().all(is_scalar) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}={}", raw(value)));
            fields.collect::<Vec<_>>().join(",")
        }
        other => raw(other),
    }
}

/// The fields of a record, those within others under names such as `terms.se` and `checks[0].outcome`; none for null.
pub(super) fn flat_fields(record: &Value) -> Vec<(String, String)> {
    fn collect(name: String, value: &Value, fields: &mut Vec<(String, String)>) {
        match value {
            Value::Null => {}
            Value::Object(inner) => {
                let dot = if name.is_empty() { "" } else { "." };
                let named =
                    inner.iter().map(|(inner, value)| (format!("{name}{dot}{inner}"), value));
                named.for_each(|(name, value)| collect(name, value, fields));
            }
            Value::Array(values) if values.iter().any(|it| it.is_array() || it.is_object()) => {
                let named = values.iter().enumerate();
                named.for_each(|(at, value)| collect(format!("{name}[{at}]"), value, fields));
            }
            scalar => fields.push((name, flat(scalar))),
        }
    }
    let mut fields = Vec::new();
    collect(String::new(), record, &mut fields);
    fields
}

pub(super) fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => escaped(text.get(..end).unwrap_or_default()) + "…",
        None => escaped(text),
    }
}

#[cfg(test)]
mod tests;
