//! Entities as JSON: Azure's typed form at minimal metadata, one object for an entity.
//!
//! A type that JSON cannot represent is in a member `name@odata.type`; strings, booleans, Int32 (a
//! number without point or exponent) and finite doubles (a number with one) need none. Reading and
//! writing lose nothing but null members, `Timestamp` and members that begin with `odata.`, none of
//! which a client can store.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{error::Category, value::RawValue};
use trestle_model::json_error::json_problem;
use trestle_proto::table::v1::{Entity, Property, Value, value::Kind};

use crate::{
    datetime,
    edm::{self, EdmType},
    field_error::FieldError,
    row_mapping::{KeyOrigin, PARTITION_KEY, ROW_KEY, RowMapping},
};

const ANNOTATION: &str = "@odata.type";

/// The metadata of a written entity besides its keys and properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meta {
    /// None: the text is the same for the same content.
    None,
    /// The time of the last write.
    Timestamp,
    /// The time of the last write and the etag.
    All,
}

/// Whether the types of properties are written beside their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeAnnotations {
    /// They are: what is written is read back equal.
    Written,
    /// They are not: values are as plain as JSON and CSV have them.
    Omitted,
}

/// Appends an entity as one JSON object, without a line end.
///
/// # Errors
/// The rule that a value of the server breaks, such as a property without a value.
pub fn write(out: &mut Vec<u8>, entity: &Entity, meta: Meta) -> Result<(), String> {
    write_with(out, entity, meta, TypeAnnotations::Written)
}

/// The same, with or without the types of properties.
///
/// # Errors
/// Those of [`write()`].
pub(crate) fn write_with(
    out: &mut Vec<u8>,
    entity: &Entity,
    meta: Meta,
    types: TypeAnnotations,
) -> Result<(), String> {
    out.push(b'{');
    if meta == Meta::All {
        member(out, "odata.etag");
        string(out, &entity.etag);
        out.push(b',');
    }
    member(out, "PartitionKey");
    string(out, &entity.partition_key);
    out.push(b',');
    member(out, "RowKey");
    string(out, &entity.row_key);
    if let (Meta::Timestamp | Meta::All, Some(at)) = (meta, &entity.timestamp) {
        out.push(b',');
        member(out, "Timestamp");
        string(out, &datetime::format(at).ok_or("timestamp out of range")?);
    }
    for property in &entity.properties {
        if let Some(kind) = property.value.as_ref().and_then(|value| value.kind.as_ref()) {
            out.push(b',');
            write_property(out, &property.name, kind, types)?;
        }
    }
    out.push(b'}');
    Ok(())
}

/// The entity as text; see [`write()`].
///
/// # Errors
/// Those of [`write()`].
pub fn to_string(entity: &Entity, meta: Meta) -> Result<String, String> {
    let mut out = Vec::new();
    write(&mut out, entity, meta)?;
    String::from_utf8(out).map_err(|error| error.to_string())
}

fn write_property(
    out: &mut Vec<u8>,
    name: &str,
    kind: &Kind,
    types: TypeAnnotations,
) -> Result<(), String> {
    let special = matches!(kind, Kind::DoubleValue(number) if !number.is_finite());
    let is_quoted = special
        || matches!(
            kind,
            Kind::Int64Value(_)
                | Kind::DatetimeValue(_)
                | Kind::GuidValue(_)
                | Kind::BinaryValue(_)
        );
    if is_quoted && types == TypeAnnotations::Written {
        string(out, &format!("{name}{ANNOTATION}"));
        out.push(b':');
        string(out, EdmType::of(kind).name());
        out.push(b',');
    }
    member(out, name);
    let text = edm::format_value(kind)?;
    if is_quoted || matches!(kind, Kind::StringValue(_)) {
        string(out, &text);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    Ok(())
}

fn member(out: &mut Vec<u8>, name: &str) {
    string(out, name);
    out.push(b':');
}

fn string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("writing a string to memory cannot fail");
}

/// Reads an entity from one JSON object. Properties are sorted by name.
///
/// # Errors
/// The first member that breaks a rule, or the syntax error.
pub fn parse(text: &[u8]) -> Result<Entity, FieldError> {
    parse_by(text, edm::parse_value)
}

/// The same for a row of a file, whose keys may be other members: of those a number or a truth value is its text.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_mapped(text: &[u8], mapping: &RowMapping) -> Result<Entity, FieldError> {
    parse_with(text, edm::parse_value, mapping)
}

/// Reads the value of a type from the text of a member; the rule that it breaks.
pub(crate) type ReadValue = fn(EdmType, &str) -> Result<Kind, String>;

/// As [`parse`], with another way to read values.
///
/// # Errors
/// As [`parse`].
pub fn parse_by(text: &[u8], read: ReadValue) -> Result<Entity, FieldError> {
    parse_with(text, read, &RowMapping::default())
}

