//! How many parts a message has, counted before it is decoded.
//!
//! Two bytes on the wire, an empty entity, take a hundred in memory once decoded: without this count
//! a message at the limit of size could take fifty times its size before any limit on its content
//! is checked. A part is an element of a repeated field, however deep.
//!
//! Counting walks only into messages that have parts, by shapes compiled once from the descriptors: an entity of ten
//! properties costs about a twentieth of its decoding.

use std::{collections::HashMap, sync::LazyLock};

use prost::{
    Message as _, Name,
    bytes::Buf,
    encoding::{WireType, decode_key, decode_varint},
};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

/// Most parts of a message: a page of 1,000 entities with 252 properties each fits. Decoded, they
/// take some 50 MB.
pub const PARTS_MAX: usize = 300_000;

/// Messages up to so many bytes are not counted: decoding them takes little memory for any content.
const SMALL_BYTES: usize = 64 * 1024;

/// Deepest nesting that is counted; the contracts have less than half of it.
const DEPTH_MAX: usize = 16;

/// Messages that stay encoded in the messages around them, and are never decoded: see `log::v1::wire`.
const ENCODED: [&str; 4] = [
    "trestle.log.v1.Record",
    "opentelemetry.proto.logs.v1.ResourceLogs",
    "opentelemetry.proto.metrics.v1.ResourceMetrics",
    "opentelemetry.proto.trace.v1.ResourceSpans",
];

/// The fields of a message type that count, by number.
#[derive(Debug, Default)]
struct Shape {
    fields: Vec<Option<Field>>,
}

#[derive(Debug, Clone, Copy)]
struct Field {
    is_repeated: bool,
    /// The index of the shape of its messages, where those have parts: all others are skipped as a whole.
    inner: Option<usize>,
}

impl Shape {
    #[inline]
    fn field(&self, number: u32) -> Option<Field> {
        self.fields.get(usize::try_from(number).ok()?).copied().flatten()
    }
}

/// The shapes of all message types.
#[derive(Debug, Default)]
struct Shapes {
    by_name: HashMap<String, usize>,
    list: Vec<Shape>,
}

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let files = FileDescriptorSet::decode(crate::FILE_DESCRIPTOR_SET).unwrap_or_default().file;
    let mut messages = Vec::new();
    for file in &files {
        for message in &file.message_type {
            collect(file.package(), message, &mut messages);
        }
    }
    Shapes::new(&messages)
});

/// Collects the message types of a scope, with their full names.
fn collect<'a>(
    scope: &str,
    message: &'a DescriptorProto,
    messages: &mut Vec<(String, &'a DescriptorProto)>,
) {
    let name = format!("{scope}.{}", message.name());
    for nested in &message.nested_type {
        collect(&name, nested, messages);
    }
    messages.push((name, message));
}

impl Shapes {
    fn new(messages: &[(String, &DescriptorProto)]) -> Self {
        let names = messages.iter().map(|(name, _)| name.clone()).zip(0..);
        let mut shapes = Self { by_name: names.collect(), list: Vec::new() };
        let have_parts = shapes.have_parts(messages);
        let list = messages.iter().map(|(_, message)| shapes.shape(message, &have_parts));
        shapes.list = list.collect();
        shapes
    }

    /// For each message type, whether it has a repeated field, however deep.
    fn have_parts(&self, messages: &[(String, &DescriptorProto)]) -> Vec<bool> {
        let mut found = vec![false; messages.len()];
        // Types may contain themselves, so this ends when a round finds no more.
        loop {
            let before = found.clone();
            for ((_, message), found) in messages.iter().zip(&mut found) {
                *found |= message.field.iter().any(|field| {
                    let inner = self.inner(field).and_then(|index| before.get(index));
                    field.label() == Label::Repeated || inner == Some(&true)
                });
            }
            if before == found {
                return found;
            }
        }
    }

    fn shape(&self, message: &DescriptorProto, have_parts: &[bool]) -> Shape {
        let mut shape = Shape::default();
        for field in &message.field {
            let is_repeated = field.label() == Label::Repeated;
            let inner = self.inner(field).filter(|index| have_parts.get(*index) == Some(&true));
            let Ok(number) = usize::try_from(field.number()) else { continue };
            if is_repeated || inner.is_some() {
                if shape.fields.len() <= number {
                    shape.fields.resize(number + 1, None);
                }
                if let Some(slot) = shape.fields.get_mut(number) {
                    *slot = Some(Field { is_repeated, inner });
                }
            }
        }
        shape
    }

    /// The index of the message type of a field.
    fn inner(&self, field: &FieldDescriptorProto) -> Option<usize> {
        let name = field.type_name().trim_start_matches('.');
        let is_decoded = field.r#type() == Type::Message && !ENCODED.contains(&name);
        self.by_name.get(name).copied().filter(|_| is_decoded)
    }

    fn of(&self, name: &str) -> Option<&Shape> {
        self.list.get(*self.by_name.get(name)?)
    }
}

/// Whether an encoded message has more than [`PARTS_MAX`] parts. Bytes that are
/// no such message are left to the decoder, which rejects them.
#[must_use]
pub fn are_too_many<T: Name>(encoded: &[u8]) -> bool {
    if encoded.len() <= SMALL_BYTES {
        return false;
    }
    let mut left = PARTS_MAX;
    let shape = SHAPES.of(&T::full_name());
    shape.is_some_and(|shape| count(shape, encoded, DEPTH_MAX, &mut left).is_none())
}

/// Takes every part from `left`; none when that is not enough.
fn count(shape: &Shape, mut encoded: &[u8], depth: usize, left: &mut usize) -> Option<()> {
    while encoded.has_remaining() {
        let Ok((tag, wire_type)) = decode_key(&mut encoded) else {
            return Some(());
        };
        let Some(value) = value(wire_type, &mut encoded) else {
            return Some(());
        };
        let Some(field) = shape.field(tag) else {
            continue;
        };
        if field.is_repeated {
            *left = left.checked_sub(1)?;
        }
        let inner = field.inner.and_then(|index| SHAPES.list.get(index));
        if let (Some(inner), Some(depth)) = (inner, depth.checked_sub(1)) {
            count(inner, value, depth, left)?;
        }
    }
    Some(())
}

/// Skips the value of a field; its bytes where it has a length, none where it is malformed.
fn value<'a>(wire_type: WireType, encoded: &mut &'a [u8]) -> Option<&'a [u8]> {
    let bytes = match wire_type {
        WireType::Varint => {
            decode_varint(encoded).ok()?;
            return Some(&[]);
        }
        WireType::SixtyFourBit => 8,
        WireType::ThirtyTwoBit => 4,
        WireType::LengthDelimited => usize::try_from(decode_varint(encoded).ok()?).ok()?,
        // Not in proto3, so it contains no part.
        WireType::StartGroup | WireType::EndGroup => return Some(&[]),
    };
    let (value, rest) = encoded.split_at_checked(bytes)?;
    *encoded = rest;
    Some(value)
}

#[cfg(test)]
mod tests;
