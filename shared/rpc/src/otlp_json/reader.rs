//! JSON, read by the form of its message.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use trestle_proto::wire::put_message;

use super::{
    contract::{CONTRACT, FieldForm, FieldKind, MessageForm},
    encoder::Encoder,
    values::{
        BoolVisitor, BytesVisitor, EnumVisitor, Number, NumberVisitor, TextVisitor, id_of, text_of,
    },
};

/// Writes the fields of a message that is next.
pub(super) struct MessageSeed<'e, 'c> {
    pub(super) encoder: &'e mut Encoder,
    pub(super) message: &'c MessageForm,
}

impl<'de> DeserializeSeed<'de> for MessageSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MessageSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { encoder, message } = self;
        while let Some(field) = members.next_key_seed(FieldSeed { message })? {
            let Some(field) = field else {
                members.next_value::<IgnoredAny>()?;
                continue;
            };
            members.next_value_seed(ValueSeed { encoder, field, place: Place::Field })?;
        }
        Ok(())
    }
}

/// The field that a name denotes; none for an unknown one.
struct FieldSeed<'c> {
    message: &'c MessageForm,
}

impl<'de, 'c> DeserializeSeed<'de> for FieldSeed<'c> {
    type Value = Option<&'c FieldForm>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // As bytes: an unknown name may have any text.
        deserializer.deserialize_bytes(self)
    }
}

impl<'c> Visitor<'_> for FieldSeed<'c> {
    type Value = Option<&'c FieldForm>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Self::Value, E> {
        Ok(str::from_utf8(name).ok().and_then(|name| self.message.get(name)))
    }
}

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a field of its own, which is absent where the value is null.
    Field,
    /// In a list of texts, bytes or messages: each has the key of the field.
    Element,
    /// In a list of numbers, which share one key.
    Packed,
}

/// Writes a value that is next.
struct ValueSeed<'e, 'c> {
    encoder: &'e mut Encoder,
    field: &'c FieldForm,
    place: Place,
}

impl ValueSeed<'_, '_> {
    /// The number of the field, where it precedes the value.
    fn key(&self) -> Option<u32> {
        (self.place != Place::Packed).then_some(self.field.number)
    }
}

/// Whether what was written fits.
fn check_room<E: de::Error>(encoder: &Encoder) -> Result<(), E> {
    match encoder.is_full() {
        true => Err(E::custom("must have fewer bytes")),
        false => Ok(()),
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    /// The default of its type: nothing, or an element, which keeps the places of the others.
    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        match (self.place, &self.field.kind) {
            (Place::Field, _) => {}
            (Place::Element, _) => self.encoder.put_bytes(self.field.number, &[]),
            (Place::Packed, FieldKind::Number(kind)) => {
                self.encoder.put_number(None, *kind, Number::Whole(0));
            }
            (Place::Packed, _) => self.encoder.put_enum(None, 0),
        }
        check_room(self.encoder)
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        let Self { field, place, .. } = self;
        if place == Place::Field && field.is_repeated {
            value.deserialize_seq(ListVisitor { encoder: &mut *self.encoder, field })?;
            return check_room(self.encoder);
        }
        let key = self.key();
        let encoder = self.encoder;
        match &field.kind {
            FieldKind::Message(name) => put_message(encoder, field.number, |encoder| {
                MessageSeed { encoder, message: CONTRACT.message(name) }.deserialize(value)
            })?,
            FieldKind::Text => {
                let text = value.deserialize_bytes(TextVisitor)?;
                encoder.put_bytes(field.number, text_of(&text).as_bytes());
            }
            FieldKind::Base64 => {
                encoder.put_bytes(field.number, &value.deserialize_str(BytesVisitor)?);
            }
            FieldKind::Id => {
                let text = value.deserialize_bytes(TextVisitor)?;
                encoder.put_bytes(field.number, &id_of(&text));
            }
            FieldKind::Bool => encoder.put_bool(key, value.deserialize_bool(BoolVisitor)?),
            FieldKind::Number(kind) => {
                let number = value.deserialize_any(NumberVisitor(*kind))?;
                encoder.put_number(key, *kind, number);
            }
            FieldKind::Enum(names) => {
                // An unknown name is ignored, as an unknown field is.
                let number = value.deserialize_any(EnumVisitor(names))?;
                if let Some(number) = number.or((place == Place::Packed).then_some(0)) {
                    encoder.put_enum(key, number);
                }
            }
        }
        check_room(encoder)
    }
}

/// Writes the elements of a list.
struct ListVisitor<'e, 'c> {
    encoder: &'e mut Encoder,
    field: &'c FieldForm,
}

impl<'de> Visitor<'de> for ListVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let Self { encoder, field } = self;
        let is_packed =
            matches!(field.kind, FieldKind::Bool | FieldKind::Number(_) | FieldKind::Enum(_));
        let place = if is_packed { Place::Packed } else { Place::Element };
        let mut write = |encoder: &mut Encoder| loop {
            let seed = ValueSeed { encoder: &mut *encoder, field, place };
            if elements.next_element_seed(seed)?.is_none() {
                return Ok(());
            }
        };
        match is_packed {
            true => put_message(encoder, field.number, write),
            false => write(encoder),
        }
    }
}
