//! The text form of a single value, as JSON, CSV and command lines carry it.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use trestle_proto::table::v1::value::Kind;

use super::{ALL, EdmType, datetime};

/// The beginning of the year 1601, the earliest time that is stored.
const FIRST_SECOND: i64 = -11_644_473_600;

/// Reads a type name, with or without `Edm.`.
///
/// # Errors
/// The rule that the name breaks.
pub fn parse_type(name: &str) -> Result<EdmType, String> {
    let edm = EdmType::named(name).or_else(|| EdmType::named(&format!("Edm.{name}")));
    edm.ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|edm| edm.name()).collect();
        format!("unknown type `{name}`: must be one of {}", names.join(", "))
    })
}

/// Reads a value of a type from its text.
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_value(edm: EdmType, text: &str) -> Result<Kind, String> {
    let rule = |rule: &str| format!("{}: {rule}", edm.name());
    match edm {
        EdmType::String => Ok(Kind::StringValue(text.to_owned())),
        EdmType::Int32 => decimal(text)
            .and_then(|digits| digits.parse().ok())
            .map(Kind::Int32Value)
            .ok_or_else(|| rule("must be a whole number from -2147483648 to 2147483647")),
        EdmType::Int64 => decimal(text)
            .and_then(|digits| digits.parse().ok())
            .map(Kind::Int64Value)
            .ok_or_else(|| rule("must be a whole number from -2^63 to 2^63-1")),
        EdmType::Double => parse_double(text).map(Kind::DoubleValue).ok_or_else(|| {
            rule("must be a number within the range of binary64, NaN, Infinity or -Infinity")
        }),
        EdmType::Boolean => {
            parse_boolean(text).map(Kind::BooleanValue).ok_or_else(|| rule("must be true or false"))
        }
        EdmType::DateTime => datetime::parse(text)
            .filter(|at| at.seconds >= FIRST_SECOND)
            .map(Kind::DatetimeValue)
            .ok_or_else(|| rule(datetime::RULE)),
        EdmType::Guid if is_guid(text) => Ok(Kind::GuidValue(text.to_ascii_lowercase())),
        EdmType::Guid => Err(rule("must be hexadecimal digits in the form 8-4-4-4-12")),
        EdmType::Binary => STANDARD
            .decode(text)
            .map(|bytes| Kind::BinaryValue(bytes.into()))
            .map_err(|_| rule("must be base64 with padding")),
    }
}

/// The text of a boolean, in any case: clients write the `True` of their language.
fn parse_boolean(text: &str) -> Option<bool> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("true") { Some(true) } else { is("false").then_some(false) }
}

/// Writes a value; [`parse_value`] of its type reads it back unchanged.
///
/// # Errors
/// A time out of range; servers do not send such values.
pub fn format_value(kind: &Kind) -> Result<Cow<'_, str>, String> {
    Ok(match kind {
        Kind::StringValue(text) | Kind::GuidValue(text) => Cow::Borrowed(text.as_str()),
        Kind::Int32Value(number) => number.to_string().into(),
        Kind::Int64Value(number) => number.to_string().into(),
        Kind::DoubleValue(number) => format_double(*number).into(),
        Kind::BooleanValue(true) => "true".into(),
        Kind::BooleanValue(false) => "false".into(),
        Kind::DatetimeValue(at) => datetime::format(at)
            .ok_or_else(|| format!("timestamp out of range: seconds=`{}`", at.seconds))?
            .into(),
        Kind::BinaryValue(bytes) => STANDARD.encode(bytes).into(),
    })
}

/// Writes a double, with a point or an exponent if it is finite; preserves the sign of zero.
fn format_double(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        format!("{number:?}")
    }
}

fn parse_double(text: &str) -> Option<f64> {
    match text {
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
    }
}

/// Digits with an optional minus; the standard parser would also take a plus.
fn decimal(text: &str) -> Option<&str> {
    (!text.starts_with('+')).then_some(text)
}

/// Whether a text is of the form 8-4-4-4-12.
#[must_use]
pub fn is_guid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == b'-',
            _ => c.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(edm: EdmType, text: &str) -> String {
        format_value(&parse_value(edm, text).unwrap()).unwrap().into_owned()
    }

    #[test]
    fn doubles_always_have_a_point_or_an_exponent() {
        for (given, expected) in [
            ("3", "3.0"),
            ("-0", "-0.0"),
            ("1e16", "1e16"),
            ("0.1", "0.1"),
            ("5e-324", "5e-324"),
            ("1.797693134862315e308", "1.797693134862315e308"),
            ("NaN", "NaN"),
            ("-Infinity", "-Infinity"),
        ] {
            assert_eq!(round_trip(EdmType::Double, given), expected);
        }
    }

    #[test]
    fn values_at_the_bounds_of_their_type_are_preserved() {
        for (edm, text) in [
            (EdmType::Int32, "-2147483648"),
            (EdmType::Int64, "-9223372036854775808"),
            (EdmType::Int64, "9007199254740993"),
            (EdmType::Binary, ""),
            (EdmType::String, ""),
            (EdmType::Guid, "00000000-0000-0000-0000-00000000000f"),
        ] {
            assert_eq!(round_trip(edm, text), text);
        }
    }

    #[test]
    fn rejects_texts_of_another_type_with_the_rule() {
        for (edm, text) in [
            (EdmType::Int32, "2147483648"),
            (EdmType::Int32, "+1"),
            (EdmType::Int32, ""),
            (EdmType::Int64, "1.0"),
            (EdmType::Double, "1.797693134862316e308"),
            (EdmType::Double, "nan"),
            (EdmType::Double, ""),
            (EdmType::Boolean, "yes"),
            (EdmType::Boolean, ""),
            (EdmType::DateTime, ""),
            (EdmType::DateTime, "1600-12-31T23:59:59Z"),
            (EdmType::Guid, "00000000000000000000000000000000"),
            (EdmType::Binary, "AA"),
        ] {
            let error = parse_value(edm, text).unwrap_err();
            assert!(error.starts_with(edm.name()), "{error}");
        }
    }

    #[test]
    fn type_names_are_read_with_and_without_prefix() {
        for edm in ALL {
            assert_eq!(parse_type(edm.name()), Ok(edm));
            assert_eq!(parse_type(&edm.name()[4..]), Ok(edm));
        }
        assert!(parse_type("int64").unwrap_err().contains("Edm.Int64"));
    }
}
