//! How many parts a message has, counted before it is decoded.
//!
//! Two bytes on the wire, an empty entity, take a hundred in memory once decoded: without this count
//! a message at the limit of size could take fifty times its size before any limit on its content
//! is checked. A part is an element of a repeated field, however deep.
//!
//! Fields that are unknown, and those that are there again and replace what was before, take no memory and as much time
//! as any other: millions of them fit into a message, and into kilobytes of a compressed one. No encoder writes the
//! latter, and a newer client a few of the former, so there may be few of both.
//!
//! Counting walks through every message, by shapes compiled once from the descriptors.

use std::{collections::HashMap, sync::LazyLock};

use prost::{Message as _, Name};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

use crate::wire::{FieldValue, MessageReader};

/// Most parts of a message: a page of 1,000 entities with 252 properties each fits. Decoded, they
/// take some 50 MB.
pub const PARTS_MAX: usize = 300_000;

/// Messages up to so many bytes are not counted: decoding them takes little memory for any content.
const SMALL_BYTES: usize = 64 * 1024;

/// Fields without effect that any message may have.
const IDLE_MAX: usize = 10_000;
/// Those that it may have for each part: a newer version of a contract may have added some to each.
const IDLE_OF_PART: usize = 2;

/// Deepest nesting that is counted: the decoder rejects more.
const DEPTH_MAX: usize = 100;

/// Messages that stay encoded in the messages around them, and are never decoded: see `log::v1::wire`.
const ENCODED: [&str; 4] = [
    "trestle.log.v1.Record",
    "opentelemetry.proto.logs.v1.ResourceLogs",
    "opentelemetry.proto.metrics.v1.ResourceMetrics",
    "opentelemetry.proto.trace.v1.ResourceSpans",
];

/// The fields of a message type, by number.
#[derive(Debug, Default)]
struct Shape {
    fields: Vec<Option<Field>>,
}

#[derive(Debug, Clone, Copy)]
struct Field {
    is_repeated: bool,
    /// Whether its messages stay encoded: their parts take no memory.
    is_encoded: bool,
    /// The index of the shape of its messages.
    inner: Option<usize>,
}

/// What a message may still have.
#[derive(Debug)]
struct Allowance {
    parts: usize,
    idle: usize,
}

impl Allowance {
    fn take_part(&mut self, is_encoded: bool) -> Option<()> {
        if !is_encoded {
            self.parts = self.parts.checked_sub(1)?;
        }
        self.idle += IDLE_OF_PART;
        Some(())
    }

    fn take_idle(&mut self) -> Option<()> {
        self.idle = self.idle.checked_sub(1)?;
        Some(())
    }
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
        shapes.list = messages.iter().map(|(_, message)| shapes.shape(message)).collect();
        shapes
    }

    fn shape(&self, message: &DescriptorProto) -> Shape {
        let mut shape = Shape::default();
        for field in &message.field {
            let Ok(number) = usize::try_from(field.number()) else { continue };
            if shape.fields.len() <= number {
                shape.fields.resize(number + 1, None);
            }
            if let Some(slot) = shape.fields.get_mut(number) {
                let is_repeated = field.label() == Label::Repeated;
                let is_encoded = ENCODED.contains(&type_name(field));
                *slot = Some(Field { is_repeated, is_encoded, inner: self.inner(field) });
            }
        }
        shape
    }

    /// The index of the message type of a field.
    fn inner(&self, field: &FieldDescriptorProto) -> Option<usize> {
        let index = self.by_name.get(type_name(field)).copied();
        index.filter(|_| field.r#type() == Type::Message)
    }

    fn of(&self, name: &str) -> Option<&Shape> {
        self.list.get(*self.by_name.get(name)?)
    }
}

fn type_name(field: &FieldDescriptorProto) -> &str {
    field.type_name().trim_start_matches('.')
}

/// Whether an encoded message has more than [`PARTS_MAX`] parts, or many fields without effect. Bytes that are
/// no such message are left to the decoder, which rejects them.
#[must_use]
pub fn are_too_many<T: Name>(encoded: &[u8]) -> bool {
    if encoded.len() <= SMALL_BYTES {
        return false;
    }
    let mut left = Allowance { parts: PARTS_MAX, idle: IDLE_MAX };
    let shape = SHAPES.of(&T::full_name());
    shape.is_some_and(|shape| count(shape, encoded, (DEPTH_MAX, false), &mut left).is_none())
}

/// Takes what a message has from `left`, up to what is malformed; none when that is not enough.
fn count(
    shape: &Shape,
    encoded: &[u8],
    (depth, is_encoded): (usize, bool),
    left: &mut Allowance,
) -> Option<()> {
    let (mut seen, mut fields) = (0_u128, MessageReader::new(encoded));
    // The decoder skips groups, so what follows them counts.
    while let Ok(Some((number, value))) = fields.next_with_groups() {
        let Some(field) = shape.field(number) else {
            left.take_idle()?;
            continue;
        };
        let bit = 1_u128.checked_shl(number).unwrap_or_default();
        if field.is_repeated {
            left.take_part(is_encoded)?;
        } else if seen & bit != 0 {
            left.take_idle()?;
        }
        seen |= bit;
        let inner = field.inner.and_then(|index| SHAPES.list.get(index));
        if let (Some(inner), Some(depth), Some(FieldValue::Bytes(message))) =
            (inner, depth.checked_sub(1), value)
        {
            count(inner, message, (depth, is_encoded || field.is_encoded), left)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests;
