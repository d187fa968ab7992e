//! JSON text to encoded values, written as they are read, without a tree between.

use std::{borrow::Cow, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{
    Deserializer as _,
    de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use trestle_proto::wire::{put_bytes, put_fixed64, put_message, put_varint};

use super::{
    BYTES_KEY, DOUBLE_KEY, ESCAPE, SCOPE_ATTRIBUTES, SCOPE_DROPPED, SCOPE_NAME, SCOPE_VERSION,
};

/// JSON of a segment that is not as it was written.
#[derive(Debug, thiserror::Error)]
#[error("JSON of a segment is malformed: {0}")]
pub(crate) struct MalformedJson(#[from] serde_json::Error);

/// Writes the members of an object as `KeyValue` fields of number `number`.
pub(crate) fn read_entries(
    json: &str,
    number: u32,
    out: &mut Vec<u8>,
) -> Result<(), MalformedJson> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer.deserialize_map(EntriesVisitor { number, out })?;
    Ok(deserializer.end()?)
}

/// Writes an `InstrumentationScope`.
pub(crate) fn read_scope(json: &str, out: &mut Vec<u8>) -> Result<(), MalformedJson> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer.deserialize_map(ScopeVisitor { out })?;
    Ok(deserializer.end()?)
}

/// A text, borrowed where it has no escape.
pub(super) struct Text<'t>(pub(super) Cow<'t, str>);

impl<'de> de::Deserialize<'de> for Text<'de> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// The key of the user.
pub(super) fn user_key(key: &str) -> &str {
    key.strip_prefix(ESCAPE).unwrap_or(key)
}

/// The bytes of a special object.
pub(super) fn special_bytes<E: de::Error>(text: &str) -> Result<Vec<u8>, E> {
    STANDARD.decode(text).map_err(E::custom)
}

/// The double of a special object.
pub(super) fn special_double<E: de::Error>(text: &str) -> Result<f64, E> {
    match text {
        "Infinity" => Ok(f64::INFINITY),
        "-Infinity" => Ok(f64::NEG_INFINITY),
        "NaN" => Ok(f64::NAN),
        bits => {
            let bits = bits.strip_prefix("NaN:").unwrap_or_default();
            u64::from_str_radix(bits, 16).map(f64::from_bits).map_err(E::custom)
        }
    }
}

struct EntriesVisitor<'o> {
    number: u32,
    out: &'o mut Vec<u8>,
}

impl<'de> Visitor<'de> for EntriesVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = members.next_key()? {
            put_entry(self.out, self.number, &key, &mut members)?;
        }
        Ok(())
    }
}

/// Writes a `KeyValue` whose value is next.
fn put_entry<'de, A: MapAccess<'de>>(
    out: &mut Vec<u8>,
    number: u32,
    key: &str,
    members: &mut A,
) -> Result<(), A::Error> {
    put_message(out, number, |out| {
        let key = user_key(key);
        if !key.is_empty() {
            put_bytes(out, 1, key.as_bytes());
        }
        put_message(out, 2, |out| members.next_value_seed(AnyValueSeed { out }))
    })
}

/// Writes the content of an `AnyValue`.
struct AnyValueSeed<'o> {
    out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for AnyValueSeed<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValueSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        put_bytes(self.out, 1, text.as_bytes());
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        put_varint(self.out, 2, value.into());
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        put_varint(self.out, 3, value.cast_unsigned());
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.visit_i64(i64::try_from(value).map_err(E::custom)?)
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        put_fixed64(self.out, 4, value.to_bits());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        put_message(self.out, 5, |out| {
            loop {
                let mut is_end = false;
                let start = out.len();
                put_message(out, 1, |out| {
                    is_end = values.next_element_seed(AnyValueSeed { out })?.is_none();
                    Ok(())
                })?;
                if is_end {
                    out.truncate(start);
                    return Ok(());
                }
            }
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let first = members.next_key::<Text<'_>>()?;
        match first.as_ref().map(|Text(key)| key.as_ref()) {
            Some(BYTES_KEY) => {
                let Text(text) = members.next_value()?;
                put_bytes(self.out, 7, &special_bytes(&text)?);
                return Ok(());
            }
            Some(DOUBLE_KEY) => {
                let Text(text) = members.next_value()?;
                put_fixed64(self.out, 4, special_double::<A::Error>(&text)?.to_bits());
                return Ok(());
            }
            _ => {}
        }
        put_message(self.out, 6, |out| {
            if let Some(Text(key)) = first {
                put_entry(out, 1, &key, &mut members)?;
                EntriesVisitor { number: 1, out }.visit_map(members)?;
            }
            Ok(())
        })
    }
}

struct ScopeVisitor<'o> {
    out: &'o mut Vec<u8>,
}

impl<'de> Visitor<'de> for ScopeVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scope")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = members.next_key()? {
            match key.as_ref() {
                SCOPE_NAME => {
                    let Text(name) = members.next_value()?;
                    put_bytes(self.out, 1, name.as_bytes());
                }
                SCOPE_VERSION => {
                    let Text(version) = members.next_value()?;
                    put_bytes(self.out, 2, version.as_bytes());
                }
                SCOPE_ATTRIBUTES => {
                    members.next_value_seed(EntriesSeed { number: 3, out: self.out })?;
                }
                SCOPE_DROPPED => put_varint(self.out, 4, members.next_value::<u32>()?.into()),
                _ => drop(members.next_value::<de::IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct EntriesSeed<'o> {
    number: u32,
    out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for EntriesSeed<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(EntriesVisitor { number: self.number, out: self.out })
    }
}
