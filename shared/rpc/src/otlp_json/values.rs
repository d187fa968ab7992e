//! Values in the forms that JSON has of them.

use std::{borrow::Cow, collections::HashMap, fmt};

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::de::{self, Unexpected, Visitor};

use super::contract::NumberKind;

/// Base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);
/// The first byte of half a character of UTF-16, in the bytes that the library makes of it.
const SURROGATE: u8 = 0xED;
/// An id of no valid length, in place of one that is not hexadecimal.
const MALFORMED_ID: [u8; 1] = [0xFF];

/// A text, which may have halves of characters of UTF-16.
pub(super) struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, [u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_borrowed_bytes<E>(self, text: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_bytes<E>(self, text: &[u8]) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_vec()))
    }
}

/// The text of bytes, with U+FFFD for each half of a character: JavaScript cuts text there, and JSON can escape it.
pub(super) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        // The other two bytes of the half are chunks of their own.
        if chunk.invalid().first() == Some(&SURROGATE) {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Cow::Owned(text)
}

/// The bytes of an id in hexadecimal. One that is malformed has an invalid length.
pub(super) fn id_of(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.chunks(2).map(byte).collect::<Option<_>>().unwrap_or_else(|| MALFORMED_ID.to_vec())
}

/// Bytes in base64, of either alphabet.
pub(super) struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("base64")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<u8>, E> {
        let standard = |byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        };
        let bytes: Vec<u8> = text.bytes().map(standard).collect();
        BASE64.decode(bytes).map_err(|error| E::custom(format!("must be base64: {error}")))
    }
}

/// A truth value.
pub(super) struct BoolVisitor;

impl Visitor<'_> for BoolVisitor {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true or false")
    }

    fn visit_bool<E>(self, value: bool) -> Result<bool, E> {
        Ok(value)
    }
}

/// The value of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    /// The number in a text: digits as in JSON, or a name that ProtoJSON has for what JSON cannot write.
    fn of_text(text: &str) -> Option<Self> {
        match text {
            "NaN" => return Some(Self::Real(f64::NAN)),
            "Infinity" => return Some(Self::Real(f64::INFINITY)),
            "-Infinity" => return Some(Self::Real(f64::NEG_INFINITY)),
            _ => {}
        }
        match text.parse() {
            // A whole number has no negative zero.
            Ok(0) if text.starts_with('-') => Some(Self::Real(-0.0)),
            Ok(whole) => Some(Self::Whole(whole)),
            // The library reads "inf" and "nan" too, and infinity for what is too great.
            Err(_) => text.parse().ok().filter(|real: &f64| real.is_finite()).map(Self::Real),
        }
    }

    /// The whole number that it is: `1.0` and `1e3` are whole.
    #[expect(clippy::cast_possible_truncation, reason = "checked")]
    fn whole(self) -> Option<i128> {
        match self {
            Self::Whole(whole) => Some(whole),
            Self::Real(real) => (real.is_finite() && real.fract() == 0.0 && real.abs() < 1e30)
                .then_some(real as i128),
        }
    }
}

/// A number of a kind, as a number or as text.
pub(super) struct NumberVisitor(pub(super) NumberKind);

impl NumberVisitor {
    fn checked<E: de::Error>(
        &self,
        number: Option<Number>,
        found: Unexpected<'_>,
    ) -> Result<Number, E> {
        let invalid = || E::invalid_value(found, self);
        let number = number.ok_or_else(invalid)?;
        if self.0.is_real() {
            return Ok(number);
        }
        let whole = number.whole().ok_or_else(invalid)?;
        let (least, greatest) = self.0.range();
        let out_of_range = |value: &dyn fmt::Display| {
            Err(E::custom(format!("must be from {least} to {greatest}: value=`{value}`")))
        };
        match number {
            // Rounded: what JSON has may be one less.
            Number::Real(real) if whole == i64::MIN.into() => out_of_range(&format!("{real:e}")),
            _ if (least..=greatest).contains(&whole) => Ok(Number::Whole(whole)),
            _ => out_of_range(&whole),
        }
    }
}

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_real() { "a number" } else { "a whole number" })
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
        self.checked(Some(Number::Whole(value.into())), Unexpected::Unsigned(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
        self.checked(Some(Number::Whole(value.into())), Unexpected::Signed(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Number, E> {
        self.checked(Some(Number::Real(value)), Unexpected::Float(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
        self.checked(Number::of_text(text), Unexpected::Str(text))
    }
}

/// A value of an enum, by its name or its number; none for an unknown name.
pub(super) struct EnumVisitor<'c>(pub(super) &'c HashMap<String, i32>);

impl EnumVisitor<'_> {
    fn number<E: de::Error>(number: Result<Number, E>) -> Result<Option<i32>, E> {
        Ok(number?.whole().and_then(|whole| i32::try_from(whole).ok()))
    }
}

impl Visitor<'_> for EnumVisitor<'_> {
    type Value = Option<i32>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or a whole number")
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Option<i32>, E> {
        Self::number(NumberVisitor(NumberKind::Int32).visit_u64(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Option<i32>, E> {
        Self::number(NumberVisitor(NumberKind::Int32).visit_i64(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Option<i32>, E> {
        Self::number(NumberVisitor(NumberKind::Int32).visit_f64(value))
    }

    fn visit_str<E>(self, name: &str) -> Result<Option<i32>, E> {
        Ok(self.0.get(name).copied().or_else(|| name.parse().ok()))
    }
}
