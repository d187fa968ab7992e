//! Values of flags.

use trestle_command::type_names;
use trestle_proto::log::v1::{AttributeType, PromotedAttribute};

use crate::edm::EdmType;

const BYTES_RULE: &str = "must be a number above 0 and B, KiB, MiB or GiB";
const PROMOTED_RULE: &str =
    "must be KEY:TYPE or KEY:TYPE:indexed, with the types string, int64, double and boolean";

/// Reads a size such as `64MiB`; a bare number is in bytes.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let factor: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(BYTES_RULE.to_owned()),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    number.filter(|number| *number > 0).ok_or_else(|| BYTES_RULE.to_owned())
}

/// Reads `KEY=VALUE`.
pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Reads `KEY:TYPE[:indexed]`; the key may have colons.
pub(super) fn promoted(text: &str) -> Result<PromotedAttribute, String> {
    let (rest, is_indexed) = match text.strip_suffix(":indexed") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (key, name) = rest.rsplit_once(':').ok_or(PROMOTED_RULE)?;
    let edm = type_names::parse(name, |edm| TYPES.iter().any(|(known, _)| *known == edm));
    let edm = edm.map_err(|_| PROMOTED_RULE)?;
    let found = TYPES.iter().find(|(known, _)| *known == edm);
    let (_, kind) = found.filter(|_| !key.is_empty()).ok_or(PROMOTED_RULE)?;
    Ok(PromotedAttribute { key: key.to_owned(), r#type: (*kind).into(), is_indexed })
}

/// As [`promoted`] reads it.
pub(super) fn promoted_text(attribute: &PromotedAttribute) -> String {
    let kind = attribute.r#type();
    let name = TYPES
        .iter()
        .find(|(_, known)| *known == kind)
        .map_or("unknown", |(edm, _)| type_names::name_of(*edm));
    let indexed = if attribute.is_indexed { ":indexed" } else { "" };
    format!("{}:{name}{indexed}", attribute.key)
}

const TYPES: [(EdmType, AttributeType); 4] = [
    (EdmType::String, AttributeType::String),
    (EdmType::Int64, AttributeType::Int64),
    (EdmType::Double, AttributeType::Double),
    (EdmType::Boolean, AttributeType::Bool),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("5"), Ok(5));
        assert_eq!(bytes("2KiB"), Ok(2048));
        for text in ["", "0", "1MB", "MiB", "-1", "99999999999GiB", "1 MiB"] {
            assert_eq!(bytes(text), Err(BYTES_RULE.to_owned()), "{text}");
        }
    }

    #[test]
    fn promoted_attributes_have_a_key_and_a_type() {
        for text in ["http.route:string", "a:b:int64:indexed", "x:double", "y:boolean:indexed"] {
            assert_eq!(promoted_text(&promoted(text).unwrap()), text);
        }
        assert_eq!(promoted("y:bool"), promoted("y:Boolean"));
        for text in ["", "a", "a:text", "a:guid", ":string", "a:indexed", "a:string:index"] {
            assert_eq!(promoted(text), Err(PROMOTED_RULE.to_owned()), "{text}");
        }
        assert_eq!(key_value("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(key_value("a").is_err());
    }
}