fn parse_with(text: &[u8], read: ReadValue, mapping: &RowMapping) -> Result<Entity, FieldError> {
    let members: JsonMembers<'_> =
        serde_json::from_slice(text).map_err(|error| malformed(text, &error))?;
    let mut entity = Entity::default();
    let (mut partition, mut row) = (None, None);
    let mut annotations = HashMap::new();
    let mut seen = HashSet::new();
    let twice = |name: &str| FieldError::new(name, "", "must not occur twice");
    for (name, raw) in &members.0 {
        let is_repeated = match name.strip_suffix(ANNOTATION) {
            Some(property) => annotations.insert(property, annotation(name, raw)?).is_some(),
            None => !seen.insert(name.as_ref()),
        };
        if is_repeated {
            return Err(twice(name.strip_suffix(ANNOTATION).unwrap_or(name)));
        }
    }
    if let Some(name) = annotations.keys().find(|name| !seen.contains(*name)) {
        return Err(FieldError::new(*name, "", "has a type but no value"));
    }
    let values = members.0.iter().filter(|(name, _)| !name.ends_with(ANNOTATION));
    for (name, raw) in values.filter(|(name, _)| !name.starts_with("odata.")) {
        let declared = annotations.get(name.as_ref()).copied();
        let name = name.as_ref();
        let keys = (mapping.partition_key.is_column(name), mapping.row_key.is_column(name));
        mapping.check(name)?;
        match keys {
            (false, false) if name == "Timestamp" => {}
            (false, false) => {
                if let Some(kind) = value(name, raw, declared, read)? {
                    let value = Some(Value { kind: Some(kind) });
                    entity.properties.push(Property { name: name.to_owned(), value });
                }
            }
            (is_partition, is_row) => {
                let key = match name {
                    PARTITION_KEY | ROW_KEY => key(name, raw, declared, read)?,
                    _ => key_text(name, raw)?,
                };
                partition = is_partition.then(|| key.clone()).or(partition);
                row = is_row.then_some(key).or(row);
            }
        }
    }
    entity.partition_key = found(partition, &mapping.partition_key)?;
    entity.row_key = found(row, &mapping.row_key)?;
    mapping.complete(&mut entity);
    Ok(entity)
}

/// A key that was found, unless it is no member.
fn found(key: Option<String>, source: &KeyOrigin) -> Result<String, FieldError> {
    match source.column() {
        Some(name) => key.ok_or_else(|| missing(name)),
        None => Ok(String::new()),
    }
}

/// The text of a member that is a key under another name.
fn key_text(name: &str, raw: &RawValue) -> Result<String, FieldError> {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text)
            .map_err(|error| FieldError::new(name, text, error.to_string())),
        Some(b'n' | b'{' | b'[') => {
            Err(FieldError::new(name, text, "must be a string, a number, true or false"))
        }
        _ => Ok(text.to_owned()),
    }
}

fn missing(key: &str) -> FieldError {
    FieldError::new(key, "", "is required; it may be the empty string")
}

fn malformed(text: &[u8], error: &serde_json::Error) -> FieldError {
    let text = String::from_utf8_lossy(text);
    let rule = match error.classify() {
        // It is JSON of another type.
        Category::Data => "must be one JSON object".to_owned(),
        _ => format!("must be one JSON object: {}", json_problem(&text, error)),
    };
    FieldError::new("", text, rule)
}

fn annotation(name: &str, raw: &RawValue) -> Result<EdmType, FieldError> {
    let text: String = serde_json::from_str(raw.get())
        .map_err(|_| FieldError::new(name, raw.get(), "must be a string with a type name"))?;
    edm::parse_type(&text).map_err(|rule| FieldError::new(name, text, rule))
}

fn key(
    name: &str,
    raw: &RawValue,
    declared: Option<EdmType>,
    read: ReadValue,
) -> Result<String, FieldError> {
    match value(name, raw, declared, read)? {
        Some(Kind::StringValue(text)) => Ok(text),
        _ => Err(FieldError::new(name, raw.get(), "must be a string")),
    }
}

/// The value of a member; `None` for null.
fn value(
    name: &str,
    raw: &RawValue,
    declared: Option<EdmType>,
    read: ReadValue,
) -> Result<Option<Kind>, FieldError> {
    let text = raw.get();
    let fail = |rule: String| FieldError::new(name, text, rule);
    match text.as_bytes().first() {
        Some(b'n') => return Ok(None),
        Some(b'{' | b'[') => {
            return Err(fail("must be a string, a number, true, false or null".to_owned()));
        }
        Some(b'"') => {
            let text: String =
                serde_json::from_str(text).map_err(|error| fail(error.to_string()))?;
            let edm = declared.unwrap_or(EdmType::String);
            let is_literal = matches!(edm, EdmType::Int32 | EdmType::Boolean)
                || (edm == EdmType::Double
                    && !matches!(text.as_str(), "NaN" | "Infinity" | "-Infinity"));
            if is_literal {
                return Err(fail(format!("{}: must not be quoted", edm.name())));
            }
            return read(edm, &text).map(Some).map_err(fail);
        }
        _ => {}
    }
    let natural = match text {
        "true" | "false" => EdmType::Boolean,
        number if number.contains(['.', 'e', 'E']) => EdmType::Double,
        _ => EdmType::Int32,
    };
    let edm = declared.unwrap_or(natural);
    let fits = edm == natural
        || matches!((edm, natural), (EdmType::Double | EdmType::Int64, EdmType::Int32));
    if !fits {
        return Err(fail(format!("{}: does not fit the JSON value", edm.name())));
    }
    read(edm, text).map(Some).map_err(|rule| match declared {
        None if natural == EdmType::Int32 => {
            fail(format!("{rule}; declare larger ones with `{name}{ANNOTATION}`:`Edm.Int64`"))
        }
        _ => fail(rule),
    })
}

/// The members of an object in their order, repeats included.
struct JsonMembers<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an entity")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(map.size_hint().unwrap_or(16));
                while let Some((MemberName(name), raw)) =
                    map.next_entry::<MemberName<'de>, &'de RawValue>()?
                {
                    members.push((name, raw));
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Collect).map(JsonMembers)
    }
}

/// A member name, borrowed where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct MemberName<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests;
