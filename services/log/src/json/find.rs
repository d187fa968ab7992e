//! A member of an object, without reading the others.

use std::{borrow::Cow, fmt};

use memchr::memmem;
use serde::{
    Deserializer as _,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{
    BYTES_KEY, DOUBLE_KEY, ESCAPE, SCOPE_NAME,
    read::{Text, special_bytes, special_double},
    write::write_text,
};
use crate::row::ValueRef;

/// The value of the attribute `key` in an object of attributes. Lists, maps and `null` are absent.
pub(crate) fn find_member<'j>(json: &'j str, key: &str) -> Option<ValueRef<'j>> {
    let escaped: Cow<'_, str> = match key.starts_with(ESCAPE) {
        true => Cow::Owned(format!("{ESCAPE}{key}")),
        false => Cow::Borrowed(key),
    };
    if !may_have(json, &escaped) {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::from_str(json);
    // An error is the end of the search: what follows the member is not read.
    let mut found = None;
    let visitor = MemberVisitor { key: &escaped, found: &mut found };
    let _ = deserializer.deserialize_map(visitor);
    found
}

/// The name in the JSON of a scope.
pub(crate) fn scope_name(json: &str) -> Cow<'_, str> {
    match find_member(json, SCOPE_NAME) {
        Some(ValueRef::Str(name)) => name,
        _ => Cow::Borrowed(""),
    }
}

/// Whether the quoted key occurs anywhere.
fn may_have(json: &str, key: &str) -> bool {
    let is_plain = key.bytes().all(|byte| byte >= 0x20 && !matches!(byte, b'"' | b'\\'));
    if !is_plain {
        let mut quoted = String::new();
        write_text(&mut quoted, key);
        return memmem::find(json.as_bytes(), quoted.as_bytes()).is_some();
    }
    let at_quotes = |at: usize| {
        let byte = |at: usize| json.as_bytes().get(at).copied();
        at.checked_sub(1).and_then(byte) == Some(b'"') && byte(at + key.len()) == Some(b'"')
    };
    memmem::find_iter(json.as_bytes(), key.as_bytes()).any(at_quotes)
}

struct MemberVisitor<'k, 'f, 'j> {
    key: &'k str,
    found: &'f mut Option<ValueRef<'j>>,
}

impl<'de> Visitor<'de> for MemberVisitor<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = members.next_key()? {
            if key == self.key {
                *self.found = members.next_value::<Scalar<'de>>()?.0;
                return Err(de::Error::custom("found"));
            }
            members.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

struct Scalar<'j>(Option<ValueRef<'j>>);

impl<'de> de::Deserialize<'de> for Scalar<'de> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Scalar(None))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar(Some(ValueRef::Str(Cow::Borrowed(text)))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Scalar(Some(ValueRef::Str(Cow::Owned(text.to_owned())))))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Scalar(Some(ValueRef::Bool(value))))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Scalar(Some(ValueRef::Int(value))))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Scalar(i64::try_from(value).ok().map(ValueRef::Int)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Scalar(Some(ValueRef::Double(value))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut scalar = None;
        while let Some(Text(key)) = members.next_key()? {
            match key.as_ref() {
                BYTES_KEY => {
                    let Text(text) = members.next_value()?;
                    scalar = Some(ValueRef::Bytes(Cow::Owned(special_bytes(&text)?)));
                }
                DOUBLE_KEY => {
                    let Text(text) = members.next_value()?;
                    scalar = Some(ValueRef::Double(special_double(&text)?));
                }
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Scalar(scalar))
    }
}
