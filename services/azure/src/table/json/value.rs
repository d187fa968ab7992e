//! One value of a request: its JSON text and its declared type.

use std::borrow::Cow;

use serde::Deserialize;
use trestle_model::edm::{self, EdmType, datetime};
use trestle_model::fault::quoted;
use trestle_proto::table::v1::{Value, value::Kind};

/// A JSON string.
#[derive(Deserialize)]
pub(super) struct JsonText<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// The value of a JSON text; none for null.
///
/// `annotation` is the JSON text of the declared type. Without one, a whole number is an Int32 and
/// a number with a point or an exponent a Double.
///
/// # Errors
/// The rule that is broken.
pub(super) fn parse(json: &str, annotation: Option<&str>) -> Result<Option<Value>, String> {
    // An invalid type is rejected also for null.
    let edm = annotation.map(declared_type).transpose()?;
    if json == "null" {
        return Ok(None);
    }
    let kind = kind_of(json, edm);
    let kind =
        kind.map_err(|rule| format!("{rule}: value=`{}`", quoted(json.trim_matches('"'))))?;
    Ok(Some(Value { kind: Some(kind) }))
}

/// The value of a JSON text that is not null, of a declared type if there is one.
fn kind_of(json: &str, edm: Option<EdmType>) -> Result<Kind, String> {
    Ok(match (edm, json.as_bytes().first()) {
        (_, Some(b'{' | b'[')) => return Err("must be a plain value".to_owned()),
        (None, Some(b'"')) => Kind::StringValue(text(json, NOT_TEXT)?.into_owned()),
        (None, Some(b't' | b'f')) => edm::parse_value(EdmType::Boolean, json)?,
        (None, _) if json.contains(['.', 'e', 'E']) => edm::parse_value(EdmType::Double, json)?,
        (None, _) => int32(json)?,
        (Some(edm), Some(b'"')) => declared(edm, &text(json, NOT_TEXT)?)?,
        (Some(edm @ (EdmType::Int32 | EdmType::Int64 | EdmType::Double | EdmType::Boolean)), _) => {
            declared(edm, json)?
        }
        (Some(_), _) => return Err("must be text of its declared type".to_owned()),
    })
}

const NOT_TEXT: &str = "not a text that UTF-8 can carry";

fn text<'a>(json: &'a str, rule: &str) -> Result<Cow<'a, str>, String> {
    serde_json::from_str::<JsonText<'_>>(json).map(|text| text.0).map_err(|_| rule.to_owned())
}

/// The type in the JSON text of an annotation.
pub(super) fn declared_type(annotation: &str) -> Result<EdmType, String> {
    let name = text(annotation, "a type must be text")?;
    EdmType::named(&name).ok_or_else(|| {
        format!("its declared type is not one of the table model: type=`{}`", quoted(&name))
    })
}

/// The value of a declared type.
fn declared(edm: EdmType, text: &str) -> Result<Kind, String> {
    match edm {
        // The service validates the year.
        EdmType::DateTime => datetime::parse(text)
            .map(Kind::DatetimeValue)
            .ok_or_else(|| format!("Edm.DateTime: {}", datetime::RULE)),
        // The service validates the form; it stores lower case.
        EdmType::Guid => Ok(Kind::GuidValue(text.to_ascii_lowercase())),
        _ => edm::parse_value(edm, text),
    }
}

fn int32(text: &str) -> Result<Kind, String> {
    let parsed = edm::parse_value(EdmType::Int32, text);
    parsed.map_err(|rule| format!("{rule}, or have its type declared"))
}
