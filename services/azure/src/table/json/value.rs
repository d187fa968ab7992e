//! One value of a request: its JSON text and the type that was declared for it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use trestle_proto::table::v1::{Value, value::Kind};
use trestle_service::edm::EdmType;

use super::{datetime, read::Text};

/// The value that a JSON text means; none for null.
///
/// `annotation` is the JSON text of the declared type. Without one, a whole number is an Int32 and
/// a number with a point or an exponent a Double.
///
/// # Errors
/// The rule that is broken.
pub(super) fn parse(json: &str, annotation: Option<&str>) -> Result<Option<Value>, String> {
    // A type that is none is refused also where there is nothing of it.
    let edm = annotation.map(declared_type).transpose()?;
    if json == "null" {
        return Ok(None);
    }
    let kind = match (edm, json.as_bytes().first()) {
        (_, Some(b'{' | b'[')) => return Err("must be a plain value".to_owned()),
        (None, Some(b'"')) => Kind::StringValue(text(json, NOT_TEXT)?.into_owned()),
        (None, Some(b't' | b'f')) => boolean(json)?,
        (None, _) if json.contains(['.', 'e', 'E']) => double(json)?,
        (None, _) => int32(json)?,
        (Some(edm), Some(b'"')) => declared(edm, &text(json, NOT_TEXT)?)?,
        (Some(edm @ (EdmType::Int32 | EdmType::Int64 | EdmType::Double | EdmType::Boolean)), _) => {
            declared(edm, json)?
        }
        (Some(_), _) => return Err("must be text of its declared type".to_owned()),
    };
    Ok(Some(Value { kind: Some(kind) }))
}

const NOT_TEXT: &str = "not a text that UTF-8 can carry";

fn text<'a>(json: &'a str, rule: &str) -> Result<std::borrow::Cow<'a, str>, String> {
    serde_json::from_str::<Text<'_>>(json).map(|text| text.0).map_err(|_| rule.to_owned())
}

/// The type that the JSON text of an annotation names.
fn declared_type(annotation: &str) -> Result<EdmType, String> {
    let named = EdmType::named(&text(annotation, "a type must be text")?);
    named.ok_or_else(|| "its declared type is not one of the table model".to_owned())
}

/// The value of a declared type.
fn declared(edm: EdmType, text: &str) -> Result<Kind, String> {
    match edm {
        EdmType::String => Ok(Kind::StringValue(text.to_owned())),
        EdmType::Int32 => int32(text),
        EdmType::Int64 => decimal(text)
            .and_then(|digits| digits.parse().ok())
            .map(Kind::Int64Value)
            .ok_or_else(|| "Edm.Int64: must be a whole number from -2^63 to 2^63-1".to_owned()),
        EdmType::Double => double(text),
        EdmType::Boolean => boolean(text),
        EdmType::DateTime => datetime::parse(text)
            .map(Kind::DatetimeValue)
            .ok_or_else(|| format!("Edm.DateTime: {}", datetime::RULE)),
        // Of which form it must be, the service says; it stores lower case.
        EdmType::Guid => Ok(Kind::GuidValue(text.to_ascii_lowercase())),
        EdmType::Binary => STANDARD
            .decode(text)
            .map(|bytes| Kind::BinaryValue(bytes.into()))
            .map_err(|_| "Edm.Binary: must be base64 with padding".to_owned()),
    }
}

fn boolean(text: &str) -> Result<Kind, String> {
    match text {
        "true" => Ok(Kind::BooleanValue(true)),
        "false" => Ok(Kind::BooleanValue(false)),
        _ => Err("Edm.Boolean: must be true or false".to_owned()),
    }
}

fn int32(text: &str) -> Result<Kind, String> {
    decimal(text).and_then(|digits| digits.parse().ok()).map(Kind::Int32Value).ok_or_else(|| {
        "must be a whole number from -2147483648 to 2147483647, or have its type declared".into()
    })
}

fn double(text: &str) -> Result<Kind, String> {
    let number = match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        // The standard parser also takes "inf" and "nan" in any case, and overflows to infinity.
        _ => text
            .bytes()
            .all(|c| c.is_ascii_digit() || b"+-.eE".contains(&c))
            .then(|| text.parse().ok())
            .flatten()
            .filter(|number: &f64| number.is_finite()),
    };
    number.map(Kind::DoubleValue).ok_or_else(|| {
        "Edm.Double: must be a number in the range of binary64, NaN, Infinity or -Infinity".into()
    })
}

/// Digits with an optional minus; the standard parser would also take a plus.
fn decimal(text: &str) -> Option<&str> {
    (!text.starts_with('+')).then_some(text)
}
